"""cartpole in jax, for learn_jax.Training: constants and equations of Gymnasium's CartPole-v1, in float32."""

import jax
import jax.numpy as jnp

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MOST_ANGLE, MOST_PLACE, EPISODE = 12 * 2 * jnp.pi / 360, 2.4, 500


class CartPole:
    truncates = True

    def reset(self, key):
        return {"body": jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05), "t": jnp.int32(0)}

    def observe(self, state):
        return {"shared": state["body"][None]}

    def active(self, state):
        return {"shared": jnp.ones(1)}

    def step(self, state, action):
        x, speed, angle, spin = state["body"]
        force = jnp.where(action["shared"][0, 0] == 1, FORCE, -FORCE)
        sine, cosine, mass, moment = jnp.sin(angle), jnp.cos(angle), CART + POLE, POLE * HALF_LENGTH
        push = (force + moment * spin**2 * sine) / mass
        spin_up = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / mass))
        speed_up = push - moment * spin_up * cosine / mass
        body = jnp.stack([x + TAU * speed, speed + TAU * speed_up, angle + TAU * spin, spin + TAU * spin_up])
        t = state["t"] + 1
        fallen = (jnp.abs(body[0]) > MOST_PLACE) | (jnp.abs(body[2]) > MOST_ANGLE)
        return {"body": body, "t": t}, {"shared": jnp.ones(1)}, fallen, (t >= EPISODE) & ~fallen
