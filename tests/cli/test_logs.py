"""The commands on logs, as a user gives them: what they print, write and refuse."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hybandits
from hybandits.logs.store import Log
from tests.support.campaigns import HEADER, ROUNDS, campaign
from tests.support.command_line import complaints, run, run_process, said
from tests.support.own_classes import write_softmax


def test_convert_says_what_ids_are(tmp_path: Path) -> None:
    (tmp_path / "mapping.toml").write_text('arm = "item"\nreward = "click"\n')
    for ids, words in (
        ("7 8", "ids are integers such as 7"),
        ("7.0 8.0", "ids are integers such as 7"),
        ("hat 7", "ids are strings such as 'hat'"),
    ):
        (tmp_path / "x.csv").write_text("item,click\n" + "".join(f"{name},1\n" for name in ids.split()))
        converted = run("convert", tmp_path / "x.csv", tmp_path / ids, "--mapping", tmp_path / "mapping.toml")
        wrote, features = converted.stdout.splitlines()
        assert wrote.endswith(f"2 rounds, 2 arms, 1 pool; {words}")
        assert features.startswith("features: li by default, because ")


def test_convert_counts_what_it_skips_and_strict_stops(folder: Path, tmp_path: Path) -> None:
    (first, *_) = sorted((folder / "raw").glob("*.gz"))
    lines = gzip.decompress(first.read_bytes()).splitlines(keepends=True)[:10]
    lines[3] = b"1241160900 999 0 |user 1:1 |100 1:1\n"
    lines[7] = b"nonsense\n"
    (tmp_path / "bad").write_bytes(b"".join(lines))
    converted = run("convert", tmp_path / "bad", tmp_path / "log")
    assert converted.exit_code == 0
    assert "10 lines read: 8 rounds, 2 skipped" in said(converted)
    assert "line 4:" in said(converted)
    assert "line 8:" in said(converted)
    strict = run("convert", tmp_path / "bad", tmp_path / "strict", "--strict")
    assert strict.exit_code == 2
    assert "line 4" in said(strict)
    assert not (tmp_path / "strict").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["convert", "nowhere", "out"], "nowhere does not exist"),
        (["convert", "nowhere"], "and then the folder to create"),
        (["describe", "nowhere"], "nowhere is not a converted log"),
        (["fit", "LOG", "--policy", "HyLinUBC"], "did you mean HyLinUCB"),
        (["fit", "LOG", "--out", "missing/policy.npz"], "a folder that exists"),
        (["evaluate", "LOG", "--policy", "always:nobody"], "the log has no arm 'nobody'"),
        (["evaluate", "LOG", "--policy", "nowhere.npz"], "nowhere.npz"),
        (["evaluate", "LOG", "--policy", "uniform", "--policy", "uniform"], "uniform is given twice"),
        (
            ["reproduce", "setting-1", "--train", "20", "--out", "OUT"],
            "--train is for the yahoo experiment only: add yahoo to the names, or leave it out",
        ),
        (["evaluate", "LOG", "--policy", "uniform", "--estimators", "isp"], "isp"),
        (["evaluate", "LOG", "--policy", "uniform", "--level", "95"], "level"),
        (["evaluate", "LOG", "--policy", "uniform", "--from", "6000"], "none from round 6,000 on"),
        (["reproduce", "yahoo", "--data", "nowhere", "--out", "OUT"], "nowhere does not exist"),
    ],
)
def test_mistakes_get_one_line(folder: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    named = {"LOG": folder / "log", "OUT": tmp_path / "out"}
    refused = run(*(named.get(argument, argument) for argument in arguments))
    assert refused.exit_code == 2
    assert words in said(refused)
    errors = complaints(refused.stderr)
    assert len(errors) == 1
    assert errors[0].startswith("hybandits: ")
    assert not (tmp_path / "out").exists(), "nothing is left behind"


def test_describe_prints_facts(folder: Path) -> None:
    described = run("describe", folder / "log")
    assert described.exit_code == 0
    assert "6,000 from 2 files" in said(described)


@pytest.mark.slow
def test_fit_then_use_online_and_evaluate(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.npz"
    fitted = run(
        "fit", folder / "log", "--policy", "HyLinUCB:noise=0.3", "--rounds", 3000, "--features", "li", "--out", out
    )
    assert fitted.exit_code == 0, said(fitted)
    policy: Any = hybandits.load(out)
    assert policy.rounds == 3000
    evaluation = tmp_path / "evaluation"
    arguments = ["--policy", "uniform", "--policy", out, "--policy", f"always:{Log(folder / 'log').names[0]}"]
    evaluated = run("evaluate", folder / "log", "--from", 3000, *arguments, "--out", evaluation)
    assert evaluated.exit_code == 0, said(evaluated)
    assert "Difference to uniform, on the same rounds" in said(evaluated)
    plain = json.loads((evaluation / "evaluation.json").read_text())
    assert {e["estimator"] for e in plain["estimates"]} == {"ips", "snips", "dm", "dr"}
    # The features of the policy are those noted in it; the model behind dm and dr may have others.
    other = said(run("evaluate", folder / "log", "--policy", out, "--features", "das"))
    assert f"and of policies that learn: das; of {out}: li, as fitted" in other
    assert "looks better" in said(run("evaluate", folder / "log", "--policy", out))


@pytest.mark.slow
def test_fit_needs_no_settings_and_says_what_was_learned(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.npz"
    fitted = run("fit", folder / "log", "--policy", "HyThompson", "--rounds", 3000, "--out", out)
    assert fitted.exit_code == 0, said(fitted)
    policy = hybandits.load(out)
    assert policy.rounds == 3000
    assert policy.learned is not None
    assert f"noise {policy.learned.noise:.4g}" in said(fitted)
    arguments = ["--from", 3000, "--rounds", 500, "--policy", "uniform", "--policy", out]
    evaluated = run("evaluate", folder / "log", *arguments)
    assert evaluated.exit_code == 0, said(evaluated)


@pytest.mark.slow
def test_output_that_nobody_reads_is_no_error_of_the_command(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "hybandits", "evaluate", str(folder / "log"), "--policy", "uniform"]
    command += ["--estimators", "ips", "--workers", "1", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert complaints(process.stderr.read()) == []
    assert [file.name for file in out.iterdir()] == ["evaluation.json"]


def test_own_columns(tmp_path: Path) -> None:
    rows = ["item,click,age,p"] + [f"{'abc'[i % 3]},{i % 2},{i},0.5" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "map.toml").write_text('arm = "item"\nreward = "click"\nuser = ["age"]\npropensity = "p"\n')
    converted = run("convert", tmp_path / "own.csv", tmp_path / "log", "--mapping", tmp_path / "map.toml")
    assert converted.exit_code == 0, said(converted)
    assert Log(tmp_path / "log").rounds == 60
    (tmp_path / "wrong.toml").write_text('arm = "item"\nreward = "click"\nusr = ["age"]\n')
    wrong = run("convert", tmp_path / "own.csv", tmp_path / "log2", "--mapping", tmp_path / "wrong.toml")
    assert wrong.exit_code == 2
    assert "did you mean user" in said(wrong)
    lacking = run("convert", tmp_path / "own.csv", tmp_path / "log2")
    assert lacking.exit_code == 2
    assert "needs a mapping of its columns, which are item, click, age, p: convert it" in said(lacking)


@pytest.mark.slow
def test_a_bandit_is_fitted_to_named_columns_and_evaluated(tmp_path: Path) -> None:
    rows = "".join(f"{'ab'[i % 2]},{i % 3 % 2},{20 + i % 30},0.5\n" for i in range(60))
    (tmp_path / "log.csv").write_text("item,clicked,age,p\n" + rows)
    (tmp_path / "mapping.toml").write_text('arm = "item"\nreward = "clicked"\nuser = ["age"]\npropensity = "p"\n')
    assert run("convert", tmp_path / "log.csv", tmp_path / "log", "--mapping", tmp_path / "mapping.toml").exit_code == 0
    saved = tmp_path / "bandit.npz"
    fitted = run("fit", tmp_path / "log", "--features", "columns", "--out", saved)
    assert "Bandit(user=['age'], policy='HyIDS'): 60 rewards learned" in fitted.stdout
    assert hybandits.Bandit.load(saved).rounds == 60
    evaluated = run("evaluate", tmp_path / "log", "--policy", "uniform", "--policy", saved, "--workers", "1")
    assert evaluated.exit_code == 0, evaluated.stderr
    assert "bandit.npz" in evaluated.stdout


@pytest.mark.slow
def test_pair_features_from_a_campaign_to_an_evaluation(tmp_path: Path) -> None:
    raw, log, policy = campaign(tmp_path, HEADER + ROUNDS * 40), tmp_path / "log", tmp_path / "policy.npz"
    by_default = "features: das+pair by default, because the arms have features of their own; x ends with the pair "
    commands: list[tuple[object, ...]] = [
        ("convert", raw, log),
        ("describe", log),
        ("fit", log, "--policy", "Greedy", "--rounds", 60, "--out", policy),
        ("evaluate", log, "--policy", "uniform"),
    ]
    for command in commands:
        done = run(*command)
        assert done.exit_code == 0, said(done)
        assert by_default + "features (affinity)" in said(done)
    fitted = hybandits.load(policy)
    assert (fitted.notes["features"], fitted.notes["pair"]) == ("das+pair", ["affinity"])
    assert hybandits.Features.of(fitted).names_x[-1] == "pair.affinity"
    evaluated = run("evaluate", log, "--policy", policy, "--from", 60)
    assert evaluated.exit_code == 0, said(evaluated)
    assert "by default" not in said(evaluated)
    left_out = run("describe", log, "--features", "li")
    assert "features: li leaves out the pair features of the log (affinity); li+pair has them" in said(left_out)
    apart = run("evaluate", log, "--policy", policy, "--from", 60, "--features", "das")
    assert apart.exit_code == 0, said(apart)
    assert "policies that learn: das; of" in said(apart)
    assert "policy.npz: das+pair, as fitted" in said(apart)
    by_ips = [re.findall(r" ips ([\d.]+)", said(each)) for each in (evaluated, apart)]
    assert by_ips[0] == by_ips[1] != [], "the policy chooses by its own features, whatever those of the reward model"
    assert run("describe", log, "--features", "das+pairs").exit_code == 2


@pytest.mark.slow
def test_interrupted_convert_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from hybandits.logs import store\n"
        "write = store.LogWriter.write\n"
        "def interrupted(self, batch):\n"
        "    write(self, batch)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "store.LogWriter.write = interrupted\n"
        "from hybandits.__main__ import app\n"
        "app()\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, "convert", str(folder / "raw"), str(tmp_path / "log")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert process.returncode == 130
    assert "interrupted" in process.stderr
    assert "Traceback" not in process.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_policy_of_ones_own_is_fitted_and_evaluated(folder: Path, own_folder: Path) -> None:
    write_softmax(own_folder)
    own = "softmax:Softmax:temperature=0.1"
    fitted = run("fit", folder / "log", "--policy", own, "--rounds", 3000)
    assert fitted.exit_code == 0, fitted.stderr
    assert "wrote policy.npz: Softmax with" in fitted.stdout
    policies = ["--policy", "policy.npz", "--policy", own, "--policy", f'EpsilonGreedy:policy="{own}"']
    options = ["--from", 3000, "--rounds", 500, "--workers", "1", "--estimators", "ips"]
    evaluate = ["evaluate", folder / "log", *policies, *options]
    refused = run_process(*evaluate)
    assert refused.returncode == 2
    assert "import the module 'softmax' first (on the command line: evaluate --import softmax)" in refused.stderr
    evaluated = run_process(*evaluate, "--import", "softmax")
    assert evaluated.returncode == 0, evaluated.stderr
    assert own in evaluated.stdout
    wrong = run(*evaluate, "--import", "sofmax")
    assert "No module named 'sofmax'" in wrong.stderr
