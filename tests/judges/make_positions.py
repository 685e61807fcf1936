"""Writes positions of Connect Four with the exact value of every move: random play, one move at least throws the result away, none wins at once.

python make_positions.py FILE [--each 200] [--seed 1], with bitbully of PyPI, whose book knows the first moves.
"""

import argparse
import csv
import random

import bitbully
import numpy

EARLY, MIDDLE = 14, 28  # plies that were played: at most
SOON, LATER = 13, 28  # moves left with best play: at most
WANTED = ["beginning-easy", "middle-easy", "end-easy", "beginning-medium", "middle-medium", "beginning-hard"]
CELLS, FULL = 42, 1000


def class_of(plies, left):
    return f"{'beginning' if plies <= EARLY else 'middle' if plies <= MIDDLE else 'end'}-{'easy' if left <= SOON else 'medium' if left <= LATER else 'hard'}"


def position(agent, draw, plies):
    """Columns, values and moves left after so many plies; None if the position does not serve."""
    board, columns = bitbully.Board(), ""
    for _ in range(plies):
        column = draw.choice([c for c in range(7) if board.is_legal_move(c)] or [None])
        if column is None or not board.play(column) or board.has_win():
            return None
        columns += str(column)
    if board.can_win_next():
        return None
    values = [agent.score_move(board, c) if board.is_legal_move(c) else FULL for c in range(7)]
    legal = [v for v in values if v != FULL]
    if not legal or len({numpy.sign(v) for v in legal}) < 2:
        return None
    return columns, values, bitbully.BitBully.score_to_moves_left(max(legal), board)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file")
    arguments.add_argument("--each", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    agent, draw = bitbully.BitBully(opening_book="12-ply-dist"), random.Random(given.seed)
    found = {name: {} for name in WANTED}
    while any(len(rows) < given.each for rows in found.values()):
        # Of each part of the game, the number of plies is drawn first: few random games come far.
        of_part = draw.choice([range(EARLY + 1), range(EARLY + 1, MIDDLE + 1), range(MIDDLE + 1, CELLS - 3)])
        plies, made = draw.choice(of_part), None
        for _ in range(2000):
            if (made := position(agent, draw, plies)) is not None:
                break
        if made is None:
            continue
        columns, values, left = made
        name = class_of(len(columns), left)
        if name in found and len(found[name]) < given.each:
            found[name][columns] = [" ".join("." if v == FULL else str(v) for v in values), left]
    with open(given.file, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["class", "columns played from the empty board", "value of each column for who is on turn, . if it is full", "moves left with best play"])
        for name, rows in found.items():
            out.writerows([name, columns, *row] for columns, row in sorted(rows.items()))


if __name__ == "__main__":
    main()
