"""`wdtrain check` of environments in Python finds every broken rule, and `--against` finds where ours differs from its original."""

import json
import re

import pytest
from cli.program import wdtrain

# Environments of one agent, each with a fault that its name says, and of several.
MODULE = '''
import os, random, sys, time
import gymnasium, numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Good(gymnasium.Env):
    """A walk on a line that ends at either side, or after 30 steps."""
    observation_space = spaces.Box(-5, 5, (2,), np.float32)
    action_space = spaces.Discrete(2)
    limit = 30

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.uniform(-1, 1), 0
        return self.see(), self.info()

    def step(self, action):
        self.x += 0.5 * (2 * int(action) - 1) + self.np_random.uniform(-0.1, 0.1)
        self.t += 1
        return self.see(), self.x, bool(abs(self.x) > 4), self.t >= self.limit, self.info()

    def see(self):
        return np.array([self.x, self.t / 30], np.float32)

    def info(self):
        return {}

class Four(Good):
    def step(self, action):
        return super().step(action)[:4]

class OneReturn(Good):
    def reset(self, **more):
        return super().reset(**more)[0]

class IntegerFlag(Good):
    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, int(terminated), truncated, info

class NoInfo(Good):
    def info(self):
        return None

class RewardRow(Good):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, np.array([reward]), *rest

class Outside(Good):
    observation_space = spaces.Box(-0.5, 5, (2,), np.float32)

class Shape(Good):
    def see(self):
        return super().see() if self.t < 3 else super().see()[None]

class Double(Good):
    def see(self):
        return super().see().astype(np.float64)

class NanReward(Good):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward if self.t < 7 else float("nan"), *rest

class Infinite(Good):
    def see(self):
        return np.array([self.x, 0.0 if self.t < 5 else np.inf], np.float32)

class Endless(Good):
    limit = 10**9
    def step(self, action):
        seen, reward, _, _, info = super().step(action)
        return np.clip(seen, -5, 5), reward, False, False, info

def overrun():
    made = Endless()
    made.spec = gymnasium.envs.registration.EnvSpec("Overrun-v0", max_episode_steps=20)
    return made

class SameStart(Good):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=3)

class Unseeded(Good):
    def reset(self, *, seed=None, options=None):
        return super().reset()

class Residue(Good):
    drift = 0.0
    def reset(self, **more):
        self.drift += 0.01
        return super().reset(**more)
    def see(self):
        return np.array([self.x, self.drift], np.float32)

class GlobalRandom(Good):
    def reset(self, *, seed=None, options=None):
        if seed is not None:
            np.random.seed(seed)
        self.x, self.t = np.random.uniform(-1, 1), 0
        return self.see(), {}
    def step(self, action):
        self.x, self.t = self.x + np.random.uniform(-1, 1), self.t + 1
        return self.see(), 0.0, bool(abs(self.x) > 4), self.t >= 30, {}

class DrawnWhenMade(Good):
    def __init__(self):
        self.drawn = random.random()
    def see(self):
        return np.array([self.x, self.drawn], np.float32)

class SharedRow(Good):
    row = None
    def see(self):
        if self.row is None:
            self.row = np.zeros(2, np.float32)
        self.row[:] = super().see()
        return self.row

class Large(Good):
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    def see(self):
        return np.array([self.x, 5000 + self.x], np.float32)

class Constant(Good):
    observation_space = spaces.Dict({"place": spaces.Box(-5, 5, (1,), np.float32), "zero": spaces.Box(0, 1, (3,), np.float32)})
    def see(self):
        return {"place": np.array([self.x], np.float32), "zero": np.zeros(3, np.float32)}

class NoChoice(Good):
    def info(self):
        return {"action_mask": np.array([1, 1] if self.t < 4 else [0, 0], np.int8)}

class Masked(Good):
    def info(self):
        return {"action_mask": np.array([0, 1], np.int8)}
    def step(self, action):
        assert action == 1
        return super().step(action)

class Raises(Good):
    def step(self, action):
        if self.t == 6:
            raise ArithmeticError("this world has ended")
        return super().step(action)

class RaisesAtOnce(Good):
    def reset(self, **more):
        raise ArithmeticError("no world yet")

class Dies(Good):
    def step(self, action):
        os._exit(3) if self.t == 6 else None
        return super().step(action)

class Hangs(Good):
    def step(self, action):
        while self.t == 6:
            time.sleep(0.1)
        return super().step(action)

class Pair:
    """A pettingzoo.ParallelEnv: `b` leaves after 5 steps, `a` after 10."""
    metadata, render_mode, spec = {}, None, None
    possible_agents = ["a_0", "b_0"]
    spaces = {name: (spaces.Box(-100, 100, (1,), np.float32), spaces.Discrete(2)) for name in possible_agents}

    def observation_space(self, agent):
        return self.spaces[agent][0]
    def action_space(self, agent):
        return self.spaces[agent][1]
    def reset(self, seed=None, options=None):
        if seed is not None or not hasattr(self, "random"):
            self.random = np.random.default_rng(seed)
        self.agents, self.x, self.t = list(self.possible_agents), self.random.uniform(), 0
        return self.all(self.see()), self.all({})
    def see(self):
        return np.array([self.x], np.float32)
    def all(self, value):
        return {agent: value for agent in self.agents}
    def step(self, actions):
        self.x += sum(int(a) for a in actions.values())
        self.t += 1
        ended = {agent: self.t >= (5 if agent == "b_0" else 10) for agent in self.agents}
        found = [self.all(self.see()), self.all(1.0), ended, self.all(False), self.all({})]
        self.agents = [agent for agent in self.agents if not ended[agent]]
        return tuple(self.spoil(*found))
    def spoil(self, *found):
        return found
    @property
    def unwrapped(self):
        return self
    def close(self):
        pass

class Strange(Pair):
    def spoil(self, *found):
        self.agents = self.agents + ["c_0"] if self.t == 3 else self.agents
        return found

class Stays(Pair):
    def spoil(self, *found):
        self.agents = self.agents + ["b_0"] if self.t == 5 else self.agents
        return found

class Vanishes(Pair):
    def spoil(self, *found):
        self.agents = ["a_0"] if self.t == 2 else self.agents
        return found

class Returns(Pair):
    def spoil(self, seen, *found):
        if self.t == 7:
            self.agents, seen["b_0"] = ["a_0", "b_0"], self.see()
        return seen, *found

class MissingKey(Pair):
    def spoil(self, seen, rewards, *found):
        rewards.pop("a_0")
        return seen, rewards, *found

class NewSpaces(Pair):
    def action_space(self, agent):
        return spaces.Discrete(2)

class OtherSpaces(Pair):
    calls = 0
    def observation_space(self, agent):
        self.calls += 1
        return spaces.Box(-100, 100 + self.calls, (1,), np.float32)

class OtherReward(CartPoleEnv):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward + (0.01 if self.state[0] > 0.02 else 0), *rest

class OtherForce(CartPoleEnv):
    def __init__(self):
        super().__init__()
        self.force_mag = 10.2

class Earlier(CartPoleEnv):
    def __init__(self):
        super().__init__()
        self.x_threshold = 0.1

class Crashes(CartPoleEnv):
    def step(self, action):
        raise ArithmeticError("no step today")

class Stateless(CartPoleEnv):
    """Its state has another name."""
    def __getattribute__(self, name):
        if name == "state" and sys._getframe(1).f_code.co_filename != __file__ and "cartpole" not in sys._getframe(1).f_code.co_filename:
            raise AttributeError(name)
        return super().__getattribute__(name)
    def read(self):
        return dict(zip(["x", "x_dot", "theta", "theta_dot"], map(float, self.state)))

def read_state(env):
    return env.unwrapped.read()

def tag_state(env):
    world = env.unwrapped.world
    agents, landmarks = [a.state for a in world.agents], [mark.state for mark in world.landmarks]
    return {"x": [s.p_pos[0] for s in agents], "y": [s.p_pos[1] for s in agents],
            "vx": [s.p_vel[0] for s in agents], "vy": [s.p_vel[1] for s in agents],
            "landmark_x": [s.p_pos[0] for s in landmarks], "landmark_y": [s.p_pos[1] for s in landmarks]}

class Foragers(Pair):
    """lbforaging's game of two players, as a pettingzoo.ParallelEnv."""
    possible_agents = ["player_0", "player_1"]

    def __init__(self, **more):
        import lbforaging
        self.game = gymnasium.make("Foraging-2s-8x8-2p-2f-coop-v3", disable_env_checker=True, **more).unwrapped
        self.action = spaces.Discrete(6)
    def observation_space(self, agent):
        return self.game.observation_space[0]
    def action_space(self, agent):
        return self.action
    def each(self, values):
        return dict(zip(self.possible_agents, values))
    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return self.each(self.game.reset(seed=seed)[0]), self.all({})
    def step(self, actions):
        seen, rewards, done, cut, _ = self.game.step([int(actions[agent]) for agent in self.agents])
        found = self.each(seen), self.each(map(float, rewards)), self.all(bool(done)), self.all(bool(cut)), self.all({})
        self.agents = [] if done or cut else self.agents
        return found

def foraging_state(env):
    game = env.unwrapped.game
    food = [[row, col, game.field[row, col]] for row, col in zip(*np.nonzero(game.field))]
    food += [[-1, -1, 0]] * (game.max_num_food - len(food))
    return {"row": [p.position[0] for p in game.players], "col": [p.position[1] for p in game.players], "level": [p.level for p in game.players],
            "food_row": [f[0] for f in food], "food_col": [f[1] for f in food], "food_level": [f[2] for f in food], "spawned": game._food_spawned}


def word(agent):
    return int(np.argmax(agent.state.c)) if agent.state.c.any() else -1

def speaker_state(env):
    world = env.unwrapped.world
    return tag_state(env) | {"goal": world.landmarks.index(world.agents[0].goal_b), "message": word(world.agents[0])}

def reference_state(env):
    world = env.unwrapped.world
    return tag_state(env) | {"goal": [world.landmarks.index(a.goal_b) for a in reversed(world.agents)], "message": [word(a) for a in world.agents]}

def adversary_state(env):
    world = env.unwrapped.world
    return tag_state(env) | {"goal": world.landmarks.index(world.agents[0].goal_a)}

def reference(**options):
    """simple_reference_v3, whose 50 actions are two heads."""
    from mpe2 import simple_reference_v3
    from pettingzoo.utils import BaseParallelWrapper
    heads = spaces.MultiDiscrete([5, 10])
    class TwoHeads(BaseParallelWrapper):
        def action_space(self, agent):
            return heads
        def step(self, actions):
            return super().step({agent: int(move + 5 * word) for agent, (move, word) in actions.items()})
    return TwoHeads(simple_reference_v3.parallel_env(**options))

def read_too_little(env):
    return {"x": [1.0, 2.0]}

def shortened():
    return gymnasium.wrappers.TimeLimit(CartPoleEnv(), 8)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("modules")
    (place / "bad.py").write_text(MODULE)
    return place


def check(folder, *arguments):
    """The exit code, and {check: (verdict, detail)}; a detail may have several lines."""
    done = wdtrain("check", "--device", "cpu", *arguments, cwd=folder)
    assert done.stderr == "", done.stderr
    lines = {}
    for line in done.stdout.splitlines():
        match = re.match(r"(ok|FAILED|warning|skipped) +(.+?)(?:  +(.*))?$", line)
        if match:
            verdict, name, detail = match.groups()
            lines[name] = (verdict, detail or "")
        elif lines and not line.endswith("has faults"):
            name = list(lines)[-1]
            lines[name] = (lines[name][0], lines[name][1] + "\n" + line)
    assert done.returncode == (1 if any(verdict == "FAILED" for verdict, _ in lines.values()) else 0), done.stdout
    assert done.returncode == done.stdout.endswith("has faults\n")
    return done.returncode, lines


@pytest.mark.parametrize("name", ["bad:Good", "bad:Masked", "bad:Pair", "gym:CartPole-v1"])
def test_a_right_environment_passes(folder, name):
    _, lines = check(folder, "--env", name)
    assert {verdict for verdict, _ in lines.values()} <= {"ok", "skipped"}, lines
    assert lines["action masks"][0] == ("ok" if name == "bad:Masked" else "skipped")
    assert len(lines) == (13 if name == "bad:Pair" else 12)


FORM, SPACES, NUMBERS, AGENTS = "what reset() and step() return", "observations are in their space", "numbers are finite", "agents come and go"
# Of each wrong environment: the check that tells, its verdict, and words of what it says.
FAULTS = {
    "Four": (FORM, "FAILED", "episode 0, step 1: step() returns 4 values, and must return 5 values: observation, reward, terminated, truncated, info"),
    "IntegerFlag": (FORM, "FAILED", "terminated is 0, of type int: return bool(...)"),
    "RewardRow": (FORM, "FAILED", "of type ndarray: return float(...)"),
    "NoInfo": ("wdtrain can train in it", "FAILED", "reset() returns info that is a NoneType: return a dict"),
    "Outside": (SPACES, "FAILED", "outside of [-0.5, 5.0]: clip it, or correct the bounds of the space"),
    "Shape": (SPACES, "FAILED", "episode 0, step 3: the observation has the shape (1, 2), and its space says (2,)"),
    "Double": (SPACES, "FAILED", "episode 0, step 0: the observation is float64, and its space says float32: return .astype(np.float32)"),
    "NanReward": (NUMBERS, "FAILED", "episode 0, step 7: the reward is nan"),
    "Infinite": (NUMBERS, "FAILED", "episode 0, step 5: observation [1] is inf"),
    "Endless": ("episodes end", "warning", "none of 300 steps ended one, and no time limit is known: set env.time_limit"),
    "overrun": ("episodes end", "FAILED", "episode 0, step 21: it goes on after the time limit of 20 steps: return truncated=True"),
    "SameStart": ("reset() begins anew", "warning", "calls of reset() without a seed give the same observation"),
    "Unseeded": ("same seed, same episode", "FAILED", "after reset(seed=1) twice and the same actions: draw random numbers from self.np_random"),
    "Residue": ("same seed, same episode", "FAILED", "episode 0, step 0: observation [1] is "),
    "GlobalRandom": ("replicas share nothing", "FAILED", "the same seed gives other numbers while another instance plays: keep state and random numbers in self"),
    "DrawnWhenMade": ("replicas share nothing", "FAILED", "two instances with the same seed differ: draw random numbers from self.np_random"),
    "SharedRow": ("observations stay as they were", "warning", "observation of episode 0, step 0 has changed, since the same array is written again: return .copy()"),
    "Large": ("ranges of observations", "warning", "set policy.NAME.model.normalize_input=true"),
    "Constant": ("ranges of observations", "warning", "zero is always 0 in "),
    "NoChoice": ("action masks", "FAILED", "episode 0, step 4: the mask forbids every choice of head 0"),
    "Raises": (FORM, "FAILED", "episode 0, step 7: ArithmeticError: this world has ended\n  File "),
    "RaisesAtOnce": ("wdtrain can train in it", "FAILED", "ArithmeticError: no world yet\n  File "),
    "OneReturn": ("wdtrain can train in it", "FAILED", "reset() returns a ndarray, and must return 2 values: observation, info"),
    "Dies": ("the process answers", "FAILED", "ended with exit code 3"),
    "Strange": (FORM, "FAILED", "episode 0, step 3, agent c_0: it is in `agents`, and not in possible_agents"),
    "MissingKey": (FORM, "FAILED", "episode 0, step 1, agent a_0: it is missing in rewards"),
    "Stays": (AGENTS, "FAILED", "episode 0, step 5, agent b_0: it is terminated or truncated, and still in `agents`: take it out"),
    "Vanishes": (AGENTS, "FAILED", "episode 0, step 2, agent b_0: it has left `agents`, and is neither terminated nor truncated"),
    "Returns": (AGENTS, "warning", "episode 0, step 7, agent b_0: it comes into a running episode"),
    "NewSpaces": (AGENTS, "warning", "action_space('a_0') is another object in each call"),
    "OtherSpaces": (AGENTS, "FAILED", "observation_space('a_0') is another object in each call"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(folder, fault):
    name, verdict, words = FAULTS[fault]
    _, lines = check(folder, "--env", f"bad:{fault}")
    assert lines[name][0] == verdict and words in lines[name][1], lines
    # No other check is led astray, but those that look at the same thing.
    others = {other for other, (judged, _) in lines.items() if judged in ("FAILED", "warning")} - {name}
    assert others <= {"Infinite": {SPACES}, "SameStart": {"another seed, another episode"}, "Unseeded": set()}.get(fault, set()), lines


def test_a_step_that_hangs_is_named(folder):
    code, lines = check(folder, "--env", "bad:Hangs", "--seconds", 0.5, "--set", "env.start_seconds=3")
    assert code == 1
    assert lines["the process answers"][0] == "FAILED" and "bad.py" in lines["the process answers"][1], lines


def test_settings_of_the_environment_count(folder):
    _, lines = check(folder, "--env", "gym:CartPole-v1", "--set", "env.kwargs={max_episode_steps: 9}", "--steps", 50)
    assert "the longest episode has 9 steps" in lines["episodes end"][1], lines
    _, lines = check(folder, "--env", "bad:Endless", "--set", "env.time_limit=25")
    assert lines["episodes end"][0] == "ok" and "the longest episode has 25 steps" in lines["episodes end"][1], lines


def test_a_wrong_setting_is_an_error(folder):
    done = wdtrain("check", "--env", "gym:CartPole-v1", "--set", "env.proceses=3", cwd=folder)
    assert done.returncode == 2 and "env.proceses" in done.stderr


CLASSIC = {
    "cartpole": "CartPole-v1",
    "mountain_car": "MountainCar-v0",
    "acrobot": "Acrobot-v1",
    "pendulum": "Pendulum-v1",
    "continuous_mountain_car": "MountainCarContinuous-v0",
}


def against(folder, env, original, *arguments):
    return check(folder, "--env", env, "--against", original, *arguments)[1]


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_games_are_those_of_gymnasium(folder, name):
    lines = against(folder, name, f"gymnasium:{CLASSIC[name]}", "--steps", 1100)
    assert list(lines) == ["same spaces", "same time limit", "same observations", "same rewards", "same ends"]
    assert {verdict for verdict, _ in lines.values()} == {"ok"}, lines


def test_states_may_drift_apart(folder):
    lines = against(folder, "cartpole", "gym:CartPole-v1", "--drift")
    assert {verdict for verdict, _ in lines.values()} == {"ok"}, lines


# Our parameters that differ, and what shows it.
DIFFERENT = {
    "cartpole": ("gravity=9.9", "same observations"),
    "mountain_car": ("force=0.002", "same observations"),
    "acrobot": ("avail_torque=1.1", "same observations"),
    "pendulum": ("mass=1.01", "same observations"),
    "continuous_mountain_car": ("power=0.002", "same observations"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_parameter_is_found(folder, name):
    setting, where = DIFFERENT[name]
    lines = against(folder, name, f"gym:{CLASSIC[name]}", "--set", f"env.{setting}")
    verdict, detail = lines[where]
    assert verdict == "FAILED", lines
    match = re.fullmatch(r"episode \d+, step \d+: \w+ is (\S+), and the original's is (\S+); action (\[.+\]), state before (\{.+\})", detail)
    assert match and float(match[1]) != float(match[2]) and json.loads(match[3]) and json.loads(match[4]), detail


def test_a_tolerance_may_be_given(folder):
    lines = against(folder, "cartpole", "gym:CartPole-v1", "--set", "env.gravity=9.9", "--atol", 0.1)
    assert {verdict for verdict, _ in lines.values()} == {"ok"} and "largest difference 0.0" in lines["same observations"][1], lines


def test_an_original_that_differs_is_found(folder):
    lines = against(folder, "cartpole", "bad:OtherReward")
    assert lines["same rewards"][0] == "FAILED" and ": the reward is 1, and the original's is 1.00999999; action" in lines["same rewards"][1], lines
    assert lines["same observations"][0] == lines["same ends"][0] == "ok"
    lines = against(folder, "cartpole", "bad:OtherForce")
    assert lines["same observations"][0] == "FAILED" and "x_dot is " in lines["same observations"][1], lines
    lines = against(folder, "cartpole", "bad:Earlier")
    assert lines["same ends"][0] == "FAILED" and "the episode is going on, and the original's is terminated" in lines["same ends"][1], lines


def test_another_time_limit_is_found(folder):
    lines = against(folder, "mountain_car", "gym:MountainCar-v0", "--set", "env.episode_length=150")
    assert lines["same time limit"] == ("FAILED", "ours is 150 steps, and the original's 200")
    assert "step 150: the episode is truncated, and the original's is going on" in lines["same ends"][1], lines
    lines = against(folder, "cartpole", "bad:shortened")
    assert "step 8: the episode is going on, and the original's is truncated" in lines["same ends"][1], lines


def test_arguments_of_the_original_count(folder):
    lines = against(folder, "cartpole", "gym:CartPole-v1", "--kwargs", '{"max_episode_steps": 300}')
    assert lines["same time limit"] == ("FAILED", "ours is 500 steps, and the original's 300")


def test_other_spaces_are_found(folder):
    lines = against(folder, "cartpole", "gym:Pendulum-v1")
    assert lines["same spaces"] == ("FAILED", "cart: ours observes 4 numbers, and the original 3")
    assert lines["all other checks"][0] == "skipped"
    lines = against(folder, "pendulum", "gym:Pendulum-v1", "--set", "env.max_torque=3")
    assert lines["same spaces"][0] == "FAILED" and "bounds [[-3.0,3.0]], and that of the original bounds [[-2.0,2.0]]" in lines["same spaces"][1], lines


def test_an_unknown_state_is_refused_with_a_remedy(folder):
    def refused(*arguments):
        done = wdtrain("check", "--device", "cpu", "--env", "cartpole", *arguments, cwd=folder)
        assert done.returncode == 2, done.stdout
        return done.stderr

    words = refused("--against", "bad:Stateless")
    assert "the state of the original is not known: Stateless has no attribute 'x' with as many numbers" in words
    assert "The state of ours is x [1], x_dot [1], theta [1], theta_dot [1]: --state MODULE:FUNCTION" in words
    assert "there is no 'nothing'" in refused("--against", "bad:Stateless", "--state", "bad:nothing")
    assert "state field 'x' has 2 values" in refused("--against", "bad:Stateless", "--state", "bad:read_too_little")
    assert "must be gym:ID, pettingzoo:MODULE or MODULE:FUNCTION" in refused("--against", "CartPole-v1")
    assert "--kwargs [1]: must be a JSON object" in refused("--against", "gym:CartPole-v1", "--kwargs", "[1]")
    assert "No module named 'missing'" in refused("--against", "missing:make")
    done = wdtrain("check", "--env", "gym:CartPole-v1", "--against", "gym:CartPole-v1", cwd=folder)
    assert done.returncode == 2 and "it is compared with an environment of ours" in done.stderr


def test_a_function_may_give_the_state(folder):
    lines = against(folder, "cartpole", "bad:Stateless", "--state", "bad:read_state", "--steps", 100)
    assert {verdict for verdict, _ in lines.values()} <= {"ok", "skipped"}, lines


def test_an_error_of_the_original_is_shown(folder):
    lines = against(folder, "cartpole", "bad:Crashes")
    assert lines["the original plays"][0] == "FAILED" and "ArithmeticError: no step today\n  File " in lines["the original plays"][1], lines


def test_several_agents_are_compared(folder):
    pytest.importorskip("mpe2")
    original = ["pettingzoo:mpe2.simple_tag_v3", "--state", "bad:tag_state"]
    lines = against(folder, "simple_tag", *original)
    assert {verdict for verdict, _ in lines.values()} <= {"ok", "skipped"} and lines["same spaces"] == ("ok", "30 observed numbers, 2 roles"), lines
    lines = against(folder, "simple_tag", *original, "--set", "env.tag_reward_for_adversary=9", "--set", "env.good_agent_acceleration=4.5")
    assert lines["same rewards"][0] == "FAILED" and re.search(r": adversary \d: the reward is 9, and the original's is 10; ", lines["same rewards"][1]), lines
    assert lines["same observations"][0] == "FAILED" and "velocity[" in lines["same observations"][1], lines


def test_foraging_is_that_of_lbforaging(folder):
    pytest.importorskip("lbforaging")
    original = ["bad:Foragers", "--state", "bad:foraging_state", "--steps", 1000]
    lines = against(folder, "foraging", *original, "--kwargs", '{"penalty": 0.1}', "--set", "env.penalty=0.1")
    assert {verdict for verdict, _ in lines.values()} <= {"ok", "skipped"} and lines["same spaces"] == ("ok", "12 observed numbers, 1 role"), lines
    lines = against(folder, "foraging", *original, "--set", "env.penalty=0.5")
    assert lines["same rewards"][0] == "FAILED" and "the reward is -0.5, and the original's is 0; " in lines["same rewards"][1], lines
    lines = against(folder, "foraging", *original, "--set", "env.sight=3")
    assert lines["same observations"][0] == "FAILED", lines

# Of each game that talks or deceives: its original, the function of the state, observed numbers and roles, arguments of ours and of the original
# that mean the same, and settings of ours alone with what shows them.
MPE2 = {
    "simple_speaker_listener": ("pettingzoo:mpe2.simple_speaker_listener_v4", "speaker_state", "14 observed numbers, 2 roles",
                                ("episode_length=40", '{"max_cycles": 40}'), ("acceleration=4", "same observations")),
    "simple_reference": ("bad:reference", "reference_state", "21 observed numbers, 1 role", ("local_ratio=0.2", '{"local_ratio": 0.2}'),
                         ("local_ratio=0.4", "same rewards")),
    "simple_adversary": ("pettingzoo:mpe2.simple_adversary_v3", "adversary_state", "18 observed numbers, 2 roles",
                         ("num_good_agents=3", '{"N": 3}'), ("dt=0.11", "same observations")),
}


@pytest.mark.parametrize("name", MPE2)
def test_games_of_mpe2_are_the_same(folder, name):
    pytest.importorskip("mpe2")
    module, function, extent, (ours, theirs), (other, where) = MPE2[name]
    original = [module, "--state", f"bad:{function}"]
    lines = against(folder, name, *original)
    assert {verdict for verdict, _ in lines.values()} <= {"ok", "skipped"} and lines["same spaces"] == ("ok", extent), lines
    lines = against(folder, name, *original, "--set", f"env.{ours}", "--kwargs", theirs)
    assert {verdict for verdict, _ in lines.values()} <= {"ok", "skipped"}, lines
    lines = against(folder, name, *original, "--set", f"env.{other}")
    assert lines[where][0] == "FAILED", lines
