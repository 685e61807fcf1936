"""The judge of Connect Four: its solver, its classes of positions, and the game itself against open-spiel."""

import functools
import json
import random

import bitbully
import numpy
import pyspiel
import pytest

from cli.program import output
from judges import connect_four as judge
from judges.connect_four import wdtrain

PLAYERS, WAIT = ("first", "second"), 7
# Positions after so many plies: John Tromp, "number of legal 7x6 Connect-Four positions after n plies" (OEIS A212693).
POSITIONS = [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275, 558186]


@pytest.fixture(scope="module")
def solver(tmp_path_factory):
    return judge.Solver(tmp_path_factory.mktemp("solver"))


def test_the_solver_finds_as_many_positions_as_there_are(solver):
    assert [solver.positions_after(plies) for plies in range(len(POSITIONS))] == POSITIONS


def test_the_solver_agrees_with_bitbully_on_random_positions(solver):
    agent, draw, compared = bitbully.BitBully(opening_book=None), random.Random(7), 0
    while compared < 300:
        board, moves = bitbully.Board(), ""
        for _ in range(draw.randrange(16, 41)):
            column = draw.choice([c for c in range(7) if board.is_legal_move(c)])
            board.play(column)
            moves += str(column)
            if board.has_win():
                break
        if board.has_win() or board.is_full():
            with pytest.raises(ValueError, match="no game"):
                solver.values(moves + "0")
            continue
        scores = agent.score_all_moves(board)
        assert solver.values(moves) == tuple(scores.get(column, judge.FULL) for column in range(7)), moves
        compared += 1


def test_the_positions_have_the_values_that_the_solver_finds(solver):
    where = judge.positions()
    assert {of: sum(p.of == of for p in where) for of in {p.of for p in where}} == dict.fromkeys(
        ["beginning-easy", "middle-easy", "end-easy", "beginning-medium", "middle-medium", "beginning-hard"], 200)
    late = [p for p in where if len(p.moves) > 14] + [p for p in where if len(p.moves) == 14][:8]
    for position in late:
        assert solver.values(position.moves) == position.values, position
    for position in where:  # a mistake is possible, and nobody wins at once
        signs = {numpy.sign(v) for v in position.values if v != judge.FULL}
        assert len(signs) > 1 and max(v for v in position.values if v != judge.FULL) < (43 - len(position.moves)) // 2


def test_mistakes_are_results_that_were_thrown_away():
    position = judge.Position("x", "", (5, -3, 0, judge.FULL, 1, -1, 18))
    assert [judge.is_mistake(position, column) for column in (0, 1, 2, 4, 5, 6)] == [False, True, True, False, True, False]
    lost = judge.Position("x", "", (-5, -3, -18, judge.FULL, -1, -1, -2))
    assert not any(judge.is_mistake(lost, column) for column in (0, 1, 2, 4, 5, 6))
    drawn = judge.Position("y", "", (0, -3, 0, judge.FULL, judge.FULL, judge.FULL, judge.FULL))
    found = judge.mistakes([[0.5, 0.25, 0, 0, 0.25, 0, 0, 0], [0.3, 0.4, 0.3, 0, 0, 0, 0, 0]], [position, drawn])
    assert found == {"x": pytest.approx((0.0, 0.25)), "y": pytest.approx((1.0, 0.4))}


def lines(cells):
    """Fours of a board [6, 7], row 0 below: the cells of one player that are part of none or some."""
    for row in range(6):
        for column in range(7):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                places = [(row + k * down, column + k * right) for k in range(4)]
                if all(0 <= r < 6 and 0 <= c < 7 for r, c in places):
                    yield [cells[r, c] for r, c in places], places


