"""Reads the runs of wdtrain: metrics, configuration, weights, and trained policies as torch modules.

>>> run = wdtrain.Run("runs/pole")
>>> run.metrics()["shared/recent_return"].iloc[-1]
>>> policy = run.policy("shared")
>>> action = policy.act(observation)
"""

from wdtrain.files import RunError
from wdtrain.run import Run, runs

__all__ = ["Run", "RunError", "runs"]
__version__ = "0.1.0"
