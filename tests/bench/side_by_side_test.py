"""How the comparisons with peers set up jax, shown with a stand-in for it."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["WD_SOURCE_DIR"]) / "tools/bench/peers"))
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


def test_both_sides_multiply_in_tf32_if_asked(jax):
    side_by_side.jax_for("gpu", "tf32")
    assert jax.settings == {"jax_default_matmul_precision": "tensorfloat32"}


def test_peers_run_with_the_machines_own_python_where_none_are_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(side_by_side, "ROOT", tmp_path)
    assert side_by_side.peers_python() == Path(sys.executable)
    installed = tmp_path / ".venv-peers/bin/python"
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert side_by_side.peers_python() == installed


def test_the_commit_is_said_without_git(monkeypatch, tmp_path):
    monkeypatch.setattr(side_by_side, "ROOT", tmp_path)  # no repository
    monkeypatch.delenv("WD_COMMIT", raising=False)
    assert side_by_side.commit() == "unknown"
    monkeypatch.setenv("PATH", str(tmp_path))  # no git either
    assert side_by_side.commit() == "unknown"
    monkeypatch.setenv("WD_COMMIT", "c0ffee")
    assert side_by_side.commit() == "c0ffee"


def test_tf32_needs_a_gpu():
    script = Path(os.environ["WD_SOURCE_DIR"]) / "tools/bench/peers/tag_continuous_jax.py"
    done = subprocess.run([sys.executable, script, "--precision", "tf32"], capture_output=True, text=True)
    assert done.returncode == 1 and "needs --device gpu" in done.stderr
