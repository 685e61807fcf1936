"""What `wdtrain check` asks of an environment in Python. worker.py, which is beside this file, loads it when it is asked.

A result is {"name", "verdict": ok | FAILED | warning | skipped, "detail"}.
"""

import itertools
import math
import time
import traceback
import types

import numpy as np

LARGE = 1000.0  # numbers beyond it slow learning down
SEED_STEPS = 200  # of each play that is repeated
RESETS, MOST_STARTS = 4, 100  # that are compared: at least, at most
FEW = 20  # steps after which a number that never changes is worth a warning
OTHERS = "all other checks"
FORM, SPACES, NUMBERS = "what reset() and step() return", "observations are in their space", "numbers are finite"
ENDS, STARTS, SAME_SEED = "episodes end", "reset() begins anew", "same seed, same episode"
OTHER_SEED, REPLICAS, ROWS = "another seed, another episode", "replicas share nothing", "observations stay as they were"
RANGES, MASKS, AGENTS = "ranges of observations", "action masks", "agents come and go"
# What step() returns; the first and the last of it, reset() does.
OF_ONE = "observation", "reward", "terminated", "truncated", "info"
OF_SEVERAL = "observations", "rewards", "terminations", "truncations", "infos"


class FaultError(Exception):
    """The environment breaks a rule: what it does, where, and what to do about it."""


def result(name, verdict, detail):
    return {"name": name, "verdict": verdict, "detail": detail}


def judged(name, fault, detail, verdict="FAILED"):
    """The result of a check that has found this fault, or none. detail: of one without a fault."""
    return result(name, verdict, fault) if fault else result(name, "ok", detail)


# --- spaces and numbers ---------------------------------------------------------------------------------------------------------------


