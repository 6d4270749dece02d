"""The command line: results, bad input, interruption, and that it starts fast by importing little."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from hybandits import DisLinUCB, HyLinUCB, LinUCB, SelfNormalised, paper
from hybandits.environments import Synthetic
from hybandits.simulate import cumulative_regret


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hybandits", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


def test_reproduce_prints_a_table_and_writes_the_figure(tmp_path: Path) -> None:
    got = run("reproduce", "--rounds", "1000", "--environments", "2", "--out", str(tmp_path / "new" / "out"))
    assert got.returncode == 0, got.stderr
    lines = got.stdout.splitlines()
    assert lines[0].split() == ["policy", "mean", "regret", "lowest", "highest", "published"]
    assert [line.split()[0] for line in lines[1:6]] == ["HyLinUCB", "LinUCB", "DisLinUCB", "HyThompson", "Greedy"]
    out = tmp_path / "new" / "out"
    assert (out / "setting-1-demonstration.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / "setting-1-demonstration.svg").read_text()
    numbers = json.loads((out / "setting-1-demonstration.json").read_text())
    assert numbers["rounds"] == 1000
    assert len(numbers["regret"]["HyLinUCB"]) == 2
    assert "%" not in got.stderr, "no progress bar when nobody watches"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "--rounds", "0"], "--rounds"),
        (["reproduce", "--environments", "9"], "--environments"),
        (["reproduce", "--rounds", "many"], "--rounds"),
        (["nonsense"], "nonsense"),
        (["reproduc"], "reproduc"),
        (["reproduce", "--out", str(Path(__file__))], "is a file: give a folder"),
        (["reproduce", "--out", str(Path(__file__) / "deeper")], "is a file: give a folder"),
    ],
)
def test_bad_input_is_one_clear_complaint(arguments: list[str], message: str) -> None:
    got = run(*arguments)
    assert got.returncode == 2
    assert message in got.stderr
    assert "Traceback" not in got.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("hybandits 0.")
    for arguments in (["--help"], ["reproduce", "--help"]):
        got = run(*arguments)
        assert got.returncode == 0
        assert "reproduce" in got.stdout


def test_importing_and_helping_does_not_load_the_compiler() -> None:
    for code in ("import hybandits", "import hybandits.cli"):
        got = subprocess.run(
            [sys.executable, "-c", f"{code}; import sys; print('numba' in sys.modules, 'numpy' in sys.modules)"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert got.stdout.split() == ["False", "False"]


def test_interruption_ends_with_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hybandits", "reproduce", "--rounds", "80000", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    time.sleep(6)  # 80,000 rounds of five policies take far longer, compilation or not
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors


def test_setting_1_lands_on_the_published_read_outs() -> None:
    """Five environments, 2,500 rounds: mean regret within 3 % (or the read-out's own error, about 3 units)."""
    coefficient = SelfNormalised(noise=0.01, bound=(0.8, 0.5), delta=0.01)
    for kind in (HyLinUCB, LinUCB, DisLinUCB):
        total = 0.0
        for seed in paper.RELEASED_SEEDS:
            policy = kind(d1=40, d2=5, exploration=coefficient, ridge=0.1)
            total += cumulative_regret(policy, Synthetic(d1=40, d2=5, arms=25, seed=seed), 2500)[-1] / 5
        published = paper.SETTING_1.published[kind.__name__][2500]
        assert_allclose(total, published, rtol=0.03, atol=3)
