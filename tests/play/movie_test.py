"""`wdtrain play --out FILE.gif|.mp4`: frames show agents where the recorded state says they are."""

import json
import os
import stat
import subprocess

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from cli.program import output, wdtrain
from play import cells

MARGIN = 10
TAGGER, RUNNER, SCENERY = (213, 94, 0), (43, 123, 208), (150, 156, 164)


@pytest.fixture
def ffmpeg(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    os.symlink(imageio_ffmpeg.get_ffmpeg_exe(), tmp_path / "bin" / "ffmpeg")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def tag_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "tag"
    output("--env", "tag_continuous", "--device", "cpu", "--quiet", "--set", "env.num_taggers=1", "--set", "env.num_runners=2",
           "--set", "env.episode_length=30", "--num_envs", 4, "--train_batch_size", 40, "--total_steps", 40, "--run_dir", run)
    return run


def play(run, out, *arguments):
    said = output("play", "--run", run, "--device", "cpu", "--out", out, *arguments)
    output("play", "--run", run, "--device", "cpu", "--out", out.with_suffix(".json"), *[a for a in arguments if a not in ("--fps", 10)])
    return said, json.loads(out.with_suffix(".json").read_text())


def centers(frame, color):
    """Centers of the blobs of a color: positions of its pixels, split where they are far apart."""
    rows, columns = np.nonzero(np.abs(frame.astype(int) - color).sum(2) < 30)
    blobs = []
    for x, y in zip(columns, rows):
        near = [blob for blob in blobs if np.hypot(*(np.mean(blob, 0) - (x, y))) < 14]
        near[0].append((x, y)) if near else blobs.append([(x, y)])
    return [np.mean(blob, 0) for blob in blobs if len(blob) > 12]


def test_a_gif_shows_agents_where_they_are(ffmpeg, tag_run, tmp_path):
    said, rollout = play(tag_run, tmp_path / "tag.gif", "--fps", 10)
    assert "tag.gif" in said and "browser" not in said
    image = Image.open(tmp_path / "tag.gif")
    frames = [np.array(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
    episode = rollout["episodes"][0]
    assert image.info["duration"] == 100
    assert len(frames) == episode["steps"] + 1
    drawing = rollout["drawing"]
    height, width = frames[0].shape[:2]
    scale = min(640 / (drawing["right"] - drawing["left"]), 480 / (drawing["top"] - drawing["bottom"]))
    assert (width, height) == pytest.approx(((drawing["right"] - drawing["left"]) * scale + 20, (drawing["top"] - drawing["bottom"]) * scale + 20), abs=2)
    seen = 0
    for t, frame in enumerate(frames):
        for role, color, agents in (("tagger", TAGGER, [0]), ("runner", RUNNER, [1, 2])):
            found = centers(frame, color)
            for slot, agent in enumerate(agents):
                place = np.array([MARGIN + (episode["state"]["x"][t][agent] - drawing["left"]) * scale,
                                  MARGIN + (drawing["top"] - episode["state"]["y"][t][agent]) * scale])
                near = [center for center in found if np.hypot(*(center - place)) < 8]
                if episode["roles"][role]["in_game"][t][slot]:
                    assert near or len(found) < len(agents), (t, role, place, found)  # others may cover it
                    seen += bool(near)
    assert seen > 60, "most agents of 31 frames are visible"


def test_two_players_are_beside_each_other(ffmpeg, tag_run, tmp_path):
    output("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / "one.gif")
    output("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / "other.gif", "--policy", "tagger=random", "--policy", "runner=random")
    output("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / "two.gif", "--beside", "random")
    one, other, two = [[np.array(frame.convert("RGB")) for frame in ImageSequence.Iterator(Image.open(tmp_path / f"{name}.gif"))]
                       for name in ("one", "other", "two")]
    assert len(two) == max(len(one), len(other)) and two[0].shape[1] == 2 * one[0].shape[1]
    for t, frame in enumerate(two):
        for half, alone in zip(np.hsplit(frame, 2), (one, other)):
            assert np.abs(half.astype(int) - alone[min(t, len(alone) - 1)]).mean() < 1, t  # palettes differ a little


def test_an_mp4_has_all_episodes(ffmpeg, tag_run, tmp_path):
    _, rollout = play(tag_run, tmp_path / "tag.mp4", "--episodes", 2)
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "tag.mp4"))
    meta = next(reader)
    assert meta["fps"] == 20
    assert sum(1 for _ in reader) == sum(episode["steps"] + 1 for episode in rollout["episodes"])


@pytest.mark.parametrize("env", ["acrobot", "cartpole", "continuous_mountain_car", "mountain_car", "pendulum", "tag_gridworld",
                                 "simple_tag", "simple_spread", "foraging", "simple_adversary", "simple_reference", "simple_speaker_listener", "memory_chain",
                                 "t_maze"])
def test_every_environment_can_be_filmed(ffmpeg, env, tmp_path):
    output("--env", env, "--device", "cpu", "--quiet", "--total_steps", 1, "--run_dir", tmp_path / "run")
    output("play", "--run", tmp_path / "run", "--device", "cpu", "--max_steps", 5, "--out", tmp_path / "out.gif")
    frames = [np.array(frame.convert("RGB")) for frame in ImageSequence.Iterator(Image.open(tmp_path / "out.gif"))]
    assert len(frames) >= 2 and any(not np.array_equal(frames[0], frame) for frame in frames[1:])
    assert len({tuple(pixel) for pixel in frames[0].reshape(-1, 3)}) > 3


def test_an_array_is_scenery(ffmpeg, tmp_path):
    starts = [{"landmark_x": [-1, -0.5, 0, 0.5, 1, 0], "landmark_y": [1.25] * 5 + [-1.25], "x": [0] * 4, "y": [-0.75, -0.25, 0.25, 0.75]}]
    (tmp_path / "starts.json").write_text(json.dumps(starts))
    output("--env", "simple_tag", "--device", "cpu", "--quiet", "--total_steps", 1, "--run_dir", tmp_path / "run", "--set", "env.num_landmarks=6",
           "--set", "env.landmark_size=0.05", "--set", "env.reset=given", "--set", f"env.starts={tmp_path / 'starts.json'}")
    output("play", "--run", tmp_path / "run", "--device", "cpu", "--starts", "training", "--max_steps", 1, "--out", tmp_path / "out.gif")
    frame = np.array(next(iter(ImageSequence.Iterator(Image.open(tmp_path / "out.gif")))).convert("RGB"))
    places = [(MARGIN + (x + 1.5) * 160, MARGIN + (1.5 - y) * 160) for x, y in zip(starts[0]["landmark_x"], starts[0]["landmark_y"])]
    found = centers(frame, SCENERY)
    assert len(found) == 6
    assert all(any(np.hypot(*(center - place)) < 3 for center in found) for place in places)


@pytest.mark.parametrize("game", cells.GAMES)
def test_cells_are_a_board(ffmpeg, game, tmp_path):
    run, rollout = cells.played(game, tmp_path, "out.gif")
    columns, rows = cells.GAMES[game].columns, cells.GAMES[game].rows
    scale = min(640 / columns, 480 / rows)
    colors = {"": (255, 255, 255), "gray": SCENERY, "#12ab9f": (0x12, 0xAB, 0x9F), "#f0e442": (0xF0, 0xE4, 0x42)}
    colors.update(zip(cells.GAMES[game].roles, (TAGGER, RUNNER)))
    frames = [np.array(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(Image.open(run / "out.gif"))]
    assert len(frames) == rollout["episodes"][0]["steps"] + 1
    for t, frame in enumerate(frames):

        def seen(x, y):
            pixel = frame[int(MARGIN + (rows - 0.5 - y) * scale), int(MARGIN + (x + 0.5) * scale)]
            return next((color for color in colors.values() if np.abs(pixel - color).sum() < 9), tuple(pixel))  # a palette has few colors

        for place, color in cells.expected(game, rollout, t).items():
            assert seen(*place) == colors[color], (t, place)


def test_trails_lie_on_cells(ffmpeg, tmp_path):
    run, _ = cells.played("tiles", tmp_path, "out.gif", arguments=["--set", "env.walkers=true"])
    frames = [np.array(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(Image.open(run / "out.gif"))]
    seen = lambda x, y: frames[cells.TRAIL_STEP][int(MARGIN + (2.5 - y) * 128), int(MARGIN + (x + 0.5) * 128)]
    for place in (cells.BESIDE_TRAIL, cells.NO_TRAIL):
        assert np.abs(seen(*place) - SCENERY).sum() < 9
    red, green, blue = seen(*cells.ON_TRAIL) - SCENERY
    assert red > 10 and green < -10 and blue < -30, "the color of the agent over that of the cell"


def test_without_ffmpeg_nothing_is_played(tag_run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = wdtrain("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / "a.gif")
    assert done.returncode == 2 and "there is no ffmpeg in PATH" in done.stderr and "apt install ffmpeg" in done.stderr


def test_a_failure_of_ffmpeg_keeps_the_older_file(tag_run, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ffmpeg").write_text("#!/bin/sh\necho no codec >&2\nexit 1\n")
    (tmp_path / "bin" / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "a.mp4").write_text("old")
    done = wdtrain("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / "a.mp4")
    assert done.returncode == 1 and "ffmpeg could not write" in done.stderr and "no codec" in done.stderr
    assert (tmp_path / "a.mp4").read_text() == "old" and {path.name for path in tmp_path.iterdir()} == {"bin", "a.mp4"}


def test_a_movie_follows_the_link_that_the_user_named_and_no_other(ffmpeg, tag_run, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".a.gif.tmp").symlink_to(victim)
    (tmp_path / "b.gif").symlink_to("real.gif")
    for name in ("a.gif", "b.gif"):
        output("play", "--run", tag_run, "--device", "cpu", "--max_steps", 3, "--out", tmp_path / name)
        Image.open(tmp_path / name).verify()
    assert victim.read_text() == "mine" and not (tmp_path / "a.gif").is_symlink()
    assert (tmp_path / "b.gif").is_symlink() and (tmp_path / "real.gif").is_file()


def test_a_movie_goes_into_a_pipe(ffmpeg, tag_run, tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    command = [os.environ["WDTRAIN"], "play", "--run", str(tag_run), "--device", "cpu", "--max_steps", "3", "--out", str(tmp_path / "pipe.mp4")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        movie = (tmp_path / "pipe.mp4").read_bytes()
    assert process.returncode == 0 and movie[4:8] == b"ftyp" and stat.S_ISFIFO((tmp_path / "pipe.mp4").stat().st_mode)


@pytest.mark.parametrize("name", ["a.gif", "a.mp4"])
def test_a_movie_on_a_full_disk_keeps_the_older_file(ffmpeg, tag_run, tmp_path, name):
    (tmp_path / name).write_text("old")
    full = "write:1:ENOSPC"
    done = wdtrain("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / name, env={**os.environ, "WD_FAILPOINT": full})
    assert done.returncode == 1 and f".{name}.tmp: cannot write: No space left on device" in done.stderr
    assert (tmp_path / name).read_text() == "old" and {path.name for path in tmp_path.iterdir()} == {"bin", name}


def test_an_ffmpeg_that_writes_a_part_and_says_nothing_is_noticed(tag_run, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ffmpeg").write_text('#!/bin/sh\ncat >/dev/null\nfor file; do :; done\nprintf GIF89a >"${file#file:}"\n')
    (tmp_path / "bin" / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    done = wdtrain("play", "--run", tag_run, "--device", "cpu", "--out", tmp_path / "a.gif")
    assert done.returncode == 1 and "ffmpeg could not write" in done.stderr and not (tmp_path / "a.gif").exists()


@pytest.mark.parametrize("x", [1e9, -1e9, 3e38])
def test_what_is_far_outside_of_the_picture_takes_no_time(ffmpeg, x, tmp_path):
    (tmp_path / "far.json").write_text(json.dumps([{"x": x, "x_dot": 0, "theta": 0, "theta_dot": 0}]))
    output("--env", "cartpole", "--device", "cpu", "--quiet", "--total_steps", 1, "--run_dir", tmp_path / "run")
    output("play", "--run", tmp_path / "run", "--device", "cpu", "--set", "env.reset=given", "--set", f"env.starts={tmp_path / 'far.json'}", "--starts",
           "training", "--out", tmp_path / "far.gif", timeout=20)
