"""Games that draw cells, and the color that each place of their world must have. Boards are written down here again: what
the rollout says of its drawing is not believed."""

import dataclasses
import json
import os
import pathlib

from cli.program import output

SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])


@dataclasses.dataclass
class Board:
    field: str
    colors: list  # the color of each value; others are "gray"
    discs: bool


@dataclasses.dataclass
class Game:
    file: pathlib.Path
    roles: list
    rows: int
    columns: int
    boards: list  # from below

    def color(self, state, t, row, column, dx, dy):
        """The name of the color at (dx, dy) from the center of a cell, or "": a part of a cell has the color of the uppermost board there."""
        name = ""
        for board in self.boards:
            if board.discs and dx * dx + dy * dy > 0.4**2:
                continue
            value = round(state[board.field][t][row * self.columns + column])
            name = (board.colors[value] if 0 <= value < len(board.colors) else "gray") or name
        return name


GAMES = {
    "tiles": Game(SOURCE / "tests/play/tiles.cu", ["mover", "other"], 3, 5,
                  [Board("tile", ["", "other", "gray", "#12ab9f"], False), Board("stone", ["", "mover", "", "#f0e442"], True)]),
    "connect4": Game(SOURCE / "examples/connect4/connect4.cu", ["first", "second"], 6, 7, [Board("board", ["", "first", "second"], True)]),
}
# With --set env.walkers=true, the first agent of tiles came along the lowest row to x = TRAIL_STEP, through a gray cell. The other
# entered in a gray cell, and was elsewhere before.
TRAIL_STEP, ON_TRAIL, BESIDE_TRAIL, NO_TRAIL = 4, (2.35, 0.0), (2.35, 0.2), (2.35, 2.0)
# Of a cell: its center, inside of a disc, and beside the disc.
PLACES = [(0.0, 0.0), (0.25, 0.2), (-0.36, 0.36), (0.36, -0.36)]


def played(name, folder, *names, arguments=()):
    """The rollout of a policy that has not learned. It is also in these files of the run, whose folder comes first."""
    run = folder / name
    output("--env", GAMES[name].file, "--device", "cpu", "--quiet", "--total_steps", 1, "--run_dir", run, *arguments)
    for file in ("rollout.json", *names):
        output("play", "--run", run, "--device", "cpu", "--out", run / file)
    return run, json.loads((run / "rollout.json").read_text())


def expected(name, rollout, t):
    """The name of the color at each of these places (x, y) of the world in this frame."""
    game, state = GAMES[name], rollout["episodes"][0]["state"]
    return {(column + dx, row + dy): game.color(state, t, row, column, dx, dy) for row in range(game.rows) for column in range(game.columns)
            for dx, dy in PLACES}
