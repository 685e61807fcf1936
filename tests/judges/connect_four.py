"""Judges policies of Connect Four by exact values: which share of their moves throws a result away.

python tests/judges/connect_four.py RUN... [--positions FILE] [--policy NAME] [--depths 4 6]
"""

import argparse
import csv
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(os.path.join(os.environ.get("WD_BUILD_DIR", ROOT / "build"), "python"))

import wdtrain  # noqa: E402

GAME = ROOT / "examples" / "connect4" / "connect4.cu"
POSITIONS = pathlib.Path(__file__).with_name("connect_four_positions.csv")
COLUMNS, FULL = 7, 100  # FULL: the value of a column that is full


class Position(NamedTuple):
    of: str  # class: how far the game is, and how far its end
    moves: str  # from the empty board, columns 0 to 6
    values: tuple[int, ...]  # of the columns: the sign is the result with best play, FULL is a full column


def positions(path=POSITIONS):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Position(of, moves, tuple(FULL if v == "." else int(v) for v in values.split())) for of, moves, values, *_ in rows]


class Solver:
    """connect_four_solver.cpp, compiled into a folder."""

    def __init__(self, folder):
        source, library = pathlib.Path(__file__).with_name("connect_four_solver.cpp"), pathlib.Path(folder) / "solver.so"
        subprocess.run(["c++", "-std=c++20", "-O3", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, source], check=True)
        self.library = ctypes.CDLL(os.fspath(library))
        self.library.connect_four_positions.restype = ctypes.c_int64
        self.library.connect_four_values.restype = ctypes.c_bool

    def values(self, moves):
        found = (ctypes.c_int * COLUMNS)()
        if not self.library.connect_four_values(moves.encode(), found):
            raise ValueError(f"{moves!r} is no game of Connect Four that goes on")
        return tuple(found)

    def shallow(self, moves, depth):
        """The move of a search of so many plies, the one nearest to the middle among equals."""
        return self.library.connect_four_shallow(moves.encode(), depth)

    def positions_after(self, plies):
        return self.library.connect_four_positions(plies)


def is_mistake(position, column):
    """Whether a better result than that of this move was to be had."""
    best = max(numpy.sign(v) for v in position.values if v != FULL)
    return numpy.sign(position.values[column]) < best


def observed(where, **params):
    """Rows and masks of who is on turn in each position, from the game itself."""
    env = wdtrain.make(os.fspath(GAME), num_envs=len(where), device="cpu", arrays="numpy", random_plies=0, **params)
    seen, info = env.reset()
    roles = list(env.roles)
    wait = info["action_mask"][roles[0]].shape[-1] - 1
    rows, masks = [None] * len(where), [None] * len(where)
    for ply in range(max(len(p.moves) for p in where) + 1):
        side = roles[ply % 2]
        actions = {role: numpy.full((len(where), 1), wait) for role in roles}
        for e, position in enumerate(where):
            legal = info["action_mask"][side][e, 0]
            if ply == len(position.moves):
                rows[e], masks[e] = seen[side][e, 0].copy(), legal.copy()
            if ply < len(position.moves):
                actions[side][e] = int(position.moves[ply])
                assert legal[actions[side][e]], f"{position.moves}: move {ply} is illegal"
            else:  # this game is not looked at any more
                for role in roles:
                    actions[role][e] = int(numpy.argmax(info["action_mask"][role][e, 0]))
        seen, _, _, _, info = env.step(actions)
    env.close()
    return numpy.stack(rows), numpy.stack(masks)


def mistakes(probabilities, where):
    """Share of mistakes by class: of the likeliest move, and of a drawn one."""
    found = {}
    for position, p in zip(where, probabilities):
        greedy = float(is_mistake(position, int(numpy.argmax(p[:COLUMNS]))))
        drawn = sum(p[c] for c in range(COLUMNS) if p[c] > 0 and is_mistake(position, c))
        found.setdefault(position.of, []).append((greedy, drawn))
    return {of: tuple(numpy.mean(pairs, axis=0)) for of, pairs in found.items()}


def probabilities_of(run, rows, masks, policy=None):
    import torch

    module = run.policy(policy)
    with torch.no_grad():
        logits = module.outputs(torch.as_tensor(rows))
        return module.probabilities(logits, torch.as_tensor(masks))[0].numpy()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("runs", nargs="*")
    arguments.add_argument("--positions", default=POSITIONS)
    arguments.add_argument("--policy", help="NAME, or NAME.average")
    arguments.add_argument("--depths", type=int, nargs="+", default=[], help="also judge alpha-beta that sees so many plies")
    arguments.add_argument("--json", action="store_true", help="of one run, in percent: {class: {greedy, drawn}}")
    given = arguments.parse_args()
    where, seen = positions(given.positions), {}
    with tempfile.TemporaryDirectory() as folder:
        solver = Solver(folder) if given.depths else None
        for depth in given.depths:
            found = mistakes([numpy.eye(COLUMNS)[solver.shallow(p.moves, depth)] for p in where], where)
            print(f"depth {depth}", ", ".join(f"{of} {100 * greedy:.1f}" for of, (greedy, _) in found.items()))
    for folder in given.runs:
        run = wdtrain.Run(folder)
        threats = run.config["env"].get("threats", False)
        if threats not in seen:
            seen[threats] = observed(where, threats=threats)
        found = mistakes(probabilities_of(run, *seen[threats], given.policy), where)
        if given.json:
            print(json.dumps({of: {"greedy": 100 * greedy, "drawn": 100 * drawn} for of, (greedy, drawn) in found.items()}))
        else:
            print(folder, ", ".join(f"{of} {100 * g:.1f} ({100 * d:.1f})" for of, (g, d) in found.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
