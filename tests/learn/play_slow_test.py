# play_slow_test.py: trained players beat random ones in fresh episodes, over three seeds, by the measured
# margin (docs/learning) minus three standard deviations.
import json
import os
import subprocess

import pytest

WDTRAIN = os.environ["WDTRAIN"]
CONFIGS = os.path.join(os.environ["WD_SOURCE_DIR"], "configs")


def train(folder, name, seed):
    subprocess.run([WDTRAIN, "--config", os.path.join(CONFIGS, name), "--seed", str(seed), "--run_dir", str(folder), "--quiet"],
                   check=True, timeout=3000)


def play(folder, role, opponent):
    """The trained and the random player of a role, against opponents of the given kind."""
    out = subprocess.run([WDTRAIN, "eval", "--run", str(folder), "--episodes", "200", "--opponent", opponent, "--json"],
                         check=True, timeout=300, capture_output=True, text=True).stdout
    players = json.loads(out)["roles"][role]
    return players["trained"], players["random"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tag_continuous_small(tmp_path, seed):
    train(tmp_path / "run", "tag_continuous_small.yaml", seed)
    trained, random = (p["statistics"]["tags"] for p in play(tmp_path / "run", "tagger", "random"))
    print(f"tags: trained {trained}, random {random}")
    assert trained["mean"] >= 1.65 * random["mean"]
    assert trained["low"] > random["high"]
    trained, random = (p["statistics"]["survival"] for p in play(tmp_path / "run", "runner", "scripted"))
    print(f"survival: trained {trained}, random {random}")
    assert trained["mean"] >= 2.1 * random["mean"]
    assert trained["low"] > random["high"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tag_gridworld(tmp_path, seed):
    train(tmp_path / "run", "tag_gridworld.yaml", seed)
    trained, random = (p["length"] for p in play(tmp_path / "run", "tagger", "random"))
    print(f"steps to the catch: trained {trained}, random {random}")
    assert trained["mean"] <= 0.63 * random["mean"]
    assert trained["high"] < random["low"]
