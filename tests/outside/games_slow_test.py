"""games_slow_test.py: public games in Python train as they are installed, in environments of Python of their own (.venv-games)."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tests/cli"))

from program import wdtrain  # noqa: E402

TODAY = ["gymnasium==1.4.0", "pettingzoo[butterfly,sisl]==1.27.0", "mpe2==1.1.1", "magent2==0.3.4", "ale-py==0.12.1", "highway-env==1.12.1", "minigrid==3.2.0", "box2d==2.3.10",
         "lbforaging==2.0.0", "rware==2.0.0", "pygame-ce", "numpy>=2"]
FORMER = ["gymnasium==0.29.1", "numpy<2", "pettingzoo[mpe]==1.24.3"]

SMALL = {"butterfly.cooperative_pong_v6": ["paddle"], "butterfly.pistonball_v6": ["piston"]}  # roles that see pictures
PARALLEL = {
    "butterfly.cooperative_pong_v6": {}, "butterfly.knights_archers_zombies_v11": {}, "butterfly.pistonball_v6": {"n_pistons": 3},
    "sisl.multiwalker_v9": {}, "sisl.pursuit_v5": {},
    "mpe2.simple_v3": {}, "mpe2.simple_spread_v3": {}, "mpe2.simple_tag_v3": {}, "mpe2.simple_adversary_v3": {}, "mpe2.simple_crypto_v3": {}, "mpe2.simple_push_v3": {},
    "mpe2.simple_reference_v3": {}, "mpe2.simple_speaker_listener_v4": {}, "mpe2.simple_world_comm_v3": {},
    "magent2.environments.adversarial_pursuit_v4": {"map_size": 16}, "magent2.environments.battle_v4": {"map_size": 16}, "magent2.environments.battlefield_v5": {},
    "magent2.environments.combined_arms_v6": {"map_size": 16}, "magent2.environments.gather_v5": {}, "magent2.environments.tiger_deer_v4": {"map_size": 16},
}
SINGLE = {
    "gym:CartPole-v1": [], "gym:Acrobot-v1": [], "gym:MountainCarContinuous-v0": [], "gym:Blackjack-v1": [], "gym:Taxi-v3": [], "gym:FrozenLake-v1": [],
    "gym:LunarLander-v3": [], "gym:BipedalWalker-v3": [], "gym:ale_py:ALE/Pong-v5": ["env.kwargs={obs_type: ram}"], "gym:ale_py:ALE/Breakout-v5": ["env.kwargs={obs_type: ram}"],
    "gym:highway_env:highway-v0": [], "gym:highway_env:parking-v0": [], "gym:minigrid:MiniGrid-Empty-5x5-v0": ["env.wrappers=[minigrid.wrappers.FlatObsWrapper]"],
    "gym:lbforaging:Foraging-8x8-2p-2f-v3": [], "gym:rware:rware-tiny-2ag-v2": [],
}


def python_of(folder, packages):
    """An interpreter with these packages; the folder is kept."""
    python = ROOT / folder / "bin/python"
    mark = ROOT / folder / "packages.json"
    if not mark.exists() or json.loads(mark.read_text()) != packages:
        subprocess.run([sys.executable, "-m", "venv", "--clear", ROOT / folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        mark.write_text(json.dumps(packages))
    return python


def train(python, folder, name, *settings):
    done = wdtrain("train", "--env", name, "--total_steps", 2048, "--num_envs", 2, "--train_batch_size", 64, "--run_dir", folder, "-s", f"env.python={python}",
                   *(word for setting in settings for word in ("-s", setting)))
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["status"] == "finished" and summary["env_steps"] == 2048
    return done.stderr


@pytest.mark.parametrize("name", PARALLEL)
def test_games_of_several_agents_train(name, tmp_path):
    kwargs, small = PARALLEL[name], [f"policy.{role}.model.fc_dims=[4]" for role in SMALL.get(name, [])]
    train(python_of(".venv-games", TODAY), tmp_path / "run", f"pettingzoo:{name}", *small, *([f"env.kwargs={json.dumps(kwargs)}"] if kwargs else []))


@pytest.mark.parametrize("name", SINGLE)
def test_games_of_one_agent_train(name, tmp_path):
    train(python_of(".venv-games", TODAY), tmp_path / "run", name, *SINGLE[name])


@pytest.mark.parametrize("name", ["gym:CartPole-v1", "gym:Pendulum-v1", "gym:Taxi-v3", "pettingzoo:mpe.simple_spread_v3"])
def test_former_versions_train(name, tmp_path):
    train(python_of(".venv-games-former", FORMER), tmp_path / "run", name)
