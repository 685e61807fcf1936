"""Reads the runs of wdtrain: metrics, configuration, weights, and trained policies as torch modules; and steps its environments.

>>> run = wdtrain.Run("runs/pole")
>>> run.metrics()["shared/recent_return"].iloc[-1]
>>> policy = run.policy("shared")
>>> env = wdtrain.make("cartpole", num_envs=8)
>>> action = policy.act(env.reset()[0])
"""

from wdtrain.envs import make
from wdtrain.files import RunError
from wdtrain.run import Run, runs

__all__ = ["Run", "RunError", "make", "runs"]
__version__ = "0.1.0"
