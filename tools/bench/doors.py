"""Compares environments of wd in Python with those in the program and with EnvPool, and Python's environments in the program with Python itself, in pairs.

    .venv/bin/python tools/bench/doors.py [--pairs 9] [--seconds 1] [--only TEXT] [--json FILE]

Both sides use all processors, and write rows of observations, not tables. Python's side sends actions that were drawn before, in turn; the program draws them. EnvPool wants
packages of other versions: `python3 -m venv .venv-envpool && .venv-envpool/bin/pip install envpool`. Without it, its rows are left out.
Python's CartPole: the other side is as many processes as processors, which step gymnasium.make("CartPole-v1") with actions that were drawn before, and nothing else; ours are steps
of the game, without those that reset. make_vec is gymnasium's, the faster of its
two modes, and both sides are measured by gymnasium.utils.performance.benchmark_vector_step. Training: PPO with the settings of RL Zoo for CartPole on 8 environments until a mean return of 475, both from the seed that is the number of
the pair; the peer is the faster of Stable-Baselines3 with SubprocVecEnv and 1 or as many threads as processors.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
from gate import KNOWN, interval  # noqa: E402
from side_by_side import alternate  # noqa: E402

# Behind either side, which has `env`, 16 `actions` and how many `envs` there are.
PLAY = """
def play(seconds):
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for one in actions:
            env.step(one)
        steps += 16
    return steps * envs / (time.perf_counter() - begin)
play(0.3)
print(play(seconds))
"""
DOOR = """
import sys, time, torch, wdtrain
name, envs, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env = wdtrain.make(name, envs, **eval(sys.argv[4]))
env.reset()
if hasattr(env, "roles"):
    actions = [{key: torch.stack([torch.randint(0, n, role.action.shape[:2]) for n in role.heads], -1) for key, role in env.roles.items()} for _ in range(16)]
else:
    actions = [torch.randint(0, env.single_action_space.n, (envs,)) for _ in range(16)]
    if env.game.arrays == "numpy":
        actions = [one.numpy() for one in actions]
"""
ENVPOOL = """
import sys, time, numpy, envpool
envs, seconds = int(sys.argv[2]), float(sys.argv[3])
env = envpool.make_gymnasium("CartPole-v1", num_envs=envs, num_threads=int(sys.argv[4]))
env.reset()
actions = [numpy.random.randint(0, 2, envs) for _ in range(16)]
"""
# As many processes as processors; prints steps a second and steps by steps and resets.
GYMNASIUM = """
import gymnasium, multiprocessing, numpy, os, sys, time
def work(seconds, results, begin):
    env, actions, steps, resets = gymnasium.make("CartPole-v1"), numpy.random.default_rng(os.getpid()).integers(0, 2, 1 << 16), 0, 0
    env.reset(seed=os.getpid())
    begin.wait()
    start = time.perf_counter()
    while (now := time.perf_counter()) - start < seconds:
        for one in actions[:2000]:
            *_, terminated, truncated, _ = env.step(one)
            if terminated or truncated:
                env.reset()
                resets += 1
        steps += 2000
    results.put((steps / (now - start), steps / (steps + resets)))
results, begin = multiprocessing.Queue(), multiprocessing.Barrier(os.cpu_count())
processes = [multiprocessing.Process(target=work, args=(float(sys.argv[1]), results, begin)) for _ in range(os.cpu_count())]
[one.start() for one in processes]
rates, shares = zip(*[results.get() for _ in processes])
print(sum(rates), sum(shares) / len(shares))
"""
SB3 = """
import sys, time, torch, gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import SubprocVecEnv
class Until(BaseCallback):
    def _on_step(self):
        returns = [one["r"] for one in self.model.ep_info_buffer]
        return len(returns) < 100 or sum(returns) < 47500
if __name__ == "__main__":
    threads, seed = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(threads)
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", 8, vec_env_cls=SubprocVecEnv, seed=seed), n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
                learning_rate=LinearSchedule(1e-3, 0, 1), clip_range=LinearSchedule(0.2, 0, 1), seed=seed, device="cpu")
    begin = time.perf_counter()
    model.learn(200_000, callback=Until())
    seconds = time.perf_counter() - begin
    model.env.close()
    print(model.num_timesteps / seconds)
"""
ZOO = ["policy.agent.lr=[[0,1e-3],[200000,0]]", "policy.agent.gamma=0.98", "policy.agent.gae_lambda=0.8", "policy.agent.num_epochs=20", "policy.agent.num_minibatches=1",
       "policy.agent.entropy_coeff=0", "policy.agent.clip_param=[[0,0.2],[200000,0.001]]", "policy.agent.model={fc_dims: [64, 64], activation: tanh, separate_value: true}"]
VECTOR = """
import sys, gymnasium, wdtrain
from gymnasium.utils.performance import benchmark_vector_step
if __name__ == "__main__":
    kind, envs, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if kind == "wd":
        env = wdtrain.make("gym:CartPole-v1", envs, arrays="numpy", device="cpu")
    else:
        env = gymnasium.make_vec("CartPole-v1", envs, vectorization_mode=kind)
    print(benchmark_vector_step(env, seconds, seed=1))
    env.close()
