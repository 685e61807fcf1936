"""Predicts where an iteration of training goes on a GPU: bytes, operations and launches of every kernel, and from
them milliseconds, beside measured ones.

    tools/bench/model.py [--json] [--md] [--chunk_rows N] [--precision P] [--observations KIND] [--on a,b,...]
    tools/bench/model.py --profiles DATE-gpu.json [--on a,b,...]

Without options it prints four trainings that were measured at 26c389f, the others that were measured since, what the
code of 4c4d479 would gain from each change of CHANGES, and the goals. --profiles compares the profiles of gpu.sh with
predictions, with the changes that their code had. With one of the other options it prints the kernels of a training.

A kernel takes `fixed + factor * bound` microseconds, where the bound is the larger of its bytes at the speed of a copy
and its operations at the peak of its units. `fixed` and `factor` belong to a kind of kernel (KINDS), not to a run.
Policies run beside each other: an iteration takes the longest policy's kernels, or, if more, what all of them occupy
of the device, which is their time without `fixed`.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS_OF_H100 = ROOT / "docs/benchmarks/2026-11-26-gpu-kernels.json"

# H100 80GB HBM3, as `wdtrain bench` measures it; cycles and blocks are of all multiprocessors.
COPY, FP32 = 2.87e12, 51.6e12  # bytes/s, FLOP/s
TENSOR = {"bf16": 800e12, "tf32": 456e12}
CYCLES = 132 * 1.755e9
ISSUE = 4 * CYCLES  # warp instructions/s
BLOCKS = 1.66e9  # blocks/s that can begin: the search begins 125 million in 75.3 ms
L2 = 50e6
# Two guesses about kernels that no GPU has run, which the next measurement corrects: how far they are from their bound,
# and cycles of a multiprocessor for an mma.sync of 16 x 8 x 16 numbers in bfloat16.
GUESSED_FACTOR, GUESSED_MMA_CYCLES = 1.25, 1.6

# Kind: (fixed us, factor, where they come from). "lt" and "kernels" are products_of_cublaslt and kernels of
# 2026-11-26-gpu-kernels.json; "profile" is its profile by names, at 16,384 rows unless said otherwise.
KINDS = {
    "product bf16": (2.3, 1.13, "lt, at 16,384 and 65,536 rows: 15.6, 54.8 us (bounds 11.5, 45.8); to bf16 8.9, 29.7 (5.8, 23.4)"),
    "weights bf16": (4.0, 1.17, "lt: 17.3, 56.8 us (bounds 11.3, 45.5); 10.9, 32.4 (5.8, 23.4)"),
    "product tf32": (4.0, 1.10, "layers in a chunk 52 us of 34.6 (two), 15.3 of 11.7; in a step 438 of 429: between the two"),
    "weights tf32": (4.0, 1.45, "five cutlass products of a chunk, 101 us of 55"),
    "weights tf32, long": (4.0, 2.35, "d688233, above 65,536 rows: what is left of the update's 236 ms for three products of a chunk, 135 ms of 56"),
    "product fp32": (5.0, 1.33, "lt, output layer of 64 columns: 19.6, 60.5 and 17.6, 63.4 us (bounds 10.4, 41.6)"),
    "weights fp32": (5.0, 1.33, "the same kernels: profile, cutlass::Kernel2, 49.8 ms of 2,625"),
    "splitK": (3.3, 0.0, "profile: 12.8 ms of 3,939 (tf32 4.5 us each)"),
    "element-wise": (1.0, 1.0, "profile at 65,536 rows: 45.8 ms, 138 us a chunk for 404 MB (bound 141)"),
    "element-wise, in L2": (1.0, 0.73, "profile: 25.8 us a chunk for 101 MB, whose arrays of 17 MB stay in the L2 cache"),
    "Bgrad": (7.0, 1.40, "profile: 11.0 us (bf16, bound 2.9), 13.9 (tf32, 5.9), 11.6 (output layer, 1.0)"),
    "ones": (2.3, 1.13, "a product with ones, chosen above 16,384 rows: profile at 65,536 rows, 13.9 us (bound 11.7)"),
    "loss sums": (2.2, 1.0, "profile: 4.4 + 2.2 ms of 1,319"),
    "loss": (9.0, 1.0, "550 memory instructions a row (SASS), one line a cycle and multiprocessor: kernels, 48 and 167 us"),
    "loss, staged": (0.0, 1.0, "d688233: 28 us a wave of 4 x 132 blocks of 128 rows, however full it is: alone 24.0, 28.8, 102 us in 1, 1, 4 waves; trained 64 in 2"),
    "sampling": (20.0, 1.0, "45 memory instructions a row: kernels, 20.9, 23.3, 59.5 us at 16,384, 65,536, 204,800 rows"),
    "sampling, staged": (0.0, 1.0, "d688233: 29 us a wave of 9 x 132 blocks of 128 rows, both policies 87 us a step; alone 16.9, 19.7, 47.7 in 1, 1, 2 waves"),
    "search": (3.0, 1.0, "one number a thread: bound by blocks that begin; kernels, 9.4 ms for 2e9 numbers of 2 or 4 bytes"),
    "search, 16 bytes": (3.0, 0.99, "prototype, kernels: 1.37 ms for 4 GB, 2.76 for 8"),
    "environment fp32": (0.0, 1.41, "bench env: 310 us of 220"),
    "environment bf16": (0.0, 1.87, "bench env: 206 us of 110; 143 million warp instructions of 2-byte stores (hardware counters)"),
    "environment, new bf16": (0.0, 1.53, "d688233: 169 us of 110"),
    "environment, new fp32": (0.0, 1.36, "d688233: 299 us of 220"),
    "entities": (0.0, 1.0, "kernels: 3.55 ns a row (232, 734 us), and 115 us for the chain of one thread"),
    "entities, block": (0.0, 1.0, "d688233: 48 us a wave of 7 x 132 blocks of a replica: alone 41, 50, 144 us in 1, 1, 3 waves; trained 96 in 3 and 1"),
    "table forward": (379.0, 1.0, "kernels_bench 444 us at 163 replicas, 1.2 ms derived at 2,048: 0.40 us each"),
    "table backward": (230.0, 1.0, "derived from the measured 969 us of a chunk at 163 replicas: 290 us; more replicas guessed"),
    "table, new forward": (6.0, 6.2, "d688233: 141 ms of both policies' steps; the bound is instructions (SASS) at 0.85 of the issue slots: 65 an entry for 4 units "
                                     "of 128 outputs. It waits for latency"),
    "table, new backward": (6.0, 1.0, "derived from d688233's table in bf16, 264 ms: 560 instructions a unit and range of 7 agents with rows, 200 without"),
    "one pass": (7.0, 1.18, "d688233: output layer 19.7 us (bf16, bound 12.4), layer 2 in tf32 128 (103)"),
    "product, pass bf16": (7.0, 1.96, "d688233: two of a chunk 251 us of 121, at 16,384 rows 43.7 of 15.1"),
    "product, pass tf32": (7.0, 1.08, "d688233: 117 us of 102"),
    "output bf16": (6.2, 2.22, "d688233: cutlass::Kernel2, 12.8 ms of steps and 10.9 of chunks, derived from both profiles in bf16"),
    "output weights bf16": (2.1, 2.04, "the same"),
    "issue": (6.0, GUESSED_FACTOR, "NOT MEASURED: the bound is instructions (SASS) at one a cycle and scheduler, of a warp's 32 rows with two heads of 21 choices: 4,400 of the loss, 3,200 of sampling"),
    "chain": (6.0, GUESSED_FACTOR, "NOT MEASURED: the bound is memory's or that of GUESSED_MMA_CYCLES"),
    "gather": (2.0, 1.14, "kernels_bench: 2.53 TB/s"),
    "once": (0.0, 1.0, "returns, moments, Adam, episodes: profile, about 2 ms"),
}

CHANGES = {
    "search": "search for NaN, 16 bytes a thread",
    "staged": "loss and sampling staged in shared memory",
    "chunk": "chunk_rows 131,072",
    "kept": "kept activations (reuse_activations), where the algorithm can",
    "head": "output layer on tensor cores, last hidden layer in bf16",
    "one_pass": "ReLU's gradient, rounding and sums of all biases in one kernel",
    "fused": "product of a gradient, ReLU's gradient and sums of the bias in one kernel on tensor cores",
    "chain": "last two layers in one kernel each way, ReLU as bits",
    "env": "environment: shared memory known to the compiler, packs without conflicts of banks",
    "entities": "entities by a block per replica",
    "table": "table layer rewritten",
    "features": "entities' features kept for the epochs of an update",
    "on_demand": "observations of which an update is one step searched for NaN only after one that ended early",
    "rounded": "features of entities in bf16",
    "eight": "entities stage features of observers alone: eight blocks a multiprocessor in place of seven",
    "whole": "backward pass of two hidden layers of 64 in one kernel",
    "unbranched": "loss and sampling: exponentials without branches, each computed once",
    "blocks": "table layer in blocks of seven agents on tensor cores, which writes and reads bf16",
}


@dataclasses.dataclass
class Policy:
    """The runners' and taggers' parts: PPO learns `epochs` times from all rows, in `minibatches` that are gathered."""
    name: str
    agents: int
    epochs: int = 1
    minibatches: int = 1


A2C = (Policy("runner", 100), Policy("tagger", 5))
SHIPPED = (Policy("runner", 100, 1, 8), Policy("tagger", 5, 4, 4))


@dataclasses.dataclass
class Run:
    """One training. `measured` is milliseconds of an iteration, if known."""
    observations: str = "rows"  # or table, entities
    precision: str = "bf16"  # or tf32, fp32
    chunk_rows: int = 16_384
    on: tuple = ()  # of CHANGES
    measured: float = None
    policies: tuple = A2C
    envs: int = 2048
    steps: int = 100
    width: int = 736  # of a row: 729 padded to 16 bytes
    features: int = 48  # of entities
    hidden: tuple = (256, 256)
    heads: int = 43  # 2 x 21 choices and the value; rows begin 44 apart
    table_numbers: int = 105 * 13  # of a replica

    def with_changes(self, *names):
        return dataclasses.replace(self, on=tuple(dict.fromkeys([*self.on, *names])), measured=None)


@dataclasses.dataclass
class Kernel:
    name: str
    group: str
    policy: str  # "" is no policy's own
    phase: str  # rollout, update
    kind: str
    launches: float
    bytes: float
    flop: float
    bound_us: float  # of one launch
    us: float

    @property
    def ms(self):
        return self.launches * self.us * 1e-3

    @property
    def occupied_ms(self):
        return self.launches * max(self.us - KINDS[self.kind][0], 0.0) * 1e-3


class Model:
    """The kernels of an iteration."""

    def __init__(self, run):
        self.run, self.kernels = run, []
        self.units = run.envs * run.steps
        if "chunk" in run.on:
            self.chunk = max(run.chunk_rows, 131_072)
        else:
            self.chunk = run.chunk_rows
        self.item = 2 if run.precision == "bf16" else 4  # bytes of hidden activations
        self.head_precision = run.precision if run.precision != "bf16" or "head" in run.on else "fp32"
        self.environment()
        for policy in run.policies:
            self.rollout(policy)
            self.update(policy)
        self.once()

    # --- kernels ---

    def add(self, name, group, policy, phase, kind, launches, size=0.0, flop=0.0, peak=FP32, bound_us=None, us=None):
        fixed, factor, _ = KINDS[kind]
        bound = bound_us if bound_us is not None else max(size / COPY, flop / peak) * 1e6
        self.kernels.append(Kernel(name, group, policy, phase, kind, launches, size, flop, bound, us if us is not None else fixed + factor * bound))

    def product(self, name, policy, phase, launches, rows, inputs, outputs, size, precision, weights=False):
        columns = outputs if precision != "fp32" else max(outputs, 64)
        what = "weights" if weights else "product"
        if name.startswith("output layer") and precision == "bf16":
            what = "output weights" if weights else "output"
        kind = f"{what} {precision}" + (", long" if weights and precision == "tf32" and rows > 65_536 else "")
        self.add(name, "products", policy.name, phase, kind, launches, size, 2.0 * rows * inputs * columns, TENSOR.get(precision, FP32))
        if weights and phase == "update":
            self.add(f"{name}: splitK", "splitK", policy.name, phase, "splitK", launches)

    def layers(self):
        """Inputs, outputs, bytes of an input and of an output of each hidden layer. In bf16 the last one keeps float32 for
        an output layer in float32."""
        first = {"rows": self.run.width, "table": self.run.width, "entities": self.run.features}[self.run.observations]
        widths = [first, *self.run.hidden]
        last = len(self.run.hidden) - 1
        for k in range(len(self.run.hidden)):
            out = 4 if k == last and self.head_precision == "fp32" else self.item
            yield k, widths[k], widths[k + 1], self.item, out

    def precision_of(self, k):
        """Features of entities that are float32 in bf16 take plain products, whose result is converted."""
        exact = k == 0 and self.run.observations == "entities" and "rounded" not in self.run.on
        return "fp32" if exact and self.run.precision == "bf16" else self.run.precision

    def feature_bytes(self):
        return 2 if "rounded" in self.run.on and self.run.precision == "bf16" else 4

    def convert(self, k, policy, phase, launches, rows, outputs):
        if self.precision_of(k) != self.run.precision:
            self.add(f"layer {k + 1}: conversion", "element-wise", policy.name, phase, "element-wise", launches, rows * outputs * 6.0)

    def head_in(self):
        return 4 if self.head_precision == "fp32" else self.item

    def chains(self):
        return "chain" in self.run.on and self.head_precision == "bf16" and len(self.run.hidden) > 1 and self.run.hidden[-1] == self.run.hidden[-2]

    def chain(self, name, policy, phase, launches, rows, numbers):
        """The last two layers, which move `numbers` bytes a row."""
        width = self.run.hidden[-1]
        tiles = width // 16 * width // 8 + width // 16 * 6  # products of 16 rows
        bound = max(rows * numbers / COPY, rows / 16 * tiles * GUESSED_MMA_CYCLES / CYCLES) * 1e6
        self.add(name, "products", policy.name, phase, "chain", launches, rows * float(numbers), 2.0 * rows * width * (width + 48), bound_us=bound)

    def forward(self, policy, phase, launches, rows):
        run = self.run
        for k, inputs, outputs, size_in, size_out in self.layers():
            if k == 0 and run.observations == "table":
                self.table(policy, phase, launches, rows, outputs, forward=True)
                continue
            if self.chains() and k + 1 == len(run.hidden):
                return self.chain("last two layers", policy, phase, launches, rows, 4 * outputs + 176 + outputs // 4)
            self.product(f"layer {k + 1}", policy, phase, launches, rows, inputs, outputs, rows * (inputs * size_in + outputs * size_out), self.precision_of(k))
            self.convert(k, policy, phase, launches, rows, outputs)
        last = run.hidden[-1]
        self.product("output layer", policy, phase, launches, rows, last, run.heads + 5, rows * (last * self.head_in() + 176), self.head_precision)

    def table(self, policy, phase, launches, rows, outputs, forward):
        units, stored = rows / policy.agents, rows * outputs * (self.item if "table" in self.run.on else 4)
        flop = 1.18e6 * policy.agents / 105 * units * (1 if forward else 2)
        name = "table layer" if forward else "table layer: weights"
        kind = "table forward" if forward else "table backward"
        if "blocks" in self.run.on and self.item == 2:
            blocks, others = -(-policy.agents // 7), 98  # of 7 agents; what a part of four blocks begins with
            if forward:  # 7 x 8 products within a block, 14 from one to the next, of 16 units and 8 outputs
                tiles, size = units / 16 * outputs / 8 * (70 * blocks + others * -(-blocks // 4)), stored
            else:  # of a unit and 256 outputs: within blocks, and with the sums before and behind; sums of 15 blocks are written and read
                tiles, size = units * outputs / 256 * (112 * blocks + 670), stored + units * 15 * outputs * 8.0
            bound = max(size / COPY, tiles * GUESSED_MMA_CYCLES / CYCLES) * 1e6
            self.add(name, "table", policy.name, phase, "chain", launches, size, flop, bound_us=bound)
        elif "table" in self.run.on:
            ranges = 15  # of 7 agents
            tiles, with_rows = outputs / 32, -(-policy.agents // 7)
            if forward:  # 104 other agents, then the policy's own one after another, 7 entries each
                warps, instructions = units / 4 * outputs / 128, 65 * 7 * (104 + policy.agents)
            else:
                warps, instructions = units * tiles, 560 * with_rows + 200 * (ranges - with_rows)
            bound = max(warps * instructions / (0.85 * ISSUE), stored / (0.85 * COPY)) * 1e6
            self.add(name, "table", policy.name, phase, f"table, new {'forward' if forward else 'backward'}", launches, stored, flop, bound_us=bound)
            if self.item == 2:
                self.add(f"{name}: conversion", "element-wise", policy.name, phase, "element-wise", launches, rows * outputs * 6.0)
        else:
            self.add(name, "table", policy.name, phase, kind, launches, stored, flop, bound_us=(0.40 if forward else 0.37) * units * policy.agents / 100)

    def entities(self, policy, phase, launches, rows):
        units, size = rows / policy.agents, rows * (self.run.features * self.feature_bytes() + 24)
        if "entities" in self.run.on:
            self.add("entities", "entities", policy.name, phase, "entities, block", launches, size, bound_us=48 * math.ceil(units / ((8 if "eight" in self.run.on else 7) * 132)) * max(policy.agents, 33) / 100)
        else:
            us = max(115.0, 3.55e-3 * rows)
            self.add("entities", "entities", policy.name, phase, "entities", launches, size, bound_us=3.55e-3 * rows, us=us)

    def environment(self):
        run = self.run
        row = {"rows": 105 * run.width * self.item}.get(run.observations, run.table_numbers * 4)
        kind = f"environment {'bf16' if self.item == 2 else 'fp32'}"
        if "env" in run.on and run.observations == "rows":
            kind = f"environment, new {'bf16' if self.item == 2 else 'fp32'}"
        size = run.envs * row
        us = max(45.0, KINDS[kind][1] * size / COPY * 1e6)  # 46 us where it writes tables: the game itself
        self.add("environment", "environment", "", "rollout", kind, run.steps, size, us=us)

    def rollout(self, policy):
        run, rows, launches = self.run, self.run.envs * policy.agents, self.run.steps + 1
        if run.observations == "entities":
            self.entities(policy, "rollout", launches, rows)
        self.forward(policy, "rollout", launches, rows)
        if "unbranched" in run.on:
            self.add("sampling", "sampling", policy.name, "rollout", "issue", launches, rows * 192.0, bound_us=rows / 32 * 3200 / ISSUE * 1e6)
        elif "staged" in run.on:
            self.add("sampling", "sampling", policy.name, "rollout", "sampling, staged", launches, rows * 192.0, bound_us=29 * math.ceil(rows / (9 * 132 * 128)))
        else:
            self.add("sampling", "sampling", policy.name, "rollout", "sampling", launches, rows * 192.0, bound_us=rows * 45 / CYCLES * 1e6)

    def update(self, policy):
        run = self.run
        all_rows = self.units * policy.agents
        in_minibatch = all_rows / policy.minibatches
        chunks = policy.epochs * policy.minibatches * -(-in_minibatch // self.chunk)
        rows = policy.epochs * all_rows / chunks  # of an average chunk
        kept = "kept" in run.on and policy.minibatches == 1
        if policy.minibatches > 1:
            unit = run.table_numbers * 4 + (policy.agents * run.features * self.feature_bytes() if "features" in run.on and run.observations == "entities" else 0)
            self.add("gather", "gather", policy.name, "update", "gather", policy.epochs * policy.minibatches,
                     2 * in_minibatch / policy.agents * (unit + policy.agents * 30))
        if run.observations == "entities" and "features" not in run.on:
            self.entities(policy, "update", chunks, rows)
        if not kept:
            self.forward(policy, "update", chunks, rows)
        if "unbranched" in run.on:
            self.add("loss", "loss", policy.name, "update", "issue", chunks, rows * 412.0, bound_us=max(rows * 412 / COPY, rows / 32 * 4400 / ISSUE) * 1e6)
        elif "staged" in run.on:
            self.add("loss", "loss", policy.name, "update", "loss, staged", chunks, rows * 412.0, bound_us=28 * math.ceil(rows / (4 * 132 * 128)))
        else:
            self.add("loss", "loss", policy.name, "update", "loss", chunks, rows * 412.0, bound_us=rows * 550 / CYCLES * 1e6)
        self.add("sums of the loss", "loss sums", policy.name, "update", "loss sums", 2 * chunks, rows * 24.0)
        self.backward(policy, chunks, rows)

    def bias_sum(self, name, policy, chunks, rows, width, size):
        kind = "Bgrad" if rows <= 16_384 else "ones"
        self.add(f"{name}: bias", "bias sums", policy.name, "update", kind, chunks, rows * width * size)
        if kind == "ones":
            self.add(f"{name}: bias, splitK", "splitK", policy.name, "update", "splitK", chunks)
        self.add(f"{name}: add", "element-wise", policy.name, "update", "element-wise", chunks, 3 * 4.0 * width)

    def pass_over(self, name, policy, chunks, rows, width, numbers):
        """An element-wise kernel that moves `numbers` bytes for each of a layer's activations."""
        kind = "element-wise, in L2" if rows * width * 4 < 0.4 * L2 else "element-wise"
        self.add(name, "element-wise", policy.name, "update", kind, chunks, rows * width * float(numbers))

    def fuses(self, terms, precision):
        """Whether one kernel multiplies a gradient of so many terms and passes over the result (kernels/gradient_product.cu)."""
        return "fused" in self.run.on and precision != "fp32" and terms * (2 if precision == "bf16" else 4) <= 512

    def product_and_pass(self, above, terms, precision, k, policy, chunks, rows):
        """The gradient of layer k's outputs, from `terms` numbers of the layer above, to that of its sums."""
        run, outputs, out = self.run, self.run.hidden[k], list(self.layers())[k][4]
        item = 2 if precision == "bf16" else 4
        if self.fuses(terms, precision):
            flop = 2.0 * rows * terms * outputs
            self.add(f"{above}: input, ReLU', sums", "products", policy.name, "update", f"product, pass {precision}", chunks, rows * (terms * item + 2.0 * outputs * self.item),
                     flop, 0.6 * TENSOR[precision])
            return
        size = rows * (outputs * self.head_in() + 176) if k + 1 == len(run.hidden) else rows * (terms + outputs) * float(self.item)
        self.product(f"{above}: input", policy, "update", chunks, rows, outputs, terms, size, precision)
        name = f"layer {k + 1}"
        if "one_pass" in run.on:
            self.add(f"{name}: ReLU', sums", "one pass", policy.name, "update", "one pass", chunks, rows * outputs * float(2 * out + self.item))
            return
        self.pass_over(f"{name}: ReLU'", policy, chunks, rows, outputs, 3 * out)
        if out != self.item:
            self.pass_over(f"{name}: rounding", policy, chunks, rows, outputs, out + self.item)
        self.bias_sum(name, policy, chunks, rows, outputs, self.item)

    def backward(self, policy, chunks, rows):
        run, last = self.run, self.run.hidden[-1]
        if "whole" in run.on and run.precision == "bf16" and run.hidden == (64, 64) and self.precision_of(0) == "bf16" and run.observations != "table":
            size = rows * (run.features * 2 + 4 * last + 176.0) + 22e6  # of which parts of sums, written and read
            bound = max(size / COPY, rows * 10.75 * GUESSED_MMA_CYCLES / CYCLES) * 1e6
            self.add("backward pass", "products", policy.name, "update", "chain", chunks, size, bound_us=bound)
            return self.add("backward pass: parts", "one pass", policy.name, "update", "splitK", chunks)
        size = rows * (last * self.head_in() + 176)
        self.product("output layer: weights", policy, "update", chunks, rows, last, run.heads + 5, size, self.head_precision, weights=True)
        if "one_pass" in run.on:
            rounded = 96.0 if self.head_precision == "bf16" else 0.0
            self.add("output layer: rounding, sums", "one pass", policy.name, "update", "one pass", chunks, rows * (176.0 + rounded))
        else:
            self.bias_sum("output layer", policy, chunks, rows, 44, 4)
        above, terms, precision = "output layer", run.heads + 5, self.head_precision
        if self.chains():
            self.chain("last two layers: inputs, ReLU', sums", policy, "update", chunks, rows, 96 + 4 * last + last // 4)
        for k, inputs, outputs, size_in, size_out in reversed(list(self.layers())):
            name = f"layer {k + 1}"
            if not self.chains() or k + 2 < len(run.hidden):
                self.product_and_pass(above, terms, precision, k, policy, chunks, rows)
            above, terms, precision = name, outputs, run.precision
            if k == 0 and run.observations == "table":
                self.table(policy, "update", chunks, rows, outputs, forward=False)
                continue
            self.product(f"{name}: weights", policy, "update", chunks, rows, inputs, outputs, rows * (inputs + outputs) * float(self.item), self.precision_of(k), weights=True)
            self.convert(k, policy, "update", chunks, rows, outputs)

    def once(self):
        run = self.run
        numbers = {"rows": 105 * run.width}.get(run.observations, run.table_numbers) * float(run.envs * (run.steps + 1))
        size = numbers * (self.item if run.observations == "rows" else 4)
        if "on_demand" in run.on and run.observations == "rows" and run.policies is A2C:
            size /= run.steps + 1  # the last observations
        if "search" in run.on:
            self.add("search for NaN", "search", "", "update", "search, 16 bytes", 1, size)
        else:
            self.add("search for NaN", "search", "", "update", "search", 1, size, bound_us=numbers / 128 / BLOCKS * 1e6)
        self.add("returns, Adam, episodes", "once", "", "update", "once", 1, us=2000.0, bound_us=300.0)

    # --- sums ---

    def part(self, phase, policy):
        return [kernel for kernel in self.kernels if (kernel.phase, kernel.policy) == (phase, policy)]

    def phase_ms(self, phase):
        """Kernels of no policy, then the policies beside each other."""
        own = [self.part(phase, policy.name) for policy in self.run.policies]
        longest = max(sum(kernel.ms for kernel in part) for part in own)
        occupied = sum(kernel.occupied_ms for part in own for kernel in part)
        return sum(kernel.ms for kernel in self.part(phase, "")) + max(longest, occupied)

    def ms(self):
        return self.phase_ms("rollout") + self.phase_ms("update")

    def env_steps_per_s(self):
        return self.units / self.ms() * 1e3

    def launches(self):
        return sum(kernel.launches for kernel in self.kernels)

    def groups(self):
        """Milliseconds of all policies' kernels, as a profile sums them, by group."""
        sums = {}
        for kernel in self.kernels:
            sums[kernel.group] = sums.get(kernel.group, 0.0) + kernel.ms
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def kept_bytes(self):
        """Memory of kept activations and of the rows or tables, the largest arrays."""
        rows = (self.units + self.run.envs) * 105
        kept = sum(outputs * size for _, _, outputs, _, size in self.layers()) + 176 if "kept" in self.run.on else 0
        seen = self.run.width * self.item if self.run.observations == "rows" else self.run.table_numbers * 4 / 105
        return rows * (kept + seen)


SHAPE_SHIPPED = dict(observations="entities", precision="tf32", policies=SHIPPED, hidden=(64, 64))
# Measured by wdtrain bench at 26c389f (2026-11-26-gpu.json), then at 4c4d479, whose kernels are the same.
MEASURED = {
    "bf16, rows": Run(measured=462.0),
    "tf32, rows": Run(precision="tf32", measured=555.2),
    "as shipped, tf32": Run(**SHAPE_SHIPPED, measured=478.4),
    "tf32, table": Run(observations="table", precision="tf32", measured=1382.3),
}
SINCE = {
    "bf16, rows, chunk_rows 65,536": Run(chunk_rows=65_536, measured=383.4),
    "bf16, rows, kept": Run(on=("kept",), measured=399.7),
    "bf16, rows, kept, chunk_rows 65,536": Run(chunk_rows=65_536, on=("kept",), measured=332.2),
    "tf32, rows, chunk_rows 65,536": Run(precision="tf32", chunk_rows=65_536, measured=468.3),
    "as shipped, tf32, chunk_rows 65,536": Run(**SHAPE_SHIPPED, chunk_rows=65_536, measured=328.0),
}
MADE = ("search", "staged", "kept", "head", "one_pass", "env", "entities", "features", "table", "fused")
AT_D688233 = {  # 2026-11-27-gpu-d688233.json: iterations of profiles, from which factors of KINDS are
    "bf16, rows": Run(chunk_rows=131_072, on=MADE, measured=166.7),
    "tf32, rows": Run(precision="tf32", chunk_rows=131_072, on=MADE, measured=337.2),
    "as shipped, tf32": Run(**SHAPE_SHIPPED, chunk_rows=131_072, on=MADE, measured=119.6),
    "bf16, table": Run(observations="table", chunk_rows=131_072, on=MADE, measured=263.9),
    "tf32, table": Run(observations="table", precision="tf32", chunk_rows=131_072, on=MADE, measured=275.0),
    "as shipped, bf16": Run(**{**SHAPE_SHIPPED, "precision": "bf16"}, chunk_rows=131_072, on=MADE, measured=124.3),
}
# Per training: in which order changes are made, and the goal, million env/s.
GOALS = {
    "bf16, rows": (Run(), ["search", "staged", "chunk", "kept", "head", "one_pass", "env", "fused", "chain", "on_demand", "unbranched"], 2.0),
    "bf16, table": (Run(observations="table"), ["search", "staged", "chunk", "table", "kept", "head", "one_pass", "fused", "chain", "blocks", "unbranched"], 2.8),
    "as shipped, bf16": (Run(**{**SHAPE_SHIPPED, "precision": "bf16"}), ["search", "staged", "chunk", "entities", "features", "head", "one_pass", "fused", "chain", "rounded", "unbranched", "whole", "eight"], 4.0),
    "as shipped, tf32": (Run(**SHAPE_SHIPPED), ["search", "staged", "chunk", "entities", "features", "one_pass", "fused"], 2.5),
}

# Kernels of a profile, by their names.
GROUP_OF = [("look_at|watch_|not_finite|search_kernel|search_array", "search"), ("product_kernel|backward_kernel|forward_kernel|perceptron|product_of_rows|(back|for)ward_rows|backward_tiles", "products"), ("gradient_kernel|parts_kernel|cuda::gradient$|sum_parts", "one pass"), ("loss_row|staged_loss", "loss"), ("sample", "sampling"), ("step_kernel|step_replicas", "environment"),
            ("entities|near_kernel", "entities"), ("gather_word", "gather"), ("Bgrad", "bias sums"), ("splitKreduce", "splitK"), ("elementwise", "element-wise"),
            ("chunk_kernel|total_kernel|sum_(only_)?chunk|sum_of_chunks", "loss sums"), ("std::enable_if|nvjet_sm90_tss_64x8_", "bias sums"),
            ("nvjet|cutlass|xmma", "products"), ("table", "table")]


def by_group(kernels):
    """Sums of (name of a kernel, milliseconds an iteration)."""
    sums = {}
    for kernel, ms in kernels:
        group = next((group for text, group in GROUP_OF if re.search(text, kernel)), "once")
        sums[group] = sums.get(group, 0.0) + ms
    return sums


def measured_groups(name):
    """Milliseconds by group of a profile in KERNELS_OF_H100, or nothing."""
    try:
        lines = json.loads(KERNELS_OF_H100.read_text())[name]
    except (OSError, KeyError):
        return {}
    rows = [re.split(r"  +", line) for line in lines[lines.index("kernel  calls an iteration  ms an iteration  share") + 1:]]
    return by_group((kernel, float(ms)) for kernel, _, ms, _ in rows)


def profiles_of(path, on):
    """Measured and predicted milliseconds of gpu.sh's profiles, by group."""
    found = {}
    for name, profile in json.loads(path.read_text())["profiles"].items():
        if name in PROFILES_OF_SCRIPT and profile:
            measured = by_group((one["kernel"], 1e3 * one["device_s"] / profile["iterations"]) for one in profile["kernels"])
            found[name] = {"predicted_ms": Model(PROFILES_OF_SCRIPT[name].with_changes(*on)).groups(), "measured_ms": measured}
    return found


PROFILES = {"profile_bf16": Run(), "profile_tf32": Run(precision="tf32"), "profile_bf16_65536": Run(chunk_rows=65_536),
            "profile_shipped": Run(**SHAPE_SHIPPED, chunk_rows=65_536)}
PROFILES_OF_SCRIPT = {"bf16": Run(chunk_rows=131_072), "bf16_16384": Run(), "tf32": Run(precision="tf32", chunk_rows=131_072),
                      "shipped_tf32": Run(**SHAPE_SHIPPED, chunk_rows=131_072)}


def steps_of(run, order):
    """The training as it is, then with one change after another: what changed, milliseconds, million env/s."""
    rows = []
    for k in range(len(order) + 1):
        model = Model(run.with_changes(*order[:k]))
        rows.append({"change": order[k - 1] if k else "as at 26c389f", "ms": model.ms(), "million_env_steps_per_s": model.env_steps_per_s() * 1e-6,
                     "gigabytes": model.kept_bytes() * 1e-9})
    return rows


def comparison(runs):
    return [{"training": name, "measured_ms": run.measured, "predicted_ms": (ms := Model(run).ms()), "error": ms / run.measured - 1}
            for name, run in runs.items()]


def report():
    return {"what": "predictions of tools/bench/model.py for one H100, beside measurements; nothing here was measured by it",
            "measured_at_26c389f": comparison(MEASURED), "measured_since": comparison(SINCE),
            "measured_at_d688233": comparison(AT_D688233),
            "profiles": {name: {"predicted_ms": Model(run).groups(), "measured_ms": measured_groups(name)} for name, run in PROFILES.items()},
            "changes": {name: {"goal": goal, "steps": steps_of(run, order)} for name, (run, order, goal) in GOALS.items()},
            "kinds": {kind: {"fixed_us": fixed, "factor": factor, "from": source} for kind, (fixed, factor, source) in KINDS.items()}}


def table(titles, rows, markdown):
    cells = [titles, *[[str(cell) for cell in row] for row in rows]]
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in cells]
        return "\n".join([lines[0], "|" + "---|" * len(titles), *lines[1:]])
    widths = [max(len(row[k]) for row in cells) for k in range(len(titles))]
    return "\n".join("  ".join(cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in cells)


def groups_table(profiles, markdown):
    groups = {group for one in profiles.values() for side in one.values() for group in side}
    order = sorted(groups, key=lambda group: -max(one["predicted_ms"].get(group, 0.0) for one in profiles.values()))
    rows = [[group, *(f"{one['measured_ms'].get(group, 0.0):.1f} / {one['predicted_ms'].get(group, 0.0):.1f}" for one in profiles.values())] for group in order]
    return table(["ms, measured / predicted", *(name.removeprefix("profile_") for name in profiles)], rows, markdown)


def text(data, markdown):
    parts = []
    for title, key in (("Measured at 26c389f", "measured_at_26c389f"), ("Measured since", "measured_since"),
                       ("Measured at d688233", "measured_at_d688233")):
        rows = [[one["training"], f"{one['measured_ms']:.0f}", f"{one['predicted_ms']:.0f}", f"{one['error']:+.0%}"] for one in data[key]]
        parts.append(table([title, "measured, ms", "predicted, ms", "error"], rows, markdown))
    parts.append(groups_table(data["profiles"], markdown))
    for name, one in data["changes"].items():
        rows = [[CHANGES.get(step["change"], step["change"]), f"{step['ms']:.0f}", f"{step['million_env_steps_per_s']:.2f}", f"{step['gigabytes']:.0f}"]
                for step in one["steps"]]
        rows.append(["goal", f"{204.8 / one['goal']:.0f}", f"{one['goal']:.2f}", ""])
        parts.append(table([f"Predicted: {name}, one change after another", "ms", "M env/s", "GB"], rows, markdown))
    return "\n\n".join(parts)


def kernels_text(run, markdown):
    model = Model(run)
    rows = [[f"{kernel.policy or 'all'}: {kernel.name}", kernel.phase, f"{kernel.launches:.0f}", f"{kernel.bytes / 1e6:.1f}", f"{kernel.flop / 1e9:.2f}",
             f"{kernel.bound_us:.1f}", f"{kernel.us:.1f}", f"{kernel.ms:.1f}"] for kernel in model.kernels]
    heading = table(["kernel", "phase", "launches", "MB", "GFLOP", "bound, us", "us", "ms"], rows, markdown)
    return f"{heading}\n\n{model.ms():.1f} ms, {model.env_steps_per_s():,.0f} env/s, {model.launches():,.0f} launches an iteration"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--md", action="store_true", help="Markdown tables")
    parser.add_argument("--profiles", type=pathlib.Path, help="a file of gpu.sh")
    parser.add_argument("--chunk_rows", type=int)
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--observations", choices=["rows", "table", "entities"])
    parser.add_argument("--on", type=lambda text: text.split(","), help=f"changes: {', '.join(CHANGES)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.on or []) - set(CHANGES):
        parser.error(f"--on {','.join(sorted(unknown))}: the changes are {', '.join(CHANGES)}")
    if arguments.profiles:
        found = profiles_of(arguments.profiles, arguments.on or [])
        print(json.dumps(found, indent=1) if arguments.json else groups_table(found, arguments.md))
    elif arguments.chunk_rows or arguments.precision or arguments.observations or arguments.on:
        base = Run(**SHAPE_SHIPPED) if arguments.observations == "entities" else Run(observations=arguments.observations or "rows")
        run = dataclasses.replace(base, precision=arguments.precision or base.precision, chunk_rows=arguments.chunk_rows or base.chunk_rows,
                                  on=tuple(arguments.on or []))
        print(kernels_text(run, arguments.md))
    elif arguments.json:
        print(json.dumps(report(), indent=1))
    else:
        print(text(report(), arguments.md))


if __name__ == "__main__":
    main()
