"""Kuhn poker and its judge against open-spiel, and a short training that becomes hard to exploit."""

import os
import random

import numpy
import pyspiel
import pytest

from cli.program import output
from judges import kuhn as judge
from judges.kuhn import wdtrain

PLAYERS = ("first", "second")


def test_the_judge_knows_the_exploitability_of_known_players():
    states = judge.information_states()
    assert judge.exploitability(dict.fromkeys(states, (0.5, 0.5))) == pytest.approx(11 / 24)  # half of 11/12
    # The equilibria of Kuhn 1950: the first player bets a jack with probability alpha, at most 1/3.
    for alpha in (0.0, 0.2, 1 / 3):
        bets = {"0": alpha, "1": 0, "2": 3 * alpha, "0pb": 0, "1pb": alpha + 1 / 3, "2pb": 1, "0p": 1 / 3, "1p": 0, "2p": 1, "0b": 0, "1b": 1 / 3, "2b": 1}
        assert set(bets) == set(states)
        assert judge.exploitability({state: (1 - p, p) for state, p in bets.items()}) == pytest.approx(0, abs=1e-12)


def test_a_thousand_games_are_those_of_open_spiel():
    number = 1000
    env = wdtrain.make(os.fspath(judge.GAME), num_envs=number, device="cpu", arrays="numpy", seed=2)
    seen, info = env.reset()
    game, draw, states = pyspiel.load_game("kuhn_poker"), random.Random(1), []
    for e in range(number):
        state = game.new_initial_state()
        for role in PLAYERS:
            state.apply_action(int(numpy.argmax(seen[role][e, 0, :3])))
        states.append(state)
    deals = {tuple(state.history()) for state in states}
    assert len(deals) == 6 and all(abs(sum(tuple(s.history()) == deal for s in states) - number / 6) < 60 for deal in deals)
    for step in range(3):
        side, actions = PLAYERS[step % 2], {role: numpy.full((number, 1), 2) for role in PLAYERS}
        for e, state in enumerate(states):
            if state is None:
                for role in PLAYERS:
                    actions[role][e] = numpy.argmax(info["action_mask"][role][e, 0])
                continue
            row = seen[side][e, 0]
            done = state.history()[2:]
            assert list(row[3:7]) == [float(len(done) > k // 2 and done[k // 2] == k % 2) for k in range(4)]
            assert list(row[7:]) == [1, 1 - step % 2] and list(info["action_mask"][side][e, 0]) == [1, 1, 0]
            assert list(info["action_mask"][PLAYERS[1 - step % 2]][e, 0]) == [0, 0, 1]
            actions[side][e] = draw.randrange(2)
            state.apply_action(int(actions[side][e, 0]))
        seen, reward, terminated, _, info = env.step(actions)
        for e, state in enumerate(states):
            if state is None:
                continue
            assert bool(terminated[e]) == state.is_terminal()
            assert [reward[role][e, 0] for role in PLAYERS] == (state.returns() if state.is_terminal() else [0, 0])
            states[e] = None if state.is_terminal() else state
    assert states == [None] * number
    env.close()


def test_a_short_training_is_hard_to_exploit(tmp_path):
    output("train", judge.GAME, "--config", judge.GAME.with_suffix(".yaml"), "--total_steps", "1M", "--run_dir", tmp_path / "run", "--set", "policy.shared.lr=2e-3",
           "--set", "policy.shared.average=0.98")
    assert judge.exploitability(judge.table_of(wdtrain.Run(tmp_path / "run"))) < 0.15  # at the beginning: about 0.4
    assert judge.exploitability(judge.table_of(wdtrain.Run(tmp_path / "run"), "shared.average")) < 0.12
