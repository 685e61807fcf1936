"""What networks with model: {input: entities} read instead of an observation (kernels/entities.h, kernels/pool.h).

Observations here are [n, observation_size], whose known sizes the export to ONNX needs.
"""

import math
from typing import List

import torch
from torch import Tensor, nn

from wdtrain.files import RunError


def _entries(columns, count, size):
    """Where `count` numbers of each column [first, step] are in an observation."""
    for first, step in columns:
        if count > 0 and not (step > 0 <= first and first + (count - 1) * step < size):
            raise RunError(f"the observation has {size} entries, and not {count} from {first} on, {step} apart")
    return torch.tensor([first + k * step for first, step in columns for k in range(count)], dtype=torch.long)


class EntityList(nn.Module):
    """Things that are observed in the same way. numbers: one of "lists" in the metadata's "entities"."""

    def __init__(self, numbers, half_distance, nearest, size):
        super().__init__()
        self.count, self.kinds = numbers["count"], numbers["kinds"]
        self.half_distance, self.nearest = half_distance, nearest
        for name in ("x", "y", "heading", "kind", "presence"):
            self.register_buffer(name, _entries([numbers[name]] if numbers[name] else [], self.count, size))
        self.register_buffer("features", _entries(numbers["features"], self.count, size))
        self.num_features = len(numbers["features"])
        self.width = 2 + 2 * (numbers["heading"] is not None) + self.num_features

    def place(self, observation: Tensor, cos: Tensor, sin: Tensor) -> List[Tensor]:
        """Two numbers of each thing, and two of its heading if it has one. cos, sin: [n, 1], of the observer's."""
        x, y = observation.index_select(1, self.x), observation.index_select(1, self.y)
        distance = torch.sqrt(x * x + y * y)
        closeness = self.half_distance / ((distance + 1e-6) * (self.half_distance + distance))
        x, y = x * closeness, y * closeness
        parts = [x * cos + y * sin, y * cos - x * sin]
        if self.heading.numel() > 0:
            angle = 2.0 * math.pi * observation.index_select(1, self.heading)
            parts += [torch.cos(angle), torch.sin(angle)]
        return parts

    def further(self, observation: Tensor) -> List[Tensor]:
        return [observation.index_select(1, self.features[f * self.count : (f + 1) * self.count]) for f in range(self.num_features)]

    def is_kind(self, observation: Tensor, kind: int) -> Tensor:
        """[n, count]: which things exist and are of this kind."""
        if self.presence.numel() > 0:
            here = observation.index_select(1, self.presence) != 0
        else:
            here = torch.ones_like(observation.index_select(1, self.x)) != 0
        return here & (observation.index_select(1, self.kind) == kind) if self.kind.numel() > 0 else here

    def forward(self, observation: Tensor, cos: Tensor, sin: Tensor) -> List[Tensor]:
        """The numbers of the nearest things of each kind, each followed by 1; zeros if there are fewer."""
        if self.count == 0:
            return [torch.zeros_like(cos).expand(-1, self.kinds * self.nearest * (self.width + 1))]
        things = torch.stack(self.place(observation, cos, sin) + self.further(observation), 2)
        x, y = observation.index_select(1, self.x), observation.index_select(1, self.y)
        # Rounded as in the program, which fuses one product with the sum.
        square = (x.double() * x.double() + (y * y).double()).to(x.dtype)
        far = torch.full_like(square, math.inf)
        found: List[Tensor] = []
        for kind in range(self.kinds):
            left = torch.where(self.is_kind(observation, kind) & (square < math.inf), square, far)
            for _ in range(self.nearest):
                index = left.argmin(1, keepdim=True)  # the first of those that are equally near
                exists = left.gather(1, index) < math.inf
                thing = things.gather(1, index.unsqueeze(2).expand(-1, 1, self.width))[:, 0]
                found.append(torch.where(exists, thing, torch.zeros_like(thing)))
                found.append(exists.to(thing.dtype))
                left = left.scatter(1, index, math.inf)
        return found


