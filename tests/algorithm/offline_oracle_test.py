"""offline_oracle_test.py: updates of DQN, SAC and TD3 that the program makes from recorded transitions, repeated by torch in
double from the papers' definitions. Every replica has n + 1 recorded steps, of which only the first one has a successor,
and a batch has one transition of every replica: so it is known without any random number. Its rows are divided into blocks as those
of any training."""

import math

import numpy
import pytest
import torch
from cli.program import output
from safetensors.numpy import save_file
from safetensors.torch import load_file

REPLICAS, UPDATES, N = 1100, 6, 3
GAMMA, SCALE, LR, CRITIC_LR, LIMIT, EPSILON, TAU, HUBER, EXPONENT = 0.9, 0.5, 0.004, 0.01, 0.1, 1e-4, 0.3, 0.7, 0.6
COMMON = {
    "n_step": N, "batch_size": REPLICAS, "replay_ratio": 1, "prioritized": "true", "priority_exponent": EXPONENT, "gamma": GAMMA, "reward_scale": SCALE,
    "lr": LR, "clip_grad_norm": "true", "max_grad_norm": LIMIT, "adam_epsilon": EPSILON, "tau": TAU,
    "model": "{fc_dims: [16, 8], activation: tanh, separate_value: false, init_method: default}",
}  # fmt: skip
CASES = {
    "DQN": {"huber": HUBER, "target_every": 2 * REPLICAS},
    "SAC": {"critic_lr": CRITIC_LR, "temperature": 0.5, "temperature_lr": 0.02},
    "TD3": {"critic_lr": CRITIC_LR, "target_noise": 0, "policy_delay": 2},
}