"""
NUMPY = "{'arrays': 'numpy'}"
POOL_PYTHON = ROOT / ".venv-envpool/bin/python"


def python(code, *arguments, interpreter=sys.executable):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/python")}
    done = subprocess.run([interpreter, "-c", code + PLAY, *map(str, arguments)], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return float(done.stdout)


def program(name, envs, seconds, *settings):
    command = [ROOT / "build/wdtrain", "bench", "--env", name, "--mode", "env", "--num_envs", str(envs), "--device", "cpu", "--seconds", str(seconds),
               "--json", "-", *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **KNOWN})
    return json.loads(done.stdout)["env_steps_per_s"]


def envpool(envs, seconds):
    return max(python(ENVPOOL, "cartpole", envs, seconds, threads, interpreter=POOL_PYTHON) for threads in (1, os.cpu_count()))


def numbers(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [float(word) for word in done.stdout.split()]


def gymnasium(seconds):
    rate, gymnasium.share = numbers(GYMNASIUM, seconds)
    return rate


def vector(kind, envs, seconds):
    """Gymnasium's own benchmark."""
    done = subprocess.run([sys.executable, "-c", VECTOR, kind, str(envs), str(seconds)], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "build/python")})
    return float(done.stdout)


def trained_peer():
    trained_peer.seed = getattr(trained_peer, "seed", 0) + 1
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "sb3.py"  # processes are started from a file
        script.write_text(SB3)
        rates = []
        for threads in {1, os.cpu_count()}:
            done = subprocess.run([sys.executable, script, str(threads), str(trained_peer.seed)], capture_output=True, text=True, check=True)
            rates.append(float(done.stdout.split()[-1]))
        return max(rates)


def trained():
    """Steps a second of training, from the first step on: as the peer's, without imports."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "build/wdtrain", "train", "--env", "gym:CartPole-v1", "--device", "cpu", "--num_envs", "8", "--train_batch_size", "256", "--total_steps", "200k", "--seed",
                   str(trained_peer.seed), "--set", "trainer.stop_return=475", "--run_dir", f"{folder}/run", "--quiet"]
        subprocess.run([*command, *(word for one in ZOO for word in ("--set", one))], check=True, capture_output=True)
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
        return summary["env_steps"] / summary["wall_s"]


CASES = {
    "gym:CartPole-v1, 256 replicas, against gymnasium": lambda s: (lambda: gymnasium(s), lambda: program("gym:CartPole-v1", 256, s) * gymnasium.share),
    "gym:CartPole-v1, 64 replicas, against gymnasium": lambda s: (lambda: gymnasium(s), lambda: program("gym:CartPole-v1", 64, s) * gymnasium.share),
    "gym:CartPole-v1, 64 replicas, against make_vec": lambda s: (lambda: max(vector("sync", 64, s), vector("async", 64, s)), lambda: vector("wd", 64, s)),
    "gym:CartPole-v1, PPO to 475, against SB3": lambda s: (trained_peer, trained),
    "tag_continuous, 1,024 replicas, against bench": lambda s: (lambda: program("tag_continuous", 1024, s, "--set", "trainer.observations=rows"), lambda: python(DOOR, "tag_continuous", 1024, s, "{}")),
    "cartpole, 65,536 replicas, against bench": lambda s: (lambda: program("cartpole", 65536, s), lambda: python(DOOR, "cartpole", 65536, s, "{}")),
    "cartpole, 1,024 replicas, against bench": lambda s: (lambda: program("cartpole", 1024, s), lambda: python(DOOR, "cartpole", 1024, s, NUMPY)),
    "cartpole, 1,024 replicas, against EnvPool": lambda s: (lambda: envpool(1024, s), lambda: python(DOOR, "cartpole", 1024, s, NUMPY)),
    "cartpole, 64 replicas, against EnvPool": lambda s: (lambda: envpool(64, s), lambda: python(DOOR, "cartpole", 64, s, NUMPY)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = {}
    print(f"{'case':50}{'other [env/s]':>15}{'Python [env/s]':>16}  ratio (95 % interval)")
    for name, sides in CASES.items():
        if options.only not in name:
            continue
        if "EnvPool" in name and not POOL_PYTHON.exists():
            print(f"{name:50}left out: there is no envpool")
            continue
        other, ours = alternate(options.pairs, *sides(options.seconds))
        ratios = [b / a for a, b in zip(other, ours, strict=True)]
        least, most = interval(ratios)
        results[name] = {"other": other, "python": ours, "ratio": statistics.median(ratios), "interval": [least, most]}
        print(f"{name:50}{statistics.median(other):15,.0f}{statistics.median(ours):16,.0f}  {statistics.median(ratios):.3f} ({least:.3f} to {most:.3f})",
              flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
