"""Compares tag_continuous with rl-warp-drive's Python environment over whole episodes, with states equal
to the bit."""

import numpy as np
import pytest
from envs.trace import field, play
from example_envs.tag_continuous.tag_continuous import TagContinuous

CROWDED = dict(grid_length=4.0, tagging_distance=0.06, max_acceleration=0.2, min_acceleration=-0.15)
SHIPPED = dict(
    num_taggers=10, num_runners=100, grid_length=20.0, episode_length=500, max_acceleration=0.1, min_acceleration=-0.1,
    max_turn=2.356, min_turn=-2.356, num_acceleration_levels=20, num_turn_levels=20, tagging_distance=0.02,
    tag_reward_for_tagger=10.0, tag_penalty_for_runner=-10.0, use_full_observation=False, num_other_agents_observed=10,
)
PENALTIES = dict(edge_hit_penalty=-0.25, step_penalty_for_tagger=-0.02, step_reward_for_runner=0.03,
                 end_of_game_reward_for_runner=3.0, tag_reward_for_tagger=7.0, tag_penalty_for_runner=-4.0)
CASES = {
    "defaults": {},
    "one against one": dict(num_taggers=1, num_runners=1),
    "all runners are tagged": dict(num_taggers=6, num_runners=4, tagging_distance=0.3, grid_length=3.0),
    "penalties": dict(num_taggers=3, num_runners=7, **CROWDED, **PENALTIES),
    "penalties, nobody leaves": dict(num_taggers=3, num_runners=7, runner_exits_game_after_tagged=False, **CROWDED, **PENALTIES),
    "skills": dict(num_taggers=4, num_runners=9, skill_level_tagger=1.5, skill_level_runner=0.4, max_speed=0.3, **CROWDED),
    "nearest": dict(num_taggers=5, num_runners=20, use_full_observation=False, num_other_agents_observed=6, **CROWDED),
    "nearest, nobody leaves": dict(num_taggers=5, num_runners=20, use_full_observation=False, num_other_agents_observed=4,
                                   runner_exits_game_after_tagged=False, **CROWDED, **PENALTIES),
    "nearest, as many as agents": dict(num_taggers=2, num_runners=5, use_full_observation=False, num_other_agents_observed=7,
                                       **CROWDED),
    "nearest, several batches": dict(num_taggers=20, num_runners=113, use_full_observation=False, num_other_agents_observed=12,
                                     episode_length=25, grid_length=12.0),
    "only one level": dict(num_acceleration_levels=1, num_turn_levels=1, max_acceleration=0.5, min_acceleration=0.1),
    "no levels": dict(num_acceleration_levels=0, num_turn_levels=0, episode_length=10),
    "no reach": dict(num_taggers=4, num_runners=4, tagging_distance=0.0, grid_length=1.0),
    "shipped, see all": dict(SHIPPED, num_taggers=5, use_full_observation=True, episode_length=60),
    "shipped": dict(SHIPPED, episode_length=60),
}
FIELDS = {"x": "loc_x", "y": "loc_y", "speed": "speed", "direction": "direction", "acceleration": "acceleration"}


class Oracle(TagContinuous):
    """WarpDrive's game with taggers first; the original draws which agents are taggers."""

    def __init__(self, **settings):
        super().__init__(**settings)
        tagger, runner = (settings.get(f"skill_level_{role}", 1.0) for role in ("tagger", "runner"))
        self.agent_type = {i: int(i < self.num_taggers) for i in range(self.num_agents)}
        self.taggers = {i: True for i in range(self.num_taggers)}
        self.runners = {i: True for i in range(self.num_taggers, self.num_agents)}
        self.runners_at_reset = dict(self.runners)
        self.skill_levels = [np.float32(tagger if self.agent_type[i] else runner) for i in range(self.num_agents)]
        self.step_rewards = [self.step_penalty_for_tagger if self.agent_type[i] else self.step_reward_for_runner
                             for i in range(self.num_agents)]

    def rows(self, by_agent):
        return np.array([by_agent[i] for i in range(self.num_agents)])


def random_settings(seed):
    rng = np.random.default_rng(seed)
    taggers, runners = int(rng.integers(1, 8)), int(rng.integers(1, 25))
    return dict(
        num_taggers=taggers, num_runners=runners, grid_length=float(rng.uniform(1.0, 15.0)),
        episode_length=int(rng.integers(1, 150)), max_speed=float(rng.uniform(0.1, 2.0)),
        max_acceleration=float(rng.uniform(0.0, 1.0)), min_acceleration=float(rng.uniform(-1.0, 0.0)),
        max_turn=float(rng.uniform(0.0, 4.0)), min_turn=float(rng.uniform(-4.0, 0.0)),
        num_acceleration_levels=int(rng.integers(2, 30)), num_turn_levels=int(rng.integers(2, 30)),
        tagging_distance=float(rng.uniform(0.0, 0.2)), use_full_observation=bool(rng.integers(2)),
        num_other_agents_observed=int(rng.integers(1, taggers + runners + 1)),
        runner_exits_game_after_tagged=bool(rng.integers(2)), edge_hit_penalty=-float(rng.uniform(0.0, 1.0)),
    )


