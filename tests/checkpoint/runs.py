"""Short training runs for tests of checkpoints: how to start them, and what they leave."""

import json
import os
import subprocess
import time

WDTRAIN = os.environ["WDTRAIN"]

EVERY = ["--set", "saving.checkpoint_freq=2", "--set", "saving.metrics_log_freq=1", "--device", "cpu"]
TAG = ["--set", "eval.every=0", "--set", "env.num_taggers=2", "--set", "env.num_runners=5", "--set", "env.episode_length=13"]
ALGORITHM = "policy={{tagger: {{algorithm: {0}}}, runner: {{algorithm: {0}, model: {{fc_dims: [16]}}}}}}"


def options(env, algorithm, iterations=12, setting="trainer.precision=fp32"):
    """One iteration is 7 steps of 8 replicas: episodes end within rollouts and continue across them."""
    if env in ("cartpole", "pendulum"):
        policy = ["--set", f"policy={{shared: {{algorithm: {algorithm}}}}}", "--stop_return", "none"]
    else:
        policy = ["--set", ALGORITHM.format(algorithm)] + (TAG if env == "tag_continuous" else [])
    return ["--env", env, *policy, "--num_envs", "8", "--train_batch_size", "56", "--total_steps", str(56 * iterations),
            "--set", setting, *EVERY]


def run(*arguments, failpoint=None, **settings):
    """Returns the finished process; a killed one has a negative return code."""
    environment = dict(os.environ)
    if failpoint is not None:
        environment["WD_FAILPOINT"] = failpoint
    return subprocess.run([WDTRAIN, *map(str, arguments), "--quiet"], capture_output=True, text=True, timeout=120, env=environment,
                          **settings)


def left(folder):
    """Everything that must be equal: metrics without times, weights, and tensors of the newest checkpoint."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    metrics = [{k: v for k, v in row.items() if not k.startswith("time/")} for row in rows]
    files = [*(folder / "weights").iterdir(), *(folder / "checkpoints" / "latest").rglob("*.safetensors")]
    return metrics, {str(path.relative_to(folder)): path.read_bytes() for path in files}


def resume(folder):
    """Continues to the end; if a run was killed before its first checkpoint, the caller starts it again."""
    done = run("--resume", folder)
    assert done.returncode == 0, done.stderr
    return left(folder)


def wait_for(condition, timeout=30):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def iterations(folder):
    """Number of lines in metrics.jsonl so far."""
    try:
        return len((folder / "metrics.jsonl").read_text().splitlines())
    except FileNotFoundError:
        return 0
