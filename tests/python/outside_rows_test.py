"""outside_rows_test.py: rows of environments in Python, against the environments themselves, stepped beside them."""

import contextlib
import os
import pathlib
import signal
import sys
import threading
import time

import gymnasium
import mpe2.simple_tag_v3
import numpy as np
import pytest
import torch
from gymnasium import spaces

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "python"))
sys.path.insert(0, str(ROOT / "tests" / "outside"))

import outside_games  # noqa: E402
import wdtrain  # noqa: E402


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "outside"))


def make(name, num_envs, **more):
    return wdtrain.make(name, num_envs, device="cpu", **more)


def seed_in(row):
    return int(row[0]) + 65536 * int(row[1])


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_episodes_are_those_of_gymnasium(processes):
    """Bit for bit, over ends and limits, whatever the number of processes: the peer steps beside, with the seeds that were given."""
    env = make("outside_games:seeded", 3, processes=processes, kwargs={"max_episode_steps": 12}, seed=5)
    rows, _ = env.reset()
    peers = [gymnasium.make("CartPole-v1", max_episode_steps=12) for _ in range(3)]
    seeds = [seed_in(row[4:]) for row in rows.numpy()]
    assert len(set(seeds)) == 3
    for peer, seed, row in zip(peers, seeds, rows.numpy(), strict=True):
        assert (peer.reset(seed=seed)[0] == row[:4]).all()
    ended, kinds = [False] * 3, set()
    random = np.random.default_rng(1)
    for _ in range(120):
        actions = random.integers(0, 2, 3)
        rows, rewards, terminated, truncated, _ = env.step(torch.as_tensor(actions))
        for k, peer in enumerate(peers):
            if ended[k]:
                expected = peer.reset()[0], 0.0, False, False
            else:
                expected = peer.step(actions[k])[:4]
            assert (rows[k, :4].numpy() == expected[0]).all() and rewards[k] == expected[1]
            assert (bool(terminated[k]), bool(truncated[k])) == (expected[2], expected[3] and not expected[2])
            ended[k] = expected[2] or expected[3]
            kinds |= {"terminated"} if expected[2] else {"truncated"} if expected[3] else set()
    assert kinds == {"terminated", "truncated"}


def test_seeds_are_those_of_the_replicas():
    def seeds(num_envs, seed, **more):
        return [seed_in(row) for row in make("outside_games:echo", num_envs, seed=seed, kwargs={"actions": "discrete", "observation": "box"}, **more).reset()[0].numpy()]

    assert seeds(4, 1, processes=1) == seeds(4, 1, processes=3) == seeds(6, 1)[:4]
    assert not set(seeds(6, 1)) & set(seeds(6, 2))
    fixed = make("outside_games:echo", 4, kwargs={"actions": "discrete", "observation": "box"}, settings=["env.reset=fixed"]).reset()[0]
    assert len({seed_in(row) for row in fixed.numpy()}) == 1
    pool = make("outside_games:echo", 32, kwargs={"actions": "discrete", "observation": "box"}, settings=["env.reset_pool_size=3", "env.reset=pool"]).reset()[0]
    assert len({seed_in(row) for row in pool.numpy()}) == 3


@pytest.mark.parametrize("kind", outside_games.ACTIONS)
def test_actions_and_observations_of_every_space(kind):
    """The game observes what it was given; the peer is flattened by gymnasium."""
    space = outside_games.ACTIONS[kind]
    peer = outside_games.echo(kind)
    env = make("outside_games:echo", 2, kwargs={"actions": kind})
    rows, _ = env.reset()
    parts = list(peer.observation_space.spaces)
    at = parts.index("seed")
    start = sum(spaces.flatdim(peer.observation_space[part]) for part in parts[:at])
    peer.reset(seed=seed_in(rows[1, start:start + 2].numpy()))
    space.seed(3)
    for _ in range(7):
        action = space.sample()
        words = np.ravel(action) - (space.start if kind == "discrete" else 0)
        both = torch.as_tensor(np.stack([words, words])).reshape(env.action_space.shape)
        rows, rewards, *_ = env.step(both if np.issubdtype(space.dtype, np.integer) else both.float())
        # wdtrain's actions are float32, whatever the space's type
        expected, reward, *_ = peer.step(action.astype(np.float32).astype(space.dtype) if kind == "double" else action)
        assert rows[1].tolist() == spaces.flatten(peer.observation_space, expected).astype(np.float32).tolist()
        assert rewards.tolist() == [reward, reward]