class Pool(nn.Module):
    """The mean and the maximum of the embeddings of all things, and means weighted by attention."""

    def __init__(self, settings, encoder):
        super().__init__()
        self.encoder = encoder
        self.mean, self.max = settings["mean"], settings["max"]
        self.heads, self.width = settings["attention"], settings["embedding"]

    def forward(self, things: Tensor, exists: Tensor) -> List[Tensor]:
        """things: [n, things, numbers], exists: [n, things, 1]."""
        outputs = self.encoder(things)
        embedding = outputs[:, :, : self.width]
        here = exists.to(embedding.dtype)
        pooled: List[Tensor] = []
        if self.mean:
            pooled.append((embedding * here).sum(1) / here.sum(1).clamp(min=1.0))
        if self.max:
            most = torch.where(exists, embedding, torch.full_like(embedding, -math.inf)).amax(1)
            pooled.append(torch.where(most == -math.inf, torch.zeros_like(most), most))
        for head in range(self.heads):
            score = outputs[:, :, self.width + head : self.width + head + 1]
            weight = torch.where(exists, score, torch.full_like(score, -1e30)).softmax(1) * here
            pooled.append((embedding * weight).sum(1))
        return pooled


class Entities(nn.Module):
    """forward(observation [..., size]) gives the observer's own entries, then the nearest things of each kind in each list, then
    what is pooled. settings: the metadata's "entities". encoder: computes embeddings and scores; None without pooling."""

    def __init__(self, settings, size, encoder=None):
        super().__init__()
        self.size = size
        self.register_buffer("own", torch.cat([_entries([[begin, 1]], count, size) for begin, count in settings["own"]] or [_entries([], 0, size)]))
        self.register_buffer("heading", _entries([[entry, 1] for entry in settings.get("heading", [])], 1, size))
        self.lists = nn.ModuleList(EntityList(numbers, settings["half_distance"], settings["nearest"], size) for numbers in settings["lists"])
        self.pools = encoder is not None
        self.pool = Pool(settings, encoder if self.pools else nn.Identity())
        self.any_heading = any(numbers["heading"] for numbers in settings["lists"])
        self.most_features = max(len(numbers["features"]) for numbers in settings["lists"])
        self.kinds = sum(numbers["kinds"] for numbers in settings["lists"])

        slots = sum(things.kinds * things.nearest * (things.width + 1) for things in self.lists)
        pooled = settings["embedding"] * (settings["mean"] + settings["max"] + settings["attention"])
        self.width = len(self.own) + slots + (pooled if self.pools else 0)

    def forward(self, observation: Tensor) -> Tensor:
        found = self.features(observation.reshape(-1, self.size))
        return found.reshape(list(observation.shape[:-1]) + [self.width])

    def features(self, observation: Tensor) -> Tensor:
        cos, sin = torch.ones_like(observation[:, :1]), torch.zeros_like(observation[:, :1])
        if self.heading.numel() > 0:
            cos, sin = observation.index_select(1, self.heading[:1]), observation.index_select(1, self.heading[1:])
        found = [observation.index_select(1, self.own)]
        for things in self.lists:
            found += things(observation, cos, sin)
        if self.pools:
            found += self.pooled(observation, cos, sin)
        return torch.cat(found, 1)

    def pooled(self, observation: Tensor, cos: Tensor, sin: Tensor) -> List[Tensor]:
        rows: List[Tensor] = []
        existing: List[Tensor] = []
        before = 0  # kinds of the lists so far
        for things in self.lists:
            if things.count > 0:
                parts = things.place(observation, cos, sin)
                none = torch.zeros_like(parts[0])
                if self.any_heading and len(parts) == 2:
                    parts += [none, none]
                parts += things.further(observation)
                parts += [none] * (self.most_features - things.num_features)
                exists = none != 0
                for kind in range(self.kinds):
                    is_kind = none != 0
                    if before <= kind and kind < before + things.kinds:
                        is_kind = things.is_kind(observation, kind - before)
                    exists = exists | is_kind
                    if self.kinds > 1:
                        parts.append(is_kind.to(none.dtype))
                exists = exists.unsqueeze(2)
                numbers = torch.stack(parts, 2)
                rows.append(torch.where(exists, numbers, torch.zeros_like(numbers)))
                existing.append(exists)
            before += things.kinds
        return self.pool(torch.cat(rows, 1), torch.cat(existing, 1))
