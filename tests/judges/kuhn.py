"""Judges policies of Kuhn poker: exploitability, by open-spiel, from the probabilities of all twelve information states.

python tests/judges/kuhn.py RUN... [--policy NAME]
"""

import argparse
import json
import os
import pathlib
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(os.path.join(os.environ.get("WD_BUILD_DIR", ROOT / "build"), "python"))

import wdtrain  # noqa: E402

GAME = pathlib.Path(__file__).with_name("kuhn.cu")
HISTORIES = ["", "p", "b", "pb"]  # after which somebody moves


def information_states():
    """Rows and masks of who moves, by open-spiel's name of the state: "0pb" is a jack after a pass and a bet."""
    env = wdtrain.make(os.fspath(GAME), num_envs=64, device="cpu", arrays="numpy", seed=1)
    found = {}
    for history in HISTORIES:
        seen, info = env.reset(seed=1)
        for ply, move in enumerate(history):
            actions = {role: numpy.full((64, 1), 2) for role in ("first", "second")}
            actions[("first", "second")[ply % 2]][:] = "pb".index(move)
            seen, _, _, _, info = env.step(actions)
        side = ("first", "second")[len(history) % 2]
        for row, mask in zip(seen[side][:, 0], info["action_mask"][side][:, 0]):
            found[f"{int(numpy.argmax(row[:3]))}{history}"] = (row.copy(), mask.copy())
    env.close()
    assert len(found) == 12, sorted(found)
    return found


def exploitability(table):
    """table: the probabilities of pass and bet by information state. What a best response wins, in chips per game."""
    import pyspiel
    from open_spiel.python import policy as policies
    from open_spiel.python.algorithms import exploitability as judge

    tabular = policies.TabularPolicy(pyspiel.load_game("kuhn_poker"))
    for state, probabilities in table.items():
        tabular.policy_for_key(state)[:] = probabilities
    return judge.exploitability(tabular.game, tabular)


def table_of(run, policy=None, states=None):
    import torch

    states = information_states() if states is None else states
    module = run.policy(policy)
    rows, masks = (torch.as_tensor(numpy.stack(part)) for part in zip(*states.values()))
    with torch.no_grad():
        p = module.probabilities(module.outputs(rows), masks)[0].double().numpy()
    return {state: row[:2] / row[:2].sum() for state, row in zip(states, p)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("runs", nargs="+")
    arguments.add_argument("--policy", help="NAME, or NAME.average")
    arguments.add_argument("--json", action="store_true", help="of one run: {exploitability}")
    given = arguments.parse_args()
    states = information_states()
    for folder in given.runs:
        found = exploitability(table_of(wdtrain.Run(folder), given.policy, states))
        print(json.dumps({"exploitability": found}) if given.json else f"{folder} {found:.4f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
