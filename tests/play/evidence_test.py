"""Training that ends because an environment returned NaN or infinity leaves a page that shows how it came to that."""

import base64
import json
import os
import pathlib
import re
import subprocess
import zlib

import numpy as np
import pytest

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"


def train(folder, *arguments):
    done = subprocess.run([FAULTY, "--env", "faulty", "--set", "env.fault=overflow", "--run_dir", folder, "--num_envs", "12",
                           "--device", "cpu", "-q", "--set", "policy={player: {algorithm: A2C, normalize_value: false}}", *arguments],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    return done.stderr


def read_page(page):
    """The description in the page, and a function that unpacks a series of it."""
    text = page.read_text()
    find = lambda name: re.search(rf'<script[^>]*id="{name}"[^>]*>(.*?)</script>', text, re.S).group(1)
    data = zlib.decompress(base64.b64decode(find("numbers")))

    def numbers(series):
        n = series["width"] * series["moments"]
        if series["type"] == "f32":
            return np.frombuffer(data, np.float32, n, series["at"]).reshape(-1, series["width"])
        width = 1 if series["type"] == "u8" else 2
        planes = np.frombuffer(data, np.uint8, n * width, series["at"]).reshape(width, series["width"], -1).astype(np.int64)
        differences = sum(plane << 8 * k for k, plane in enumerate(planes))
        return (series["min"] + series["step"] * (np.cumsum(differences, 1) % 256 ** width)).T

    return json.loads(find("rollout")), numbers


@pytest.mark.parametrize("arguments", [
    ["--train_batch_size", 12 * 60, "--total_steps", 10 ** 6],  # episodes end within a rollout
    ["--train_batch_size", 12 * 7, "--total_steps", 10 ** 6],
    ["--train_batch_size", 12 * 7, "--total_steps", 10 ** 6, "--num_workers", 2],
])
def test_the_page_ends_where_the_number_is_infinite(tmp_path, arguments):
    said = train(tmp_path / "run", *map(str, arguments))
    where = re.search(r"observation inf in step (\d+) of the rollout, replica (\d+), agent 5, entry 3, in iteration (\d+)", said)
    step, replica, iteration = map(int, where.groups())
    page = tmp_path / "run" / "rollouts" / f"failed_in_iteration_{iteration}_replica_{replica}.html"
    rollout, numbers = read_page(page)
    (episode,) = rollout["episodes"]
    assert f"{page} shows the last {episode['steps']} step" in said and "browser" in said
    assert rollout["run"] == f"iteration {iteration}, replica {replica}"
    score = numbers(episode["state"]["score"])
    assert len(score) == episode["steps"] + 1 <= step + 1
    assert np.isfinite(score[:-1]).all(), "only the last step led to it"
    assert np.isinf(score[-1][5]) and np.isfinite(np.delete(score[-1], 5)).all()
    player, moves = episode["roles"]["player"], numbers(episode["state"]["moves"])
    twos = numbers(player["action"])[:, 5] == 2
    grows = score[1:, 5] > 1e4 * np.maximum(score[:-1, 5].astype(float), 1e-3)
    assert np.array_equal(twos, grows), "agent 5's number grows where it chose 2"
    assert np.array_equal(np.ravel(moves), moves[0, 0] + np.arange(episode["steps"] + 1)), "one episode, without gaps"
    assert numbers(player["in_game"]).all()


def test_a_weight_leaves_no_page(tmp_path):
    done = subprocess.run([os.environ["WDTRAIN"], "--env", "cartpole", "--device", "cpu", "-q", "--run_dir", tmp_path / "run",
                           "--num_envs", "4", "--train_batch_size", "40", "--fault", "iter=3,kind=nan:weight"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "weight 'layers.0.weight'[0] is nan" in done.stderr
    assert not (tmp_path / "run" / "rollouts").exists()
