"""Compares training with rl-warp-drive on a GPU with ours; prints one JSON object to stdout. Not run on a GPU
yet.

    .venv-peers/bin/python tools/bench/peers/warpdrive_gpu.py --device gpu [--pairs 5]

Uses its shipped run configuration of tag_continuous (10 + 100, 10 nearest, 100 replicas, 25,000
environment steps per iteration) with its Numba back end or, if that cannot be imported, its PyCUDA back
end. Each window is a process. The speed comes from its trainer's own statistics over all iterations except
the first.
"""

import argparse
import functools
import importlib
import json
import pathlib
import subprocess
import sys

from side_by_side import ROOT, Ours, Unavailable, comparison, parser, report, shown

CONFIG = ROOT / "tests/data/warpdrive/tag_continuous.yaml"


def back_end():
    reasons = []
    for name in ("numba.cuda", "pycuda.driver"):
        try:
            module = importlib.import_module(name)
            if name == "numba.cuda" and not module.is_available():
                raise ImportError("sees no GPU")
            return name.split(".")[0]
        except Exception as why:  # a broken driver raises its own errors
            reasons.append(f"{name}: {why}")
    raise Unavailable("no back end of rl-warp-drive: " + "; ".join(reasons))


def train(iterations):
    """Environment steps per second of WarpDrive's trainer; runs in a separate process."""
    import yaml
    from example_envs.tag_continuous.tag_continuous import TagContinuous
    from warp_drive.env_wrapper import EnvWrapper
    from warp_drive.training.trainers.trainer_a2c import TrainerA2C
    config = yaml.safe_load(CONFIG.read_text())
    batch = config["trainer"]["train_batch_size"]
    # WarpDrive counts training in episodes.
    config["trainer"]["num_episodes"] = max(1, (iterations + 1) * batch // config["env"]["episode_length"])
    config["saving"] |= {"metrics_log_freq": 10**9, "model_params_save_freq": 10**9}
    wrapper = EnvWrapper(TagContinuous(**config["env"]), num_envs=config["trainer"]["num_envs"], env_backend=back_end())
    roles = {"tagger": list(wrapper.env.taggers), "runner": list(wrapper.env.runners)}
    trainer = TrainerA2C(env_wrapper=wrapper, config=config, policy_tag_to_agent_id_map=roles, verbose=False)
    trainer.num_iters = 1
    trainer.train()  # compiles
    first = trainer.perf_stats.total_time
    trainer.num_iters = iterations
    trainer.train()
    speed = iterations * batch / (trainer.perf_stats.total_time - first)
    trainer.graceful_close()
    return speed


def compare(options):
    if options.device != "gpu":
        raise Unavailable("runs on a GPU alone (--gpu)")
    back_end()
    ours = Ours(options.device)

    def theirs():
        command = [sys.executable, pathlib.Path(__file__), "--train", options.iterations]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{shown(command)}: {done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])["env_steps_per_s"]

    def mine():
        return json.loads(ours.run("bench", "--config", CONFIG, "--mode", "train", "--seconds", options.seconds, "--device", ours.device, "--json"))["env_steps_per_s"]

    return comparison(options, theirs, mine, ours, agents=110)


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--iterations", type=int, default=10)
    options.add_argument("--train", type=int, help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.train:
        print(json.dumps({"env_steps_per_s": train(options.train)}))
        return
    report(options, "rl-warp-drive on a GPU", "tag_continuous, WarpDrive's shipped run configuration, trained", ["rl-warp-drive", "numba", "torch"],
           {"nearest, train": functools.partial(compare, options)})


if __name__ == "__main__":
    main()
