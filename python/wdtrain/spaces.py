"""What an environment in Python observes and does, as the numbers of networks."""

from __future__ import annotations

from typing import Any

import numpy

from wdtrain.files import UsageError
from wdtrain.worker import Actor, Observer


def flatten(space: Any, observation: Any) -> numpy.ndarray:
    """The row of float32 that policies read, of an observation of this space of Gymnasium: the parts of Dict and Tuple in the
    order of the space and without action_mask, Discrete and MultiDiscrete as 0 and 1."""
    return row_of(Observer(space), observation)


def row_of(observer, observation):
    row = numpy.zeros(observer.size, numpy.float32)
    observer.write(observation, row)
    return row


class Spaces:
    """The observations and actions of an agent of an environment. agent: its name, if the environment is PettingZoo's."""

    def __init__(self, env, agent=None):
        if isinstance(env, type):
            raise UsageError(f"env is the class {env.__name__}: give an environment, {env.__name__}()")
        observation, action = env.observation_space, env.action_space
        if callable(observation):
            if agent not in env.possible_agents:
                raise UsageError(f"agent={agent!r}: name one of the environment's agents: {', '.join(env.possible_agents)}")
            observation, action = observation(agent), action(agent)
        self.observer, self.actor = Observer(observation), Actor(action)

    def row(self, observation):
        """(numbers, mask); the mask is None if it is not part of the observation."""
        mask = numpy.ones(self.actor.choices, bool) if self.observer.has_mask else None
        if self.observer.has_mask:
            self.actor.read_mask(observation["action_mask"], mask)
        return row_of(self.observer, observation), mask

    def action(self, numbers):
        """What env.step() takes."""
        found = self.actor.read(numbers)
        return int(found) if isinstance(found, numpy.integer) else found