def test_several_agents_are_those_of_pettingzoo():
    seeds = [seed_in(row) for row in make("outside_games:echo", 2, seed=2, kwargs={"actions": "discrete", "observation": "box"}).reset()[0].numpy()]
    env = make("pettingzoo:mpe2.simple_tag_v3", 2, kwargs={"max_cycles": 9}, seed=2)
    assert {name: (role.count, role.size) for name, role in env.roles.items()} == {"adversary": (3, 16), "agent": (1, 14)}
    peers = [mpe2.simple_tag_v3.parallel_env(max_cycles=9) for _ in range(2)]
    names = {"adversary": ["adversary_0", "adversary_1", "adversary_2"], "agent": ["agent_0"]}

    def same(rows, k, of_agents):
        return all(rows[role][k].numpy().tolist() == np.stack([of_agents[agent] for agent in agents]).astype(np.float32).tolist() for role, agents in names.items())

    rows, _ = env.reset()
    assert all(same(rows, k, peer.reset(seed=seed)[0]) for k, (peer, seed) in enumerate(zip(peers, seeds, strict=True)))
    random, cut = np.random.default_rng(0), 0
    for t in range(30):
        actions = {"adversary": torch.as_tensor(random.integers(0, 5, (2, 3))), "agent": torch.as_tensor(random.integers(0, 5, (2, 1)))}
        rows, rewards, terminated, truncated, _ = env.step(actions)
        for k, peer in enumerate(peers):
            if t % 10 == 9:  # the step after an end
                assert same(rows, k, peer.reset()[0])
                continue
            observations, paid, _, ends, _ = peer.step({agent: int(actions[role][k, i]) for role, agents in names.items() for i, agent in enumerate(agents)})
            assert same(rows, k, observations) and same(rewards, k, paid)
            assert bool(truncated[k]) == any(ends.values())
            cut += bool(truncated[k])
        assert not terminated.any()
    assert cut == 6


def test_the_state_is_a_stream():
    """PettingZoo's state(), which in mpe2 is all observations, one after another."""
    env = make("pettingzoo:mpe2.simple_spread_v3", 2, kwargs={"max_cycles": 4})
    rows, info = env.reset()
    for _ in range(12):
        assert info["state"].shape == (2, 54) and (info["state"] == rows["agent"].reshape(2, 54)).all()
        rows, *_, info = env.step({"agent": torch.randint(0, 5, (2, 3))})


@pytest.mark.parametrize("end", ["truncated", "terminated"])
def test_agents_come_and_go(end, capfd):
    env = make("outside_games:Crowd", 2, kwargs={"end": end})
    observations, info = env.reset()
    assert {name: role.count for name, role in env.roles.items()} == {"a": 2, "b": 1, "c": 1}

    def flags(values):
        return {name: values[name][0].int().tolist() for name in env.roles}

    assert flags(info["active"]) == {"a": [1, 1], "b": [1], "c": [0]}
    for t in range(1, 7):
        observations, rewards, terminated, truncated, info = env.step({name: torch.zeros(2, role.count, dtype=torch.int64) for name, role in env.roles.items()})
        over = t == 6
        assert (bool(terminated[0]), bool(truncated[0])) == (over and end == "terminated", over and end == "truncated")
        in_game = {"a": [1, 1], "b": [int(t < 3)], "c": [int(t >= 4)]}
        if over and end == "terminated":
            in_game = {"a": [0, 0], "b": [0], "c": [0]}
        assert flags(info["active"]) == in_game, t
        left = {name: env.roles[name].terminated[0].int().tolist() for name in env.roles}
        assert left == {"a": [int(over and end == "terminated")] * 2, "b": [int(t == 3)], "c": [int(over and end == "terminated")]}, t
        # b is paid in the step in which it leaves; c is paid from the step after it came.
        assert flags(rewards) == {"a": [t, t], "b": [t if t <= 3 else 0], "c": [t if t > 4 else 0]}, t
        assert observations["a"][0].tolist() == [[10 * t] * 2, [10 * t + 2] * 2]
        if t >= 4:
            assert observations["c"][0].tolist() == [[10 * t + 3] * 3]
    observations, *_, info = env.step({name: torch.zeros(2, role.count, dtype=torch.int64) for name, role in env.roles.items()})
    assert flags(info["active"]) == {"a": [1, 1], "b": [1], "c": [0]} and observations["a"][0].tolist() == [[0, 0], [2, 2]]
    assert "truncated" not in capfd.readouterr().err


def test_an_agent_that_is_truncated_alone_is_told_of(capfd):
    env = make("outside_games:Crowd", 1, kwargs={"early": True})
    env.reset()
    for _ in range(3):
        *_, info = env.step({name: torch.zeros(1, role.count, dtype=torch.int64) for name, role in env.roles.items()})
    assert info["active"]["a"][0].tolist() == [True, False]
    assert "agent a_1 was truncated while others go on" in capfd.readouterr().err


