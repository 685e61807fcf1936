"""How the comparisons with peers set up jax, shown with a stand-in for it."""

import os
import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["WD_SOURCE_DIR"]) / "tests/bench/peers"))
import side_by_side  # noqa: E402


@pytest.fixture
def jax(monkeypatch):
    for name in ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE"):
        monkeypatch.setenv(name, "")  # restored at the end
        monkeypatch.delenv(name)
    module = types.SimpleNamespace(settings={}, devices=lambda: ["one"])
    module.config = types.SimpleNamespace(update=lambda name, value: module.settings.update({name: value}))
    monkeypatch.setitem(sys.modules, "jax", module)
    return module


def test_both_sides_multiply_in_float32(jax):
    assert side_by_side.jax_for("gpu") is jax
    assert jax.settings == {"jax_default_matmul_precision": "highest"}


def test_memory_is_left_to_our_side(jax):
    side_by_side.jax_for("gpu")
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert os.environ["JAX_PLATFORMS"] == "cuda"
