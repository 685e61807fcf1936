"""The model of a training on a GPU: it reproduces what was measured, and its sums agree with each other."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(os.environ["WD_SOURCE_DIR"]) / "tools/bench"
sys.path.insert(0, str(FOLDER))
import model  # noqa: E402

PARTS = {"loss": model.Model(model.Run()), "kept": model.Model(model.Run(on=("kept",)))}


@pytest.mark.parametrize("name", model.MEASURED)
def test_what_was_measured_is_reproduced(name):
    run = model.MEASURED[name]
    assert {"bf16, rows": 462, "tf32, rows": 555, "as shipped, tf32": 478, "tf32, table": 1382}[name] == round(run.measured)
    assert model.Model(run).ms() == pytest.approx(run.measured, rel=0.15)


@pytest.mark.parametrize("name", model.SINCE)
def test_other_settings_are_reproduced_with_the_same_factors(name):
    run = model.SINCE[name]
    assert model.Model(run).ms() == pytest.approx(run.measured, rel=0.15)


@pytest.mark.parametrize("name", model.AT_D688233)
def test_what_was_measured_last_is_reproduced(name):
    run = model.AT_D688233[name]
    assert model.Model(run).ms() == pytest.approx(run.measured, rel=0.15 if name == "tf32, table" else 0.1)


def test_a_chain_replaces_the_last_two_layers():
    before, after = (model.Model(dataclasses.replace(model.AT_D688233["bf16, rows"], on=(*model.MADE, *more))) for more in ((), ("chain",)))
    names = [{kernel.name for kernel in one.kernels} for one in (before, after)]
    assert names[0] - names[1] == {"layer 2", "output layer", "output layer: input, ReLU', sums", "layer 2: input, ReLU', sums"}
    assert names[1] - names[0] == {"last two layers", "last two layers: inputs, ReLU', sums"}
    assert after.ms() < 0.85 * before.ms()


def test_kernels_of_a_profile_are_reproduced():
    for name, run in model.PROFILES.items():
        measured, predicted = model.measured_groups(name), model.Model(run).groups()
        assert measured, name
        for group in ("search", "products", "environment", "element-wise", "bias sums", "loss"):
            if measured[group] > 20:
                assert predicted[group] == pytest.approx(measured[group], rel=0.2), (name, group)


def test_an_update_launches_what_a_profile_counts():
    """31,469 kernels an iteration at 26c389f."""
    assert model.Model(model.Run()).launches() == pytest.approx(31_469, rel=0.05)


@pytest.mark.parametrize("run", [run for run, _, _ in model.GOALS.values()] + list(model.MEASURED.values()))
def test_sums_are_consistent(run):
    for on in ((), tuple(model.CHANGES)):
        one = model.Model(dataclasses.replace(run, on=on))
        total = sum(kernel.ms for kernel in one.kernels)
        assert sum(one.groups().values()) == pytest.approx(total)
        assert one.ms() == pytest.approx(one.phase_ms("rollout") + one.phase_ms("update"))
        assert one.ms() <= total * (1 + 1e-9), "beside each other is not slower than one after the other"
        assert one.env_steps_per_s() == pytest.approx(run.envs * run.steps / one.ms() * 1e3)
        assert {kernel.kind for kernel in one.kernels} <= set(model.KINDS)
        assert all(kernel.us > 0 and kernel.launches > 0 for kernel in one.kernels)


def test_a_chunk_reads_what_its_rows_need():
    """Of the runners' first layer: 16,384 rows of 736 bf16 numbers in, 256 out; and rows are read once more for its weights."""
    kernels = {kernel.name: kernel for kernel in PARTS["loss"].kernels if (kernel.phase, kernel.policy) == ("update", "runner")}
    assert kernels["layer 1"].bytes == 16_384 * (736 + 256) * 2 == kernels["layer 1: weights"].bytes
    assert kernels["layer 1"].launches == 1250
    assert kernels["layer 1"].flop == 2 * 16_384 * 736 * 256


def test_kept_activations_leave_the_forward_pass_out():
    update = [kernel.name for kernel in PARTS["kept"].kernels if kernel.phase == "update"]
    assert "layer 1" not in update and "output layer" not in update and "layer 1: weights" in update
    gathered = model.Model(model.Run(policies=model.SHIPPED, on=("kept",)))
    assert "layer 1" in [kernel.name for kernel in gathered.kernels if kernel.phase == "update"], "minibatches recompute them"


def run(*options):
    done = subprocess.run([sys.executable, FOLDER / "model.py", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_it_prints():
    data = json.loads(run("--json"))
    assert {one["training"] for one in data["measured_at_26c389f"]} == set(model.MEASURED)
    for name, one in data["changes"].items():
        assert [step["change"] for step in one["steps"][1:]] == model.GOALS[name][1]
    assert "| goal |" in run("--md") and "Predicted: bf16, rows" in run()
    assert "runner: loss" in run("--precision", "tf32", "--on", "staged,chunk")


def test_profiles_of_the_script_are_compared(tmp_path):
    profile = {"iterations": 4, "kernels": [{"kernel": "wd::loss_row", "calls": 4, "device_s": 0.2}, {"kernel": "nvjet_1", "calls": 4, "device_s": 0.4}]}
    (tmp_path / "gpu.json").write_text(json.dumps({"profiles": {"bf16": profile, "other": profile, "tf32": None}}))
    found = json.loads(run("--profiles", tmp_path / "gpu.json", "--on", "staged", "--json"))
    assert list(found) == ["bf16"] and found["bf16"]["measured_ms"] == {"loss": 50.0, "products": 100.0}
    assert found["bf16"]["predicted_ms"]["loss"] < 20
    assert "50.0 / " in run("--profiles", tmp_path / "gpu.json")


def test_an_unknown_change_is_refused():
    done = subprocess.run([sys.executable, FOLDER / "model.py", "--on", "faster"], capture_output=True, text=True)
    assert done.returncode == 2 and "the changes are search, staged" in done.stderr