@pytest.mark.parametrize("where", ["observation", "info"])
def test_masks_are_read(where):
    env = make("outside_games:Masked", 2, kwargs={"where": where})
    rows, info = env.reset()
    assert rows.shape == (2, 1)
    for t in range(1, 10):
        assert info["action_mask"][1].tolist() == [(t - 1) % 3 == k or k == 3 for k in range(4)]
        rows, rewards, *_, info = env.step(torch.full((2,), (t - 1) % 3))
        assert rewards.tolist() == [1.0, 1.0] and rows[0, 0] == np.float32(t / 10)


def test_modes_of_gymnasium():
    """same_step and disabled play the episodes of next_step."""
    def episodes(mode):
        env = make("outside_games:seeded", 2, autoreset_mode=mode, seed=4)
        rows, _ = env.reset()
        seen = [[rows[0].tolist()]]
        while len(seen) < 4:
            rows, _, terminated, _, info = env.step(torch.ones(2, dtype=torch.int64))
            ended = bool(terminated[0])
            seen[-1].append((info["final_obs"] if ended and mode == "same_step" else rows)[0].tolist())
            if not ended:
                if mode == "disabled" and terminated[1]:
                    env.reset(options={"reset_mask": terminated.numpy()})
                continue
            if mode == "next_step":
                rows, *_ = env.step(torch.ones(2, dtype=torch.int64))
            elif mode == "disabled":
                rows, _ = env.reset(options={"reset_mask": terminated.numpy()})
            seen.append([rows[0].tolist()])
        return seen[:3]

    assert episodes("next_step") == episodes("same_step") == episodes("disabled")


def test_errors_name_what_raised():
    env = make("outside_games:failing", 4, kwargs={"how": "raise", "at": 3}, processes=2)
    env.reset()
    with pytest.raises(RuntimeError, match=r"process 0 \(pid \d+\) raised in replica 0: ValueError: the cow jumped(.|\n)*outside_games.py"):
        for _ in range(4):
            env.step(torch.zeros(4, dtype=torch.int64))
    # Nor does a new process begin in silence.
    for again in (env.reset, lambda: env.step(torch.zeros(4, dtype=torch.int64))):
        with pytest.raises(RuntimeError, match=r"process 0 has failed before(.|\n)*env.on_failure=restart"):
            again()


def processes():
    """The command and the variables of each process of Python that this one has started."""
    found = []
    for path in pathlib.Path("/proc/self/task").glob("*/children"):
        for child in path.read_text().split():
            with contextlib.suppress(OSError):
                command, variables = (pathlib.Path(f"/proc/{child}/{name}").read_bytes().split(b"\0") for name in ("cmdline", "environ"))
                if any(word.endswith(b"worker.py") for word in command):
                    found.append((command, variables))
    return found


def test_processes_are_those_of_the_calling_python_and_end_with_close(monkeypatch):
    for name in ("WDTRAIN_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    before = len(processes())
    env = make("outside_games:failing", 2, kwargs={"how": "no"}, processes=2)  # found by sys.path
    assert len(processes()) == before + 2
    command, variables = processes()[-1]
    assert command[0] == sys.executable.encode() and any(one.startswith(b"PYTHONPATH=") and b"tests/outside" in one for one in variables)
    observation, _ = env.reset()
    env.close()
    assert len(processes()) == before and float(observation[0, 0]) == 0.5
    for what in (env.reset, lambda: env.step(torch.zeros(2, dtype=torch.int64)), env.game.step):
        with pytest.raises(ValueError, match="the environment is closed: make another one"):
            what()
    env.close()
    for one in (wdtrain.make("outside_games:failing", kwargs={"how": "no"}), wdtrain.make("outside_games:Crowd")):
        one.close()
        with pytest.raises(ValueError, match="the environment is closed"):
            one.reset()


def test_an_environment_outlives_the_thread_that_made_it():
    made = []
    thread = threading.Thread(target=lambda: made.append(make("outside_games:failing", 2, kwargs={"how": "no"}, processes=1)))
    thread.start()
    thread.join()
    time.sleep(0.5)
    made[0].reset()
    made[0].step(torch.zeros(2, dtype=torch.int64))


def test_ctrl_c_ends_the_wait_for_a_game_that_hangs():
    env = make("outside_games:failing", 2, kwargs={"how": "hang"}, processes=1)
    env.reset()
    timer = threading.Timer(2.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while True:
            env.step(torch.zeros(2, dtype=torch.int64))
    assert time.monotonic() - begun < 12, "and not after env.step_seconds"
    with pytest.raises(Exception, match="was killed by signal 9|has failed before"):
        env.step(torch.zeros(2, dtype=torch.int64))
