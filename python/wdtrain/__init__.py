"""Trains with wdtrain, reads its runs (metrics, configuration, weights, and trained policies as torch modules), and steps its environments.

>>> run = wdtrain.train("cartpole", total_steps=100_000, run_dir="runs/pole")   # later: wdtrain.Run("runs/pole")
>>> run.metrics()["shared/recent_return"].iloc[-1]
>>> policy = run.policy("shared")
>>> env = wdtrain.make("cartpole", num_envs=8)
>>> action = policy.act(env.reset()[0])
"""

from wdtrain.envs import make
from wdtrain.files import RunError, UsageError
from wdtrain.run import Run, Runs, runs
from wdtrain.spaces import flatten
from wdtrain.sweep import sweep
from wdtrain.train import evaluate, train

__all__ = ["Run", "RunError", "Runs", "UsageError", "evaluate", "flatten", "make", "runs", "sweep", "train"]
__version__ = "0.1.0"
