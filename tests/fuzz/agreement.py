"""Whether --print_config and training agree about a configuration."""

import collections
import concurrent.futures
import json
import os
import shutil

from cli.program import output, wdtrain
from fuzz.configurations import GAMES, Draws


def record(folder):
    """Writes a recording of random play for each game that has one."""
    for name, game in GAMES.items():
        if game.recorded is None:
            continue
        settings = [word for key, value in game.recorded.items() for word in ("--set", f"env.{key}={value}")]
        policies = "{" + ", ".join(f"{role}: {{}}" for role in game.roles) + "}"
        output("record", "--random", "--env", name, *settings, "--set", f"policy={policies}", "--device", "cpu", "--num_envs", 5, "--steps", 500,
               "--out", folder / name)


def exit_codes(folder, name, config, ranks):
    """Of --print_config and of a training of one iteration, and what both said."""
    file, run = folder / f"{name}.yaml", folder / name
    file.write_text(json.dumps(config))  # which is YAML
    common = ["--config", file, "--device", "cpu", "--threads", 1, "-q", "--run_dir", run, *(["--num_workers", ranks] if ranks > 1 else [])]
    shown, trained = wdtrain(*common, "--print_config"), wdtrain(*common)
    shutil.rmtree(run, ignore_errors=True)
    return (shown.returncode, trained.returncode), f"{ranks} workers: {file.read_text()}\n{shown.stderr}\n{trained.stderr}"


def disagreements(count, seed, folder, workers=True):
    """How many of so many configurations had each pair of exit codes, and what was said where they do not agree."""
    record(folder / "recordings")
    draws = Draws(seed, folder / "recordings", workers)
    drawn = [(f"run{k}", *draws.configuration()) for k in range(count)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda one: exit_codes(folder, *one), drawn))
    return collections.Counter(codes for codes, _ in results), [f"{codes}, {said}" for codes, said in results if codes not in ((0, 0), (2, 2))]
