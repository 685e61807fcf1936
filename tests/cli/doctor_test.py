"""doctor_test.py: `wdtrain doctor` reports what a machine has, and finds what is wrong with it."""

import json
import os
import re
import resource
import shutil
import subprocess

import pytest
import torch

from cli.program import wdtrain


def examined(*options, **settings):
    done = wdtrain("doctor", "--json", *options, **settings)
    assert not done.stderr or done.returncode == 0, done.stderr
    return done.returncode, {finding["name"]: finding for finding in json.loads(done.stdout)}


def test_a_machine_that_works(tmp_path):
    code, findings = examined("--run_dir", tmp_path / "runs" / "x")
    assert code == 0 and not any(finding["level"] == "error" for finding in findings.values())
    assert f"LibTorch {torch.__version__.split('+')[0]}" in findings["program"]["text"]
    assert f"{len(os.sched_getaffinity(0))} processor" in findings["processor"]["text"]
    assert f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]} open files" == findings["limits"]["text"]
    gib = float(re.match(r"([\d.]+) GiB free in " + re.escape(str(tmp_path)), findings["disk"]["text"])[1])
    assert gib == pytest.approx(shutil.disk_usage(tmp_path).free / 2**30, abs=1.0)
    assert "over two ranks with Gloo in " in findings["all-reduce"]["text"] or torch.cuda.device_count() > 1
    assert re.search(r"training cartpole: [\d.]+k steps/s on ", findings["speed"]["text"])
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_quick_measures_nothing():
    code, findings = examined("--quick")
    assert code == 0 and not {"all-reduce", "speed"} & set(findings)


def test_a_folder_that_cannot_be_written_is_an_error():
    done = wdtrain("doctor", "--quick", "--run_dir", "/proc/runs")
    assert done.returncode == 1
    assert re.search(r"^error +disk .*/proc/\.wd_doctor_\d+: cannot ", done.stdout, re.M), done.stdout
    assert "-> runs are written there: choose --run_dir" in done.stdout


def test_limits_are_warnings():
    command = f"ulimit -n 200; {os.environ['WDTRAIN']} doctor --quick --json"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    limits = next(finding for finding in json.loads(done.stdout) if finding["name"] == "limits")
    assert (done.returncode, limits["level"], limits["remedy"]) == (0, "warning", "several workers may need more: ulimit -n 1024")


def test_threads_of_which_a_job_may_use_one():
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), os.environ["WDTRAIN"], "doctor", "--quick", "--json"]
    findings = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert next(finding for finding in findings if finding["name"] == "processor")["text"].split(", ")[1] == "1 processor"
