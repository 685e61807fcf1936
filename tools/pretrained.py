"""pretrained.py: trains the policies of configs/pretrained, which `wdtrain play --pretrained NAME` shows.

    python3 tools/pretrained.py [NAME...]

Each is one seed of a row of docs/learning/rows.yaml. configs/pretrained/NAME gets what a run's folder needs to be played
(config.yaml, weights/), and about.json with the row, the seed, and what the row's judges say of these weights. The program
is build/wdtrain, or that of the variable WDTRAIN.
"""

import argparse
import json
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from learn import rows  # noqa: E402

LARGEST = 100_000  # bytes of a policy
ROWS = {
    "acrobot": ("acrobot_ppo", 1), "cartpole": ("cartpole_ppo", 1), "continuous_mountain_car": ("continuous_mountain_car_ppo_gsde", 1),
    "foraging": ("foraging", 1), "memory_chain": ("memory_chain_pqn", 1), "mountain_car": ("mountain_car_ppo", 3), "pendulum": ("pendulum_ppo", 3), "simple_adversary": ("simple_adversary", 1),
    "simple_reference": ("simple_reference", 1), "simple_speaker_listener": ("simple_speaker_listener", 1),
    "simple_spread": ("simple_spread_mappo", 1), "simple_tag": ("simple_tag", 1), "t_maze": ("t_maze_ppo", 1), "tag_continuous": ("tag_continuous", 1), "tag_gridworld": ("tag_gridworld", 1),
}  # fmt: skip


def train(name, out):
    row_name, seed = ROWS[name]
    (row,) = [row for row in rows.load() if row["name"] == row_name]
    with tempfile.TemporaryDirectory() as folder:
        found, _ = rows.train(row, seed, pathlib.Path(folder), "cpu")
        run, place = pathlib.Path(folder) / str(seed), out / name
        shutil.rmtree(place, ignore_errors=True)
        (place / "weights").mkdir(parents=True)
        config = re.sub(r"run_dir: .*", 'run_dir: ""', (run / "config.yaml").read_text())
        (place / "config.yaml").write_text(config)
        for weights in sorted((run / "weights").glob("*.safetensors")):
            assert weights.stat().st_size <= LARGEST, f"{weights.name} has {weights.stat().st_size} bytes"
            shutil.copy(weights, place / "weights")
    judged = [{"what": judged["what"], "value": value} for judged, value in zip(row["judged"], found["values"], strict=True)]
    about = {"row": row_name, "seed": seed, "env_steps": found["env_steps"], "judged": judged}
    (place / "about.json").write_text(json.dumps(about, indent=2) + "\n")
    print(f"{name}: {about}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ROWS)}; without one: all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "configs/pretrained")
    options = parser.parse_args()
    for name in options.names or ROWS:
        train(name, options.out)


if __name__ == "__main__":
    main()
