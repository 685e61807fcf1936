"""Compares memory_chain with whole episodes of bsuite's and gymnax's MemoryChain, recorded by
tests/data/memory_chain/record_memory_chain.py."""

import os
import pathlib

import numpy as np
import pytest
from envs.trace import play

RECORD = np.load(pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests/data/memory_chain/memory_chain.npz")
CASES = sorted({name.rsplit("/", 1)[0] for name in RECORD.files if "/" in name})


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_originals(case):
    length, bits = map(int, case.split()[1:])
    rows = {name.removeprefix(f"{case}/"): RECORD[name] for name in RECORD.files if name.startswith(f"{case}/")}
    assert rows["observations"].shape == (len(rows["actions"]), length + 2, bits + 2)
    for context, query, actions, rewards, done, observations in zip(
            *(rows[name] for name in ("context", "query", "actions", "rewards", "done", "observations")), strict=True):
        steps = play("memory_chain", dict(memory_length=length, num_bits=bits), [[action] for action in [*actions, 0, 0]],
                     dict(context=context, query=[int(query)]))["steps"]
        np.testing.assert_allclose([step["observations"][0] for step in steps], observations, atol=1e-7)  # gymnax divides in float32
        assert [step["rewards"][0] for step in steps[1:]] == rewards.tolist()
        assert [bool(step["terminated"]) for step in steps[1:]] == done.tolist()
        assert not any(step["truncated"] for step in steps[1:])
        assert steps[-1]["state"]["correct"] == [int(rewards[-1] > 0)]


def test_the_record_shows_what_it_should():
    assert "bsuite" in " ".join(CASES) and "gymnax" in " ".join(CASES)
    for case in CASES:
        last = RECORD[f"{case}/rewards"][:, -1]
        assert set(last) == {-1, 1} and not RECORD[f"{case}/rewards"][:, :-1].any(), case
    assert len(set(RECORD["bsuite 12 10/query"])) >= 4


def test_starts_are_uniform():
    starts = [play("memory_chain", dict(num_bits=4), [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(24)]
    bits = np.array([start["context"] for start in starts])
    assert (np.abs(bits.mean(0) - 0.5) < 0.35).all() and len(np.unique(bits, axis=0)) >= 8
    assert set(np.array([start["query"] for start in starts]).ravel()) == {0, 1, 2, 3}