@pytest.mark.parametrize("settings", [*CASES.values(), *map(random_settings, range(12))],
                         ids=[*CASES, *(f"random {seed}" for seed in range(12))])
def test_agrees_with_warpdrive(settings):
    oracle = Oracle(seed=5, **settings)
    heads = [len(oracle.acceleration_actions), len(oracle.turn_actions)]
    rng = np.random.default_rng(3)
    actions = rng.integers(0, heads, size=(oracle.episode_length + 5, oracle.num_agents, 2))
    observations = oracle.rows(oracle.reset())
    start = {name: oracle.global_state[key][0] for name, key in FIELDS.items()}

    steps = play("tag_continuous", settings, actions, start)["steps"]
    np.testing.assert_allclose(steps[0]["observations"], observations, atol=1e-5)
    done = False
    for t, step in enumerate(steps[1:], 1):
        assert not done
        observations, rewards, done, _ = oracle.step(dict(enumerate(actions[t - 1])))
        done = bool(done["__all__"])
        for name, key in FIELDS.items():
            np.testing.assert_array_equal(field(step, name), oracle.global_state[key][t], err_msg=f"{name} at step {t}")
        np.testing.assert_array_equal(step["state"]["in_game"], oracle.still_in_the_game)
        np.testing.assert_array_equal(step["active"], oracle.still_in_the_game)
        np.testing.assert_allclose(step["observations"], oracle.rows(observations), atol=1e-5, err_msg=f"step {t}")
        np.testing.assert_allclose(step["rewards"], oracle.rows(rewards), atol=1e-5, err_msg=f"step {t}")
        assert (bool(step["terminated"]), bool(step["truncated"])) == (done, False)
    assert done


@pytest.mark.parametrize("name", ["penalties", "penalties, nobody leaves", "nearest", "skills", "one against one"])
def test_observe_self_adds_the_own_heading_speed_and_place(name):
    settings = dict(CASES[name], episode_length=60)
    agents = settings["num_taggers"] + settings["num_runners"]
    actions = np.random.default_rng(7).integers(0, 11, size=(60, agents, 2))
    plain = play("tag_continuous", settings, actions)["steps"]
    steps = play("tag_continuous", dict(settings, observe_self=True), actions)["steps"]
    length, top = settings.get("grid_length", 10.0), settings.get("max_speed", 1.0)
    assert len(steps) == len(plain)
    for step, without in zip(steps, plain):
        rows, before = np.array(step["observations"]), np.array(without["observations"])
        np.testing.assert_array_equal(rows[:, :-5], before)
        assert {name: value for name, value in step.items() if name != "observations"} == {
            name: value for name, value in without.items() if name != "observations"}
        x, y, speed, direction = (field(step, name, np.float64) for name in ("x", "y", "speed", "direction"))
        own = np.stack([np.cos(direction), np.sin(direction), speed / top, 2 * x / length - 1, 2 * y / length - 1], 1)
        own[field(step, "seen", int) == 0] = 0
        np.testing.assert_allclose(rows[:, -5:], own, atol=1e-6)
    if name == "penalties":
        assert (field(steps[-1], "seen", int) == 0).any()


def test_statistics_count_tags_and_steps_in_the_game():
    settings = dict(CASES["penalties"], episode_length=60)
    actions = np.random.default_rng(1).integers(0, 11, size=(60, 10, 2))
    steps = play("tag_continuous", settings, actions)["steps"]
    in_game = np.array([field(step, "in_game", int) for step in steps])
    assert steps[-1]["state"]["tags"] == [7 - in_game[-1, 3:].sum()]
    np.testing.assert_array_equal(steps[-1]["state"]["survival"], in_game[:-1].sum(axis=0))


def test_given_agents_out_of_the_game_are_not_seen():
    state = dict(x=[1.0, 2.0, 3.0], y=[1.0, 1.0, 1.0], in_game=[1, 1, 0])
    settings = dict(num_taggers=1, num_runners=2, use_full_observation=False, num_other_agents_observed=2)
    first = play("tag_continuous", settings, [], state)["steps"][0]
    rows = np.array(first["observations"])
    # The runner in the game, then an empty slot.
    assert rows[0][10] == 0.0 and rows[0][12] == 1.0 and rows[0][13] == 0.0
    assert not rows[2].any()