def why_outside(space, value, name="the observation"):
    """What is wrong with a value that its space does not contain, and a remedy."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict):
            return f"{name} is a {type(value).__name__}, and its space is a Dict: return a dict"
        missing, more = [key for key in space.spaces if key not in value], [key for key in value if key not in space.spaces]
        if missing or more:
            return f"{name} {'lacks' if missing else 'has also'} {(missing or more)[0]!r}: return the keys of the space"
        inner = [(one, value[key], f"{name} {key!r}") for key, one in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple) or len(value) != len(space.spaces):
            return f"{name} is not a tuple of {len(space.spaces)}: return one"
        inner = [(one, value[k], f"{name} {k}") for k, one in enumerate(space.spaces)]
    else:
        return why_leaf_outside(space, value, name)
    return next((why_outside(*one) for one in inner if not one[0].contains(one[1])), f"{name} is not in {space}")


def why_leaf_outside(space, value, name):
    from gymnasium import spaces

    if not isinstance(space, spaces.Discrete) and not isinstance(value, np.ndarray):
        return f"{name} is a {type(value).__name__}, and not an array: return np.array(..., dtype=np.{space.dtype})"
    if isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        if value.shape != space.shape:
            return f"{name} has the shape {value.shape}, and its space says {space.shape}: return that shape, or correct the space"
        if not np.can_cast(value.dtype, space.dtype):
            return f"{name} is {value.dtype}, and its space says {space.dtype}: return .astype(np.{space.dtype}), or correct the space"
    if isinstance(space, spaces.Box):
        with np.errstate(invalid="ignore"):
            wrong = np.argwhere(~((value >= space.low) & (value <= space.high)))
        if len(wrong):
            at = tuple(int(k) for k in wrong[0])
            return f"{name} {index(at)}is {value[at]}, outside of [{space.low[at]}, {space.high[at]}]: clip it, or correct the bounds of the space"
    return f"{name} is {value!r}, which {space} does not hold: correct one of them"


def index(at):
    return "[" + ", ".join(map(str, at)) + "] " if at else ""


def leaves(value, name=""):
    """The arrays and numbers of an observation, by name."""
    if isinstance(value, dict):
        return [leaf for key, one in value.items() for leaf in leaves(one, f"{name}.{key}" if name else str(key))]
    if isinstance(value, tuple):
        return [leaf for k, one in enumerate(value) for leaf in leaves(one, f"{name}.{k}" if name else str(k))]
    return [(name or "observation", value)]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def first_difference(name, a, b):
    if a.shape != b.shape:
        return f"{name} has the shape {a.shape} and then {b.shape}"
    wrong = [tuple(int(k) for k in at) for at in np.argwhere(a != b)] or [()]
    return f"{name} {index(wrong[0])}is {a[wrong[0]]} and then {b[wrong[0]]}" if a.shape == () or wrong[0] else f"{name} is {a} and then {b}"


# --- one environment ------------------------------------------------------------------------------------------------------------------


class Moment:
    """What reset() or step() returned, by agent. The agent of a gymnasium.Env is None."""

    def __init__(self, observations, rewards, terminated, truncated, infos, live):
        self.observations, self.rewards, self.infos = observations, rewards, infos
        self.terminated, self.truncated, self.live = terminated, truncated, live
        self.over = not live

    def numbers(self):
        """A copy of everything that a repeated play must repeat: (name, array)."""
        found = [(f"{of(agent)}{name}", np.array(one)) for agent, value in self.observations.items() for name, one in leaves(value)]
        for name, values in (("reward", self.rewards), ("terminated", self.terminated), ("truncated", self.truncated)):
            found += [(of(agent) + name, np.array(value)) for agent, value in values.items()]
        return found


def of(agent):
    return "" if agent is None else f"agent {agent}: "


class Checked:
    """An environment of either kind, which says what is wrong with what it returns."""

    def __init__(self, worker, request, made=None):
        self.made = made or worker.make(request)
        self.env, self.several, self.agents = self.made.env, isinstance(self.made, worker.Several), self.made.all_agents()
        self.limit = self.made.limit
        # env.time_limit, after which wdtrain begins another episode.
        self.cut = request.get("time_limit") or math.inf
        self.live = []
        self.notes = {}  # of faults that do not keep it from being played: (check, what)
        self.episode, self.steps = -1, 0

    def observation_space(self, agent):
        return self.env.observation_space(agent) if self.several else self.env.observation_space

    def where(self, agent=None):
        return f"episode {self.episode}, step {self.steps}" + ("" if agent is None else f", agent {agent}")

    def note(self, check, what, agent=None):
        self.notes.setdefault(check, f"{self.where(agent)}: {what}")

    def begin(self):
        """The first reset, which shows whether masks are in `info`."""
        moment = self.reset(0)
        self.made.mask_in_info = any(isinstance(info, dict) and "action_mask" in info for info in moment.infos.values())
        return moment

    def reset(self, seed=None):
        self.episode, self.steps = self.episode + 1, 0
        observations, infos = self.by_agent("reset()", self.env.reset(seed=seed), (OF_SEVERAL if self.several else OF_ONE)[::4])
        self.live = list(self.env.agents) if self.several else [None]
        if not self.live:
            raise FaultError(f"{self.where()}: after reset(), `agents` is empty: set it to those that play")
        self.check_agents(self.live)
        self.check_keys("observations", observations, self.live, self.live)
        return Moment(observations, {}, {}, {}, infos, self.live)

    def step(self, actions):
        self.steps += 1
        before = self.live
        got = self.env.step(actions if self.several else actions[None])
        observations, rewards, terminated, truncated, infos = self.by_agent("step()", got, OF_SEVERAL if self.several else OF_ONE)
        for agent in before:
            for name, flags in (("terminated", terminated), ("truncated", truncated)):
                if agent in flags and not isinstance(flags[agent], bool | np.bool_):
                    raise FaultError(f"{self.where(agent)}: {name} is {flags[agent]!r}, of type {type(flags[agent]).__name__}: return bool(...)")
            if agent in rewards and not is_number(rewards[agent]):
                kind = type(rewards[agent]).__name__
                raise FaultError(f"{self.where(agent)}: the reward is {rewards[agent]!r}, of type {kind}: return float(...)")
        after = list(self.env.agents) if self.several else [] if terminated[None] or truncated[None] else [None]
        self.check_step(before, after, observations, rewards, terminated, truncated, infos)
        self.live = after
        return Moment(observations, rewards, terminated, truncated, infos, self.live)

    def by_agent(self, call, got, names):
        """What a call has returned, as dictionaries by agent."""
        if not isinstance(got, tuple) or len(got) != len(names):
            what = f"{len(got)} values" if isinstance(got, tuple) else f"a {type(got).__name__}"
            raise FaultError(f"{self.where()}: {call} returns {what}, and must return {len(names)} values: {', '.join(names)}")
        for name, one in zip(names, got, strict=True):
            if (self.several or name == "info") and not isinstance(one, dict):
                raise FaultError(f"{self.where()}: {call} returns {name} that is a {type(one).__name__}: return a dict")
        return got if self.several else [{None: one} for one in got]

    def check_agents(self, agents):
        strange = [agent for agent in agents if agent not in self.agents]
        if strange:
            raise FaultError(f"{self.where(strange[0])}: it is in `agents`, and not in possible_agents: name it there")
        if len(set(agents)) < len(agents):
            self.note(AGENTS, f"`agents` names an agent twice: {agents}")

    def check_keys(self, name, values, needed, allowed):
        for agent in needed:
            if agent not in values:
                raise FaultError(f"{self.where(agent)}: it is missing in {name}: give every agent that plays its entry")
        for agent in values:
            if agent not in allowed:
                self.note(AGENTS, f"it is in {name}, and does not play: leave it out", agent)

    def check_step(self, before, after, observations, rewards, terminated, truncated, infos):
        self.check_agents(after)
        both = [*before, *(agent for agent in after if agent not in before)]
        self.check_keys("observations", observations, after, both)
        for name, values in (("rewards", rewards), ("terminations", terminated), ("truncations", truncated)):
            self.check_keys(name, values, before, both)
        self.check_keys("infos", infos, [], both)
        for agent in before:
            ended = terminated[agent] or truncated[agent]
            if ended and agent in after:
                self.note(AGENTS, "it is terminated or truncated, and still in `agents`: take it out", agent)
            if not ended and agent not in after:
                self.note(AGENTS, "it has left `agents`, and is neither terminated nor truncated: say so in the step in which it leaves", agent)
        for agent in after:
            if agent not in before:
                self.note("agents that come", "it comes into a running episode: PettingZoo's own tests refuse that; wdtrain plays it", agent)

    def mask(self, agent, moment):
        """[choices] 0 or 1, or None."""
        observer, actor = self.agents[agent]
        info = moment.infos.get(agent)
        mask = self.made.mask(observer, moment.observations.get(agent), info if isinstance(info, dict) else {})
        if not actor.heads or (mask is None and not hasattr(actor, "inner")):
            return None
        row = np.zeros(actor.choices, np.uint8)
        actor.read_mask(mask, row)
        return row

    def actions(self, moment, random):
        return {agent: self.agents[agent][1].read(self.agents[agent][1].draw(self.mask(agent, moment), random)) for agent in moment.live}

    def close(self):
        self.env.close()


def is_number(value):
    return isinstance(value, int | float | np.number | np.bool_) or (isinstance(value, np.ndarray) and value.shape == ())


# --- checks ---------------------------------------------------------------------------------------------------------------------------


class Survey:
    """What one play finds out."""

    def __init__(self, game):
        self.game = game
        self.moments = self.ended = self.masked = self.longest = 0
        self.ranges = {}  # of (role, part): [lowest, highest]
        self.starts = []
        self.rows = []  # (agent, where, name, array, copy): of the last moment

    def look(self, moment):
        game = self.game
        self.moments += 1
        for agent, where, name, array, copy in self.rows:
            if not same(np.asarray(array), copy):
                what = "has changed, since the same array is written again: return .copy(). wdtrain copies it at once, others may not"
                game.note(ROWS, f"{name} of {where} {what}", agent)
        self.rows = []
        for agent, observation in moment.observations.items():
            if agent not in game.agents:
                continue
            space, observer = game.observation_space(agent), game.agents[agent][0]
            finite = True
            for name, one in leaves(observation):
                if isinstance(one, np.ndarray):
                    self.rows.append((agent, game.where(), name, one, one.copy()))
                numbers = np.asarray(one)
                if np.issubdtype(numbers.dtype, np.floating) and not np.isfinite(numbers).all():
                    finite = False
                    at = tuple(int(k) for k in np.argwhere(~np.isfinite(numbers))[0])
                    game.note(NUMBERS, f"{name} {index(at)}is {numbers[at]}: find the division or overflow that makes it", agent)
            if finite and not space.contains(observation):
                game.note(SPACES, why_outside(space, observation), agent)
            elif finite:
                self.widen(agent, observer, observation)
        for agent, reward in moment.rewards.items():
            if not math.isfinite(reward):
                game.note(NUMBERS, f"the reward is {reward}: find the division or overflow that makes it", agent)
        for agent in moment.live:
            self.look_at_mask(agent, moment)

    def look_at_mask(self, agent, moment):
        try:
            mask = self.game.mask(agent, moment)
        except (ValueError, TypeError) as error:
            raise FaultError(f"{self.game.where(agent)}: {error}: give one entry for each choice") from error
        if mask is None:
            return
        self.masked += 1
        at = 0
        for k, choices in enumerate(self.game.agents[agent][1].heads):
            if not mask[at : at + choices].any():
                self.game.note(MASKS, f"the mask forbids every choice of head {k}: allow one, or end the episode", agent)
            at += choices

    def widen(self, agent, observer, observation):
        for name, path, kind, _, _ in observer.parts:
            if kind != "numbers":
                continue
            value = observation
            for key in path:
                value = value[key]
            if np.size(value) == 0:
                continue
            low, high = float(np.min(value)), float(np.max(value))
            key = name if agent is None else f"{self.role(agent)}: {name}"
            known = self.ranges.setdefault(key, [low, high])
            known[:] = min(known[0], low), max(known[1], high)

    def role(self, agent):
        return next((name for name, members in self.game.made.roles if agent in [one for one, *_ in members]), agent)

    def play(self, steps, seconds, seed):
        """Plays at random until an episode has ended after `steps` steps, or the time is over."""
        random, game, begun = np.random.default_rng(seed), self.game, time.monotonic()
        moment = game.reset(seed)
        self.starts.append(moment.numbers())
        self.look(moment)
        for _ in range(steps):
            if time.monotonic() - begun > seconds and self.moments > FEW:
                break
            moment = game.step(game.actions(moment, random))
            self.look(moment)
            self.longest = max(self.longest, game.steps)
            over, late = moment.over, bool(game.limit) and game.steps > game.limit
            if late and not over:
                game.note(ENDS, f"it goes on after the time limit of {game.limit} steps: return truncated=True there, or end it by gymnasium.wrappers.TimeLimit")
            if over or late or (game.steps >= game.cut and not game.limit):
                self.ended += over or not late
                moment = game.reset()
                if over and len(self.starts) < MOST_STARTS:
                    self.starts.append(moment.numbers())
                self.look(moment)
        while len(self.starts) < RESETS:
            self.starts.append(game.reset().numbers())


def trace(game, steps, seed, seconds, action_seed, between=None):
    """The numbers of each moment of a play, with (episode, step)."""
    random, begun, first = np.random.default_rng(action_seed), time.monotonic(), game.episode + 1
    moment = game.reset(seed)
    found = [(0, 0, moment.numbers())]
    for _ in range(steps):
        if time.monotonic() - begun > seconds and len(found) > FEW:
            break
        if between is not None:
            between()
        moment = game.reset() if moment.over else game.step(game.actions(moment, random))
        found.append((game.episode - first, game.steps, moment.numbers()))
    return found


def compared(one, other):
    """The first difference of two traces; empty: none, as far as both go."""
    for (episode, step, a), (_, _, b) in zip(one, other, strict=False):
        names_a, names_b = [name for name, _ in a], [name for name, _ in b]
        if names_a != names_b:
            return f"episode {episode}, step {step}: other agents play, or other parts are observed"
        for (name, x), (_, y) in zip(a, b, strict=True):
            if not same(x, y):
                return f"episode {episode}, step {step}: {first_difference(name, x, y)}"
    return ""


def survey(worker, request):
    """The results of all checks but those that compare plays. A play that cannot go on skips the others."""
    game = Checked(worker, request)
    found = Survey(game)
    broken = None
    try:
        found.play(request["steps"], request["seconds"] / 2, request["seed"])
    except FaultError as fault:
        broken = str(fault)
    except Exception as error:  # raised by the environment
        broken = f"{game.where()}: {said(worker, error)}"
    extent = f"{counted(found.moments, 'observation')} in {counted(game.episode + 1, 'episode')}"

    notes = game.notes

    yield judged(FORM, broken, extent)
    if found.moments == 0:
        yield result(OTHERS, "skipped", "they need an environment that begins")
        return
    yield judged(SPACES, notes.get(SPACES), extent)
    yield judged(NUMBERS, notes.get(NUMBERS), extent)
    if found.masked or MASKS in notes:
        yield judged(MASKS, notes.get(MASKS), f"{counted(found.masked, 'mask')}, each with a legal choice")
    else:
        yield result(MASKS, "skipped", "there are none")
    if game.several:
        yield judged_agents(game)
    yield judged(ROWS, notes.get(ROWS), extent, "warning")
    if broken:
        yield result(OTHERS, "skipped", "they need an environment that plays on")
        return
    yield judged_ends(found)
    starts = found.starts
    repeat = len(starts) > 1 and all(not compared([(0, 0, starts[1])], [(0, 0, one)]) for one in starts[2:])
    what = f"{len(starts) - 1} calls of reset() without a seed give the same observation: if it is not the only start, draw it from self.np_random"
    yield judged(STARTS, what if repeat else "", f"{len(starts)} starts", "warning")
    yield ranges(found)
    game.close()


def judged_agents(game):
    faults = []
    for agent in game.agents:
        for kind in ("observation_space", "action_space"):
            one, other = getattr(game.env, kind)(agent), getattr(game.env, kind)(agent)
            if one is not other:
                what = f"{kind}({agent!r}) is another object in each call, so that seeding it has no effect"
                faults.append((one == other, f"{what}: make it once, or add functools.lru_cache"))
    if AGENTS in game.notes:
        return result(AGENTS, "FAILED", game.notes[AGENTS])
    if faults:
        return result(AGENTS, "warning" if all(equal for equal, _ in faults) else "FAILED", min(faults, key=lambda fault: fault[0])[1])
    return judged(AGENTS, game.notes.get("agents that come"), counted(len(game.agents), "agent"), "warning")


def judged_ends(found):
    game, longest = found.game, counted(found.longest, "step")
    if found.ended or ENDS in game.notes:
        return judged(ENDS, game.notes.get(ENDS), f"{counted(found.ended, 'end')}, the longest episode has {longest}")
    if game.limit:
        return result(ENDS, "ok", f"none of {longest} ended one, and the time limit is {game.limit} (--steps N plays more)")
    remedy = "set env.time_limit, or wrap it in gymnasium.wrappers.TimeLimit (--steps N plays more)"
    return result(ENDS, "warning", f"none of {longest} ended one, and no time limit is known: {remedy}")


def ranges(found):
    constant = found.moments > FEW
    for name, (low, high) in found.ranges.items():
        if max(-low, high) > LARGE:
            remedy = "divide it, or set policy.NAME.model.normalize_input=true"
            return result(RANGES, "warning", f"{name} is {low:.5g} to {high:.5g}, and networks learn best from numbers near 1: {remedy}")
        if low == high and constant:
            return result(RANGES, "warning", f"{name} is always {low:.5g} in {counted(found.moments, 'observation')}: leave it out, if nothing ever changes it")
    shown = [f"{name} in [{low:.3g}, {high:.3g}]" for name, (low, high) in found.ranges.items()]
    return result(RANGES, "ok", ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "") or "no numbers")


def seeds(worker, request):
    """The results of checks that repeat a play."""
    game, steps, seed, seconds = Checked(worker, request), min(request["steps"], SEED_STEPS), request["seed"], request["seconds"] / 12
    other = Checked(worker, request)
    if game.made.game() is other.made.game():
        raise FaultError("the function returns the same environment twice: each replica needs one of its own: make it inside of the function")
    one, two = (worker.form_of(made) for made in (game.made, other.made))
    if one != two:
        raise FaultError(f"two environments have different spaces, {one['roles']} and {two['roles']}: all replicas must have the same")
    first = trace(game, steps, seed, seconds, 1)
    fault = compared(first, trace(game, steps, seed, seconds, 1))
    extent = counted(len(first) - 1, "step")
    remedy = "draw random numbers from self.np_random alone, which super().reset(seed=seed) seeds, and set all state in reset()"
    yield judged(SAME_SEED, fault and f"{fault}, after reset(seed={seed}) twice and the same actions: {remedy}", extent)
    alike = not compared(first, trace(game, steps, seed + 1, seconds, 1))
    remedy = "perhaps nothing is random; else pass the seed to super().reset(seed=seed)"
    yield judged(OTHER_SEED, alike and f"seeds {seed} and {seed + 1} give the same {extent} with the same actions: {remedy}", extent, "warning")
    if fault:
        yield result(REPLICAS, "skipped", "a play by itself is not repeatable")
        return
    fault = compared(first, trace(other, steps, seed, seconds, 1))
    remedy = "draw random numbers from self.np_random alone, in reset() and not in __init__"
    if not fault:
        fault = compared(first, interleaved(game, other, steps, seed, seconds))
        remedy = "keep state and random numbers in self, not in the class, the module, numpy.random or random"
        what = "the same seed gives other numbers while another instance plays"
    else:
        what = "two instances with the same seed differ"
    yield judged(REPLICAS, fault and f"{fault}: {what}: {remedy}", f"two instances, {extent}")
    game.close()
    other.close()


def interleaved(game, other, steps, seed, seconds):
    """A trace of `game` while `other` plays too, from another seed."""
    random, last = np.random.default_rng(2), [None]

    def between():
        moment = last[0]
        if moment is None or moment.over:
            last[0] = other.reset(seed + 7 if moment is None else None)
        else:
            last[0] = other.step(other.actions(moment, random))

    return trace(game, steps, seed, seconds, 1, between)


def counted(n, thing):
    return f"{n} {thing}{'' if n == 1 else 's'}"


def said(worker, error):
    """An exception with its traceback, without the lines of this file and of worker.py."""
    if isinstance(error, worker.RefusedError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if frame.filename not in (__file__, worker.__file__) and "<frozen" not in frame.filename]
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_list(frames)).rstrip()


def guarded(worker, name, results):
    """The results; an exception is one more."""
    try:
        yield from results
    except FaultError as fault:
        yield result(name, "FAILED", str(fault))
    except Exception as error:
        yield result(name, "FAILED", said(worker, error))


def all_checks(worker, request):
    fit = True
    for one in guarded(worker, FORM, survey(worker, request)):
        fit = fit and one["name"] != OTHERS and not (one["name"] == FORM and one["verdict"] == "FAILED")
        yield one
    if fit:
        yield from guarded(worker, REPLICAS, seeds(worker, request))


# --- an original, beside an environment of ours ----------------------------------------------------------------------------------------


class Original:
    """One environment, stepped by the code that training uses. Its state is read by the names of our fields."""

    def __init__(self, worker, request):
        self.worker, made = worker, worker.make(request)
        Checked(worker, request, made).begin()
        self.description = worker.form_of(made) | {"time_limit": made.limit, "statistics": []}
        self.kinds = [(count, actor, mask) for count, _, actor, mask in worker.kinds_of(made)]
        widths = worker.widths_of(made)
        arrays = {name: np.zeros((1, widths[name]) if several else 1, dtype) for name, (dtype, several) in worker.ARRAYS.items()}
        self.arrays = types.SimpleNamespace(**arrays)
        self.room = worker.room_of([made], 0, self.arrays)
        self.env, self.fields = made.env, request["fields"]
        self.function = worker.imported(request["state"].partition(":")[0]) if request.get("state") else None
        for part in request["state"].partition(":")[2].split(".") if self.function else []:
            if not hasattr(self.function, part):
                raise worker.RefusedError(f"--state {request['state']}: there is no {part!r}")
            self.function = getattr(self.function, part)
        self.random = np.random.default_rng(request["seed"])

    def state(self):
        """{field: [numbers]} of all fields, or raises RefusedError."""
        if self.function is not None:
            found = self.function(self.env)
            if not isinstance(found, dict):
                raise self.worker.RefusedError(f"--state gives a {type(found).__name__}, and must give {{field: number or list of numbers}}")
            return {str(name): numbers_of(value) for name, value in found.items()}
        game = self.env.unwrapped
        named = {field["name"]: numbers_of(getattr(game, field["name"], None)) for field in self.fields}
        if all(values is not None and len(values) == field["count"] for field, values in zip(self.fields, named.values(), strict=True)):
            return named
        row = numbers_of(getattr(game, "state", None))
        if row is not None and len(row) == sum(field["count"] for field in self.fields):
            rest = iter(row)
            return {field["name"]: list(itertools.islice(rest, field["count"])) for field in self.fields}
        lacks = next(field["name"] for field in self.fields if named[field["name"]] is None or len(named[field["name"]]) != field["count"])
        raise self.worker.RefusedError(
            f"the state of the original is not known: {type(game).__name__} has no attribute {lacks!r} with as many numbers, "
            f"and `state` is {'not there' if row is None else counted(len(row), 'number')}"
        )

    def reset(self, request):
        self.arrays.deeds[0], self.arrays.seeds[0] = self.worker.SEEDED_RESET, request["seed"]
        self.room.step()
        return self.seen()

    def step(self, _):
        at = mask_at = 0
        arrays, actions = self.arrays, []
        for count, actor, choices in self.kinds:
            for _ in range(count):
                mask = arrays.masks[0, mask_at : mask_at + choices] if choices else None
                words = actor.draw(mask, self.random)
                arrays.actions[0, at : at + actor.width] = words
                actions += (words if actor.heads else words.view(np.float32)).tolist()
                at, mask_at = at + actor.width, mask_at + choices
        arrays.deeds[0] = self.worker.STEP
        self.room.step()
        return {"actions": actions} | self.seen()

    def seen(self):
        arrays = self.arrays
        return {
            "observations": plain(arrays.observations[0]),
            "rewards": plain(arrays.rewards[0]),
            "in_game": arrays.in_game[0].tolist(),
            "masks": arrays.masks[0].tolist(),
            "terminated": bool(arrays.terminated[0]),
            "truncated": bool(arrays.truncated[0]),
            "state": {name: plain(values) for name, values in self.state().items()},
        }


def numbers_of(value):
    """A flat list of floats, or None if it is none."""
    try:
        row = np.ravel(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        return None
    return None if value is None else row.tolist()


def plain(values):
    """Numbers as JSON knows them; others are text."""
    return [one if math.isfinite(one) else str(one) for one in map(float, values)]


def form_fault(worker, made):
    """What is wrong with the form of what an environment returns, which has raised something else because of it; empty: nothing."""
    game, random = Checked(worker, {}, made), np.random.default_rng(0)
    try:
        moment = game.reset(0)
        for _ in range(FEW):
            moment = game.step(game.actions(moment, random)) if game.live else game.reset()
    except FaultError as fault:
        return str(fault)
    except Exception:
        pass
    return ""


class Checks:
    """Answers requests: "begin" and "next" of checks, "open", "reset" and "step" of an original."""

    def __init__(self, worker):
        self.worker = worker
        self.results = self.original = None

    def answer(self, request):
        what = request["what"]
        if what == "begin":
            self.results = all_checks(self.worker, request)
            return {}
        if what == "next":
            return next(self.results, {"verdict": "done"})
        if what == "open":
            self.original = Original(self.worker, request)
            return self.original.description
        return getattr(self.original, what)(request)