@pytest.mark.parametrize("threats", [False, True])
def test_a_thousand_games_are_those_of_open_spiel(threats):
    number = 1000
    env = wdtrain.make(str(judge.GAME), num_envs=number, device="cpu", arrays="numpy", random_plies=0, threats=threats, seed=3)
    states, draw = [pyspiel.load_game("connect_four").new_initial_state() for _ in range(number)], random.Random(5)
    seen, info = env.reset()
    results, steps = [], 0
    while any(not state.is_terminal() for state in states):
        side = PLAYERS[steps % 2]
        actions = {role: numpy.full((number, 1), WAIT) for role in PLAYERS}
        for e, state in enumerate(states):
            if state.is_terminal():  # this replica has begun another game
                for role in PLAYERS:
                    actions[role][e] = numpy.argmax(info["action_mask"][role][e, 0])
                continue
            legal = info["action_mask"][side][e, 0]
            assert list(numpy.flatnonzero(legal)) == state.legal_actions()
            assert list(numpy.flatnonzero(info["action_mask"][PLAYERS[1 - steps % 2]][e, 0])) == [WAIT]
            planes = numpy.array(state.observation_tensor(0)).reshape(3, 6, 7)  # of the first player, of the second, empty
            mine, other = planes[steps % 2], planes[1 - steps % 2]
            row = seen[side][e, 0]
            assert numpy.array_equal(row[:42].reshape(6, 7), mine) and numpy.array_equal(row[42:84].reshape(6, 7), other)
            assert list(row[-2:]) == [1, 1 - steps % 2]
            if threats and e % 50 == 0:
                for stones, plane in ((mine, row[84:126]), (other, row[126:168])):
                    wins = {places[four.index(0)] for four, places in lines(stones) if sum(four) == 3}
                    assert {(c // 7, c % 7) for c in numpy.flatnonzero(plane)} == {w for w in wins if planes[2][w]}
                assert [c % 7 for c in sorted(numpy.flatnonzero(row[168:210]), key=lambda c: c % 7)] == state.legal_actions()
                assert all(c < 7 or not planes[2].reshape(-1)[c - 7] for c in numpy.flatnonzero(row[168:210]))
            actions[side][e] = draw.choice(state.legal_actions())
            state.apply_action(int(actions[side][e, 0]))
        seen, reward, terminated, truncated, info = env.step(actions)
        assert not truncated.any()
        for e, state in enumerate(states):
            if state is not None and state.move_number() == steps + 1:
                assert bool(terminated[e]) == state.is_terminal()
                assert [reward[role][e, 0] for role in PLAYERS] == (state.returns() if state.is_terminal() else [0, 0])
                results.extend([state.returns()[0]] if state.is_terminal() else [])
        steps += 1
    env.close()
    assert len(results) == number and {-1.0, 1.0} <= set(results)


@functools.cache
def alpha_beta(columns, depth):
    """Value for who is on turn, and the move nearest to the middle among the best: 100 less the plies to a win. Plain minimax."""
    state = pyspiel.load_game("connect_four").new_initial_state()
    for column in columns:
        state.apply_action(column)
    if state.is_terminal():
        return (-100 if state.returns()[0] else 0), None
    if depth == 0:
        return 0, None
    found = (-1000, None)
    for column in (3, 2, 4, 1, 5, 0, 6):
        if column in state.legal_actions():
            value = -alpha_beta((*columns, column), depth - 1)[0]
            value = value - 1 if value > 0 else value + 1 if value < 0 else 0
            if value > found[0]:
                found = value, column
    return found


def test_the_script_looks_as_far_ahead_as_it_says(tmp_path, solver):
    output("train", judge.GAME, "--total_steps", "256", "--num_envs", "4", "--train_batch_size", "256", "--run_dir", tmp_path / "run",
           "--set", "policy.shared.model.fc_dims=[8]")
    for depth in (1, 3, 5):
        output("play", tmp_path / "run", "--policy", "first=scripted", "--policy", "second=random", "--episodes", "3", "--set", f"env.script_depth={depth}",
               "--set", "env.random_plies=0", "--out", tmp_path / "games.json")
        for episode in json.loads((tmp_path / "games.json").read_text())["episodes"]:
            moves = ()
            for step in range(episode["steps"]):
                move = int(episode["roles"][PLAYERS[step % 2]]["action"][step][0])
                if step % 2 == 0:
                    assert move == solver.shallow("".join(map(str, moves)), depth), (moves, depth)
                    assert depth > 3 or move == alpha_beta(moves, depth)[1], (moves, depth)
                moves += (move,)
