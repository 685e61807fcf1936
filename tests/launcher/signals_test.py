"""L7: the launcher gets a signal to stop."""

import os
import signal
import time

import pytest

from launcher.gangs import LONG, children, ended, is_alive, iteration, started, wait_for, workers

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("to", ["launcher", "group"])
def test_L7_one_signal_stops_all_at_one_iteration(number, to, tmp_path):
    with started("--workers", 3, *LONG, "--run_dir", tmp_path, start_new_session=True) as process:
        wait_for(lambda: iteration(tmp_path) > 2)
        os.killpg(process.pid, number) if to == "group" else process.send_signal(number)
        code, text = ended(process)
    assert code == 128 + number, text
    said = "hung up (SIGHUP): stopping after this iteration" if number == signal.SIGHUP else "stopping after this iteration; once more to stop at once"
    assert text.count(said) == text.count("stopping") == 1
    assert "error" not in text
    assert not list(tmp_path.glob("error*"))


@pytest.mark.parametrize("phase", ["rollout", "checkpoint"])
def test_L7_in_other_phases_it_is_heard_when_they_end(phase, tmp_path):
    with started("--workers", 2, *LONG, "--silent", f"1:3:{phase}:400", "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 2)
        process.send_signal(signal.SIGINT)
        code, text = ended(process)
    assert code == 130, text
    assert iteration(tmp_path) == 3


def test_L7_the_second_signal_kills_at_once(tmp_path):
    with started("--workers", 3, *LONG, "--silent", "1:3:checkpoint:60000", "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 2)
        pids = workers(process.pid)
        process.send_signal(signal.SIGINT)
        assert "once more to stop at once" in wait_for_line(process, "stopping")
        time.sleep(0.2)
        assert all(map(is_alive, pids))
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 130, "the first signal counts"
        assert time.monotonic() - begin < 1
        assert not any(map(is_alive, pids))


@pytest.mark.parametrize("numbers", [[signal.SIGHUP] * 3, [signal.SIGTERM, signal.SIGHUP], [signal.SIGHUP, signal.SIGHUP, signal.SIGINT]])
def test_L7_hanging_up_again_kills_nobody(numbers, tmp_path):
    """A shell sends HUP to its jobs, to which the kernel has sent it; a service manager sends it after TERM."""
    with started("--workers", 2, *LONG, "--silent", "1:3:rollout:600", "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 2)
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.05)
        code, text = ended(process)
    assert (code, "error" in text) == (128 + numbers[0], False), text
    assert iteration(tmp_path) == 3


def test_L7_after_hanging_up_the_second_wish_of_a_person_kills(tmp_path):
    with started("--workers", 2, *LONG, "--silent", "1:3:checkpoint:60000", "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 2)
        pids = workers(process.pid)
        for number in (signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
            time.sleep(0.2)
            assert all(map(is_alive, pids))
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 129, "the first signal counts"
        assert not any(map(is_alive, pids))


def wait_for_line(process, word):
    while word not in (line := process.stderr.readline()):
        assert line, f"{word} was never said"
    return line


@pytest.mark.parametrize("delay", [0, 0.01, 0.05])
def test_L7_while_workers_start_a_signal_ends_them(delay, tmp_path):
    """Workers without signal handlers are killed by the signal; the others wait for peers that never come.
    All end, and none is blamed."""
    for careless in ("yes", "no"):
        with started("--workers", 3, *LONG, "--start_ms", 100, "--careless", careless, "--run_dir", tmp_path) as process:
            wait_for(lambda: children(process.pid))
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            code, text = ended(process)
        assert code == 143, text
        assert "error" not in text


def test_L7_a_failure_while_stopping_is_told(tmp_path):
    with started("--workers", 2, *LONG, "--silent", "1:2:rollout:600", "--fault", "rank=1,iter=2,kind=throw", "--restarts", 3, "--run_dir",
                 tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 1)
        process.send_signal(signal.SIGINT)
        code, text = ended(process)
    assert (code, "error: rank 1" in text, "restart 1" in text) == (1, True, False), text


def test_L7_what_was_ignored_stays_ignored(tmp_path):
    """As under nohup when the terminal is closed: launcher and workers get the ignored signal."""
    with started("--workers", 2, "--iterations", 30, "--ms", 20, "--careless", "yes", "--run_dir", tmp_path, start_new_session=True,
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        wait_for(lambda: iteration(tmp_path) > 1)
        os.killpg(process.pid, signal.SIGHUP)
        assert ended(process)[0] == 0
