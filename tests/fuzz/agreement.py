"""Whether --print_config and training agree about a configuration."""

import collections
import json

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


def disagreements(count, seed, folder, workers=True):
    """Runs --print_config and a training of one iteration of so many configurations. Returns how many had each pair of exit codes, and the text
    of those that do not agree."""
    record(folder / "recordings")
    draws, codes, found = Draws(seed, folder / "recordings", workers), collections.Counter(), []
    for k in range(count):
        config, ranks = draws.configuration()
        file = folder / f"config{k}.yaml"
        file.write_text(json.dumps(config))  # which is YAML
        common = ["--config", file, "--device", "cpu", "--threads", 1, "-q", "--run_dir", folder / f"run{k}", *(["--num_workers", ranks] if ranks > 1 else [])]
        shown, trained = wdtrain(*common, "--print_config"), wdtrain(*common)
        codes[shown.returncode, trained.returncode] += 1
        if (shown.returncode, trained.returncode) not in ((0, 0), (2, 2)):
            found.append(f"configuration {k}, {ranks} workers: {file.read_text()}\n{shown.returncode} {shown.stderr}\n{trained.returncode} {trained.stderr}")
    return codes, found
