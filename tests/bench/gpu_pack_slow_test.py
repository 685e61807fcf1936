"""gpu.sh with the emulated GPU, in another folder, from a pack of gpu_pack.sh: so its commands and the pack are right.

It takes minutes: ./wd test runs it only where a script that runs on a GPU has changed, and always with --all."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(os.environ["WD_SOURCE_DIR"]) / "tools/bench/gpu.sh"

# Everything that a copy of the tracked files has and the pack does not.
TRACKED = ["configs", "envs", "tests", "tools"]


@pytest.mark.skipif("WD_SLOWDOWN" in os.environ, reason="sanitizers leave the emulated GPU out")
def test_a_pack_works_in_another_folder(tmp_path):
    """With the build's own folder and the toolkit hidden, as on a machine that has neither."""
    source, build, there = SCRIPT.parents[2], Path(os.environ["WD_BUILD_DIR"]), tmp_path / "there"
    for name in TRACKED:
        shutil.copytree(source / name, there / name)
    packed = subprocess.run([source / "tools/bench/gpu_pack.sh", "--build_dir", build, "--out", there / ".gpu", "--emulated"], capture_output=True, text=True)
    assert packed.returncode == 0, packed.stderr
    megabytes = sum(path.stat().st_size for path in (there / ".gpu").rglob("*") if path.is_file() and not path.is_symlink() and "emulated" not in path.name) / 1e6
    assert megabytes < 25, packed.stdout  # 64 MB can be carried at once, with the tracked files
    hidden = [build, *{path.resolve().parent for path in Path("/usr/local").glob("cuda*/lib64")}]
    hide = " && ".join(f"mount -t tmpfs none {folder}" for folder in hidden)
    work = f"""cd {there} && . .gpu/there.sh && tools/bench/gpu.sh --device emulated --no_build --call 1 --out results
        code=$?; [ $code = 3 ] || exit $code
        tools/bench/gpu.sh --device emulated --no_build --parts peers,check,bench,tests --out results
        code=$?; [ $code = 3 ] || exit $code"""
    script = f"mount --make-rprivate / && {hide} || exit 77\n{work}"
    done = subprocess.run(["unshare", "--mount", "bash", "-c", script], capture_output=True, text=True, timeout=500,
                          env={**os.environ, "WD_SLOWDOWN": "4", "PATH": f"{Path(shutil.which('python3')).parent}:{os.environ['PATH']}"})
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (path,) = (there / "results").glob("*-gpu-standin.json")
    report = json.loads(path.read_text())
    steps = {step["step"]: step for step in report["steps"]}
    for name, step in steps.items():
        expected = "skipped" if name in ("gpu", "warm_up", "stalls") or name.startswith("peers_") or name.endswith("_gpu_test") else "passed"
        assert step["outcome"] == expected, step
    assert report["commit"] == (there / ".gpu/commit").read_text().strip()
    single = {name: found for name, found in report["bench"].items() if "rows" not in found}
    assert len(single) == 13 and all(found["env_steps_per_s"] > 0 for found in single.values())
    assert {"sweep_bf16", "sweep_kept_bf16", "sweep_tf32", "sweep_kept_tf32", "sweep_envs", "sweep_table", "sweep_shipped"} < set(report["bench"])
    assert set(report["profiles"]) == {"bf16", "tf32", "shipped_tf32", "shipped_bf16", "table_tf32", "table_bf16"}
    for name, profile in report["profiles"].items():
        assert profile["iterations"] == 4 and sum(profile["phases_s"].values()) <= profile["seconds"], name