def write_recording(folder, environment, role, actions, size):
    """Returns what was written. Of seven replicas, six have an end, at one of three places and of one of two kinds."""
    random = numpy.random.default_rng(3)
    shape = (REPLICAS, N + 1)
    choices = actions == "2"
    rows = {
        "observation": random.normal(0, 1, (*shape, 1, size)).astype("float32"),
        "action": random.integers(0, 2, (*shape, 1, 1)).astype("int32") if choices else random.uniform(-1, 1, (*shape, 1, 1)).astype("float32"),
        "reward": random.normal(0, 2, (*shape, 1)).astype("float32"),
        "active": numpy.ones((*shape, 1), "uint8"),
        "agent_terminated": numpy.zeros((*shape, 1), "uint8"),
    }
    for name in ("terminated", "truncated", "reset_step"):
        rows[name] = numpy.zeros(shape, "uint8")
    for e in range(REPLICAS):
        if e % 7 < 6:
            rows["terminated" if e % 2 else "truncated"][e, e % 7 // 2] = 1
            rows["reset_step"][e, e % 7 // 2 + 1] = 1
    (folder / "shared").mkdir(parents=True)
    save_file(rows, folder / "shared/part-00000.safetensors", {
        "format": "wd.transitions.1", "environment": environment, "roles": role, "actions": actions, "action_mask": "false",
        "observation_size": str(size), "observations": "rows", "agents": "1", "steps": str(N + 1), "first_step": "0",
    })  # fmt: skip
    return rows


class Batch:
    def __init__(self, rows):
        returns, discounts, after = [], [], []
        for e in range(REPLICAS):
            total, discount = 0.0, 1.0
            for k in range(N):
                total += discount * SCALE * float(rows["reward"][e, k, 0])
                discount *= GAMMA
                if rows["terminated"][e, k]:
                    discount = 0.0
                if rows["terminated"][e, k] or rows["truncated"][e, k]:
                    break
            returns.append(total), discounts.append(discount), after.append(k + 1)
        seen = torch.from_numpy(rows["observation"][:, :, 0]).double()
        self.now, self.next = seen[:, 0], seen[range(REPLICAS), after]
        self.action = torch.from_numpy(rows["action"][:, 0, 0])
        self.returns, self.discount = torch.tensor(returns, dtype=torch.double), torch.tensor(discounts, dtype=torch.double)

    def target(self, following):
        return (self.returns + self.discount * following).detach()


def network(weights, x, prefix="", head="policy_head", action=None):
    for layer in range(2):
        at = f"{prefix}layers.{layer}."
        more = action.double() @ weights[at + "action.weight"].T if action is not None and layer == 0 else 0
        x = torch.tanh(x @ weights[at + "weight"].T + weights[at + "bias"] + more)
    return x @ weights[head + ".weight"].T + weights[head + ".bias"]


def critics(weights, x, action=None):
    return [network(weights, x, f"critics.{i}.", f"critics.{i}.head", action) for i in range(2)]


class Weights(dict):
    """Those that learn, by name."""

    def __init__(self, tensors):
        super().__init__({name: tensor.double().requires_grad_() for name, tensor in tensors.items()})
        self.target = self.fixed()

    def fixed(self):
        return {name: tensor.detach().clone() for name, tensor in self.items()}

    def follow(self):
        self.target = {name: (1 - TAU) * self.target[name] + TAU * now for name, now in self.fixed().items()}

    def adam(self, lr, of_critics=False):
        chosen = [tensor for name, tensor in self.items() if name.startswith("critics.") == of_critics]
        return torch.optim.Adam(chosen, lr=lr, eps=EPSILON)


def step(adam, loss):
    adam.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(adam.param_groups[0]["params"], LIMIT)
    adam.step()


def dqn(weights, batch):
    """Mnih et al. 2015; the double estimator of van Hasselt et al. 2016. Yields the errors of every update."""
    adam = weights.adam(LR)
    for update in range(UPDATES):
        if update % 2 == 1:
            weights.follow()
        best = network(weights, batch.next).argmax(1, keepdim=True)
        target = batch.target(network(weights.target, batch.next).gather(1, best)[:, 0])
        value = network(weights, batch.now).gather(1, batch.action.long())[:, 0]
        step(adam, torch.nn.functional.huber_loss(value, target, delta=HUBER))
        yield {"errors": value - target}


def sac(weights, batch):
    """Haarnoja et al. 2018, of choices: Christodoulou 2019."""
    adam, critic_adam = weights.adam(LR), weights.adam(CRITIC_LR, True)
    log_alpha = torch.tensor(math.log(0.5), dtype=torch.double, requires_grad=True)
    alpha_adam = torch.optim.Adam([log_alpha], lr=0.02, eps=EPSILON)
    for _ in range(UPDATES):
        alpha = log_alpha.exp().detach()
        log_pi = network(weights, batch.next).log_softmax(1)
        following = (log_pi.exp() * (torch.minimum(*critics(weights.target, batch.next)) - alpha * log_pi)).sum(1)
        target = batch.target(following)
        values = [q.gather(1, batch.action.long())[:, 0] for q in critics(weights, batch.now)]
        step(critic_adam, sum(0.5 * ((value - target) ** 2).mean() for value in values))
        log_pi = network(weights, batch.now).log_softmax(1)
        lowest = torch.minimum(*critics(weights.fixed(), batch.now))
        step(adam, (log_pi.exp() * (alpha * log_pi - lowest)).sum(1).mean())
        gap = 0.5 * math.log(2) + (log_pi.exp() * log_pi).sum(1).mean().detach()
        alpha_adam.zero_grad()
        (-log_alpha * gap).backward()
        alpha_adam.step()
        weights.follow()
        yield {"errors": values[0] - target, "log_temperature": log_alpha.item()}


def td3(weights, batch):
    """Fujimoto et al. 2018, without noise."""
    adam, critic_adam = weights.adam(LR), weights.adam(CRITIC_LR, True)
    for update in range(UPDATES):
        action = torch.tanh(network(weights.target, batch.next))
        target = batch.target(torch.minimum(*critics(weights.target, batch.next, action))[:, 0])
        values = [q[:, 0] for q in critics(weights, batch.now, batch.action)]
        step(critic_adam, sum(0.5 * ((value - target) ** 2).mean() for value in values))
        if update % 2 == 1:
            step(adam, -critics(weights.fixed(), batch.now, torch.tanh(network(weights, batch.now)))[0].mean())
            weights.follow()
        yield {"errors": values[0] - target}


@pytest.mark.parametrize("algorithm", CASES)
def test_updates_are_those_of_the_paper(algorithm, tmp_path):
    form = ("pendulum", "pendulum", "-2..2", 3) if algorithm == "TD3" else ("cartpole", "cart", "2", 4)
    batch = Batch(write_recording(tmp_path / "recorded", *form))
    settings = ", ".join(f"{name}: {value}" for name, value in (COMMON | CASES[algorithm]).items())
    output("--env", form[0], "--device", "cpu", "--num_envs", REPLICAS, "--train_batch_size", REPLICAS, "--total_steps", UPDATES * REPLICAS, "--stop_return", "none",
           "--quiet", "--set", f"policy={{shared: {{algorithm: {algorithm}, {settings}}}}}", "--set", f"trainer.offline={tmp_path / 'recorded'}",
           "--set", f"saving.checkpoint_freq={REPLICAS}", "--set", "saving.keep_last=20", "--set", "saving.replay=always", "--run_dir", tmp_path / "run")  # fmt: skip
    checkpoint = lambda update, kind: load_file(tmp_path / f"run/checkpoints/{update:08d}/{kind}/shared.safetensors")
    weights = Weights(checkpoint(0, "weights"))
    before = weights.fixed()
    for update, expected in enumerate({"DQN": dqn, "SAC": sac, "TD3": td3}[algorithm](weights, batch), 1):
        for name, tensor in checkpoint(update, "weights").items():
            torch.testing.assert_close(tensor.double(), weights[name].detach(), rtol=0, atol=2e-6, msg=lambda m: f"{update} {name}: {m}")
        priority = checkpoint(update, "replay")["priority"].double()
        assert priority.shape == (REPLICAS, N + 1) and not priority[:, 1:].any()
        torch.testing.assert_close(priority[:, 0], (expected["errors"].detach().abs() + 1e-6) ** EXPONENT, rtol=1e-4, atol=1e-5)
        if "log_temperature" in expected:
            assert checkpoint(update, "optimizer")["log_temperature"][0].item() == pytest.approx(expected["log_temperature"], abs=2e-6)
    for name, tensor in before.items():
        assert (weights[name] - tensor).abs().max() > 1e-3, name
