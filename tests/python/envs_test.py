"""envs_test.py: environments of wd in Python, under the checks of gymnasium, pettingzoo, Stable-Baselines3 and torchrl."""

import copy
import os
import pathlib
import pickle
import re
import sys
import warnings

import gymnasium
import gymnasium.utils.env_checker
import gymnasium.utils.env_match
import numpy
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "python"))

import wdtrain  # noqa: E402

CLASSIC = {"cartpole": "CartPole-v1", "mountain_car": "MountainCar-v0", "acrobot": "Acrobot-v1", "pendulum": "Pendulum-v1",
           "continuous_mountain_car": "MountainCarContinuous-v0"}
MANY = {"tag_gridworld": {}, "tag_continuous": {"num_runners": 10, "episode_length": 60}, "simple_tag": {}, "simple_spread": {}, "foraging": {},
        "simple_speaker_listener": {"one_role": True}, "simple_reference": {}, "simple_adversary": {}}
MODES = gymnasium.vector.AutoresetMode


def error_of(function):
    with pytest.raises(ValueError) as caught:
        function()
    assert type(caught.value).__name__ == "UsageError"
    return str(caught.value)


@pytest.mark.parametrize("name", CLASSIC)
def test_gymnasium_finds_no_fault(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(is not within the recommended|spec|A Box (observation|action) space|For Box action spaces|render).*")
        gymnasium.utils.env_checker.check_env(wdtrain.make(name))


@pytest.mark.parametrize("name", CLASSIC)
def test_stable_baselines_finds_no_fault(name):
    from stable_baselines3.common.env_checker import check_env

    check_env(wdtrain.make(name), warn=False)


@pytest.mark.parametrize("name", MANY)
def test_pettingzoo_finds_no_fault(name):
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    parallel_api_test(wdtrain.make(name, **MANY[name]), num_cycles=200)
    parallel_seed_test(lambda: wdtrain.make(name, **MANY[name]), num_cycles=20)


@pytest.mark.parametrize("name", CLASSIC)
def test_torchrl_finds_no_fault(name):
    from torchrl.envs import GymWrapper
    from torchrl.envs.utils import check_env_specs

    check_env_specs(GymWrapper(wdtrain.make(name)))


class Started(gymnasium.Wrapper):
    """An environment of ours whose episodes begin in the states of gymnasium's."""

    def __init__(self, name, original):
        super().__init__(wdtrain.make(name))
        self.original, self.observation_space = original, original.observation_space

    def reset(self, *, seed=None, options=None):
        self.env.reset(seed=seed)
        observation, info = self.original.reset(seed=seed)
        fields = self.env.unwrapped.game.native.state(0)
        state = [float(value) for value in self.original.unwrapped.state]
        names = [field for field in fields if len(fields[field]) == 1][: len(state)]
        text = ", ".join(f'"{key}": {value!r}' for key, value in zip(names, state, strict=True))
        self.env.unwrapped.game.native.write(0, "{" + text + "}")
        return observation, info

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return observation, reward, terminated, truncated, {}


@pytest.mark.parametrize("name", CLASSIC)
def test_games_match_those_of_gymnasium(name):
    def noting(env, rewards):  # ours are float32, so they are compared by hand
        return gymnasium.wrappers.TransformReward(env, lambda reward: rewards.append(float(reward)) or reward)

    theirs, ours = [], []
    gymnasium.utils.env_match.check_environments_match(noting(gymnasium.make(CLASSIC[name]), theirs), noting(Started(name, gymnasium.make(CLASSIC[name])), ours),
                                                       num_steps=600, seed=7, skip_rew=True)
    assert len(ours) == 600 and numpy.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_pointers_stay_and_nothing_is_copied():
    env = wdtrain.make("cartpole", 16)
    first = env.reset()
    pointers = [one.data_ptr() for one in (first[0], env.game.terminated, env.role.reward)]
    for _ in range(30):
        env.actions[:] = torch.randint(0, 2, (16,))
        observation, reward, terminated, _, _ = env.step()
        assert [one.data_ptr() for one in (observation, terminated, reward)] == pointers
    assert terminated.dtype == torch.bool and observation.shape == (16, 4)


def test_seeds_give_the_episodes_of_a_training():
    one, other = wdtrain.make("cartpole", 8, seed=5), wdtrain.make("cartpole", 8, seed=1)
    assert torch.equal(one.reset()[0], other.reset(seed=5)[0])
    again = other.reset()[0].clone()  # the second episodes
    assert not torch.equal(again, other.reset(seed=5)[0])
    few = wdtrain.make("cartpole", 3, seed=5)
    assert torch.equal(few.reset()[0], one.reset(seed=5)[0][:3])


def own(array):
    """A copy, as numpy's array."""
    return numpy.array(array.numpy() if isinstance(array, torch.Tensor) else array)


@pytest.mark.parametrize("arrays", ["torch", "numpy"])
def test_the_three_ways_to_reset_play_the_same_episodes(arrays):
    actions = numpy.random.default_rng(1).integers(0, 2, (400, 4))
    environments = {mode: wdtrain.make("cartpole", 4, autoreset_mode=mode, arrays=arrays, episode_length=60) for mode in MODES}
    episodes = {mode: [] for mode in MODES}  # of replica 0: observations in order
    for mode, env in environments.items():
        assert env.metadata["autoreset_mode"] is mode
        seen = [own(env.reset(seed=3)[0])[0]]
        ended = False
        for t in range(60):
            observation, reward, terminated, truncated, info = env.step(actions[t])
            now = bool(terminated[0]) or bool(truncated[0])
            if mode is MODES.NEXT_STEP and ended:
                assert not now and float(reward[0]) == 0
                ended, seen = False, [own(observation)[0]]
                continue
            if mode is MODES.SAME_STEP and now:
                assert bool(info["_final_obs"][0])
                seen.append(own(info["final_obs"])[0])
                episodes[mode].append(seen)
                seen = [own(observation)[0]]
                continue
            seen.append(own(observation)[0])
            ended = now
            if now:
                episodes[mode].append(seen)
            if mode is MODES.DISABLED and now:
                mask = own(terminated) | own(truncated)
                others = own(observation)[~mask].copy()
                observation, _ = env.reset(options={"reset_mask": mask})
                assert (own(observation)[~mask] == others).all()
                seen = [own(observation)[0]]
    firsts = {mode: [episode[0] for episode in all_of] for mode, all_of in episodes.items()}
    count = min(map(len, firsts.values()))
    assert count >= 2
    for mode in MODES:  # they begin alike; actions differ from the second on, since a step may be spent on the reset
        assert numpy.array_equal(firsts[mode][:count], firsts[MODES.SAME_STEP][:count])
        assert numpy.array_equal(episodes[mode][0], episodes[MODES.SAME_STEP][0])
    assert all(numpy.array_equal(a, b) for a, b in zip(episodes[MODES.DISABLED], episodes[MODES.SAME_STEP], strict=True))


def test_what_ended_stays_as_it_is_without_resets():
    env = wdtrain.make("cartpole", 3, autoreset_mode="disabled", arrays="numpy")
    env.reset(seed=2)
    left = numpy.zeros(3, int)
    while not env.game.ended().all():
        env.step(left)
    before = env.role.observations.copy()
    observation, reward, terminated, _, _ = env.step(left)
    assert (env.role.observations == before).all() and (reward == 0).all() and terminated.all()


def test_vector_environments_match_gymnasiums():
    """Ours against SyncVectorEnv of ours, in each mode."""
    for mode in (MODES.NEXT_STEP, MODES.SAME_STEP):
        ours = wdtrain.make("cartpole", 1, autoreset_mode=mode, arrays="numpy", seed=4)
        theirs = gymnasium.vector.SyncVectorEnv([lambda: wdtrain.make("cartpole", seed=4)], autoreset_mode=mode)
        a, b = ours.reset()[0], theirs.reset()[0]
        assert numpy.array_equal(a, b)
        for t in range(120):
            action = numpy.array([t // 3 % 2])
            one, other = ours.step(action), theirs.step(action)
            for x, y in zip(one[:4], other[:4], strict=True):
                assert numpy.array_equal(x, y), (mode, t)
            if mode is MODES.SAME_STEP and (one[2] | one[3]).any():
                assert numpy.array_equal(one[4]["final_obs"][0], other[4]["final_obs"][0])


def test_agents_of_several_roles_are_stepped_together():
    env = wdtrain.make("tag_gridworld", 6, episode_length=9)
    observation, info = env.reset(seed=1)
    assert set(observation) == {"tagger", "runner"} and observation["runner"].shape[:2] == (6, 1)
    for _ in range(25):
        actions = {name: torch.randint(0, 5, observation[name].shape[:2]) for name in observation}
        observation, reward, terminated, truncated, info = env.step(actions)
        assert reward["tagger"].shape == observation["tagger"].shape[:2] and terminated.shape == truncated.shape == (6,)
        assert info["caught"].shape == (6,) and bool((info["_caught"] == (terminated | truncated)).all())


def test_a_learned_policy_plays_in_an_environment(tmp_path):
    from cli.program import output

    output("--env", "cartpole", "--num_envs", 8, "--train_batch_size", 256, "--total_steps", 30000, "--device", "cpu", "--quiet", "--run_dir", tmp_path / "run")
    policy = wdtrain.Run(tmp_path / "run").policy("shared")
    env, returns = wdtrain.make("cartpole", 32, autoreset_mode="same_step"), torch.zeros(32)
    observation, _ = env.reset()
    done = torch.zeros(32, dtype=torch.bool)
    for _ in range(500):
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation)[..., 0])
        returns += reward * ~done
        done |= terminated | truncated
    assert returns.mean() > 100


def test_mistakes_are_named():
    assert "cartpol" in error_of(lambda: wdtrain.make("cartpol", 4))
    assert "env.episode_lenght" in error_of(lambda: wdtrain.make("cartpole", 4, episode_lenght=3))
    assert "same_step" in error_of(lambda: wdtrain.make("cartpole", 4, autoreset_mode="never"))
    assert "num_envs 0" in error_of(lambda: wdtrain.make("cartpole", 0))
    assert "cuda:N" in error_of(lambda: wdtrain.make("cartpole", 1, device="gpu"))
    env = wdtrain.make("cartpole", 4)
    assert "reset()" in error_of(lambda: env.step(torch.zeros(4, dtype=torch.int64)))
    env.reset()
    assert "none of its choices" in error_of(lambda: env.step(torch.tensor([0, 1, 2, 0])))
    assert "integers" in error_of(lambda: env.step(torch.zeros(4)))
    assert "(3,)" in error_of(lambda: env.step(torch.zeros(3, dtype=torch.int64)))
    assert "one number for all" in error_of(lambda: env.reset(seed=[1, 2, 3, 4]))
    assert "reset_mask" in error_of(lambda: env.reset(options={"reset_mask": [True]}))
    assert "not finite" in error_of(lambda: (lambda e: (e.reset(), e.step(torch.full((2, 1), float("nan")))))(wdtrain.make("pendulum", 2)))
    both = wdtrain.make("tag_gridworld", 2)
    both.reset()
    assert "roles are" in error_of(lambda: both.step({"tagger": torch.zeros(2, 4, dtype=torch.int64)}))


def test_the_documentations_lines_run():
    text = (pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "docs/python.md").read_text()
    section = text[text.index("## Environments\n"):text.index("## Check\n")]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 4
    known = {"wdtrain": wdtrain, "torch": torch}
    for block in blocks:
        exec(block, known)
    assert known["reward"]["tagger"].shape == (64, 4)


def test_copies_of_one_environment_play_episodes_of_their_own():
    drawn = [wdtrain.make("cartpole").reset()[0] for _ in range(4)]
    assert len({one.tobytes() for one in drawn}) == 4
    assert numpy.array_equal(wdtrain.make("cartpole", seed=1).reset()[0], own(wdtrain.make("cartpole", 4).reset()[0])[0])  # with num_envs: seed 1


@pytest.mark.parametrize("name, arguments", [("cartpole", {}), ("simple_tag", {}), ("cartpole", {"num_envs": 3, "autoreset_mode": "same_step", "arrays": "numpy"}),
                                             ("simple_tag", {"num_envs": 3})])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_environments_are_pickled_and_copied(name, arguments, copied):
    env = wdtrain.make(name, seed=6, episode_length=17, settings=["env.reset=fixed"], **arguments)
    first = env.reset()[0]
    again = copied(env)
    assert type(again).__name__ == type(env).__name__ and again.game.time_limit == 17 and again.game.mode == env.game.mode
    seen = again.reset()[0]
    for key in first if isinstance(first, dict) else [...]:
        assert numpy.array_equal(own(first[key]), own(seen[key]))
    assert again.game is not env.game


def test_a_function_is_no_name():
    assert "wdtrain.train(FUNCTION)" in error_of(lambda: wdtrain.make(lambda: None))


@pytest.mark.parametrize("actions", [["a", "b"], numpy.array([None, 1]), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, device="meta"), torch.zeros(2).to_sparse(), numpy.array(["1", "0"])],
                         ids=["texts", "objects", "bfloat16", "meta", "sparse", "array of texts"])
def test_actions_of_other_types_are_refused_in_one_sentence(actions):
    env = wdtrain.make("cartpole", 2)
    env.reset()
    with pytest.raises(wdtrain.UsageError, match="^cartpole: actions of 'cart' "):
        env.step(actions)
    env.step(numpy.array([1, 0], ">i4"))  # of the other byte order


@pytest.mark.parametrize(("wrong", "why"), [({"adversary_0": 1.5}, "must be integers"), ({"stranger": 1}, "there is no agent stranger"), ({"adversary_0": None}, "must be integers"),
                                            ({"adversary_0": 2**32}, "none of its choices")])
def test_wrong_actions_of_agents_are_refused(wrong, why):
    env = wdtrain.make("simple_tag")
    env.reset(seed=1)
    with pytest.raises(wdtrain.UsageError, match=why):
        env.step(dict.fromkeys(env.agents, 0) | wrong)
