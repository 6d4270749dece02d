"""The commands on logs: make-log, convert, describe, fit, evaluate."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybandits.cli.shared import (
    EngineOption,
    Strict,
    Workers,
    bar,
    make_engine,
    plain_errors,
    print_account,
)

if TYPE_CHECKING:
    from hybandits.evaluation.view import View
    from hybandits.logs.columns import Mapping as ColumnMapping

IntervalName = StrEnum("IntervalName", ["bootstrap", "bernstein"])

LogArgument = Annotated[
    Path,
    typer.Argument(help="A log: a folder written by convert.", metavar="LOG"),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="MAP",
        help="Features from the user's and the arm's vectors. das: x = vec(user arm'), z = arm; li: the same x, z = "
        "user; shared: the same x, no z; disjoint: no x, z = user. das+pair: x also ends with the log's features of "
        "user and arm together; das+pair:z: z does; das+pair:xz: both do. By default das or li, with +pair if the log "
        "has such features.",
    ),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Use only this many rounds; by default all of them.")]


def make_log(
    out: Annotated[Path, typer.Argument(help="Folder to write the files to. It is created if missing.", metavar="DIR")],
    rounds: Annotated[int, typer.Option(min=1, help="Number of visits in all.")] = 100_000,
    files: Annotated[int, typer.Option(min=1, help="Number of files, one for each day.")] = 1,
    pool: Annotated[int, typer.Option(min=3, help="Average number of candidates at a time.")] = 20,
    features: Annotated[
        str, typer.Option(metavar="MAP", help="Features of an article's part of the click rate: das or li.")
    ] = "das",
    kind: Annotated[str, typer.Option(metavar="R6A|R6B", help="Format of the files.")] = "R6A",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same log.")] = 0,
) -> None:
    """Write a synthetic click log in Yahoo's format, so that everything can be tried without the licensed data.

    Clicks are drawn from a known model, which is written to truth.json beside the files.
    """
    with plain_errors():
        from hybandits.logs.synthetic import SyntheticLog

        log = SyntheticLog(rounds=rounds, seed=seed, pool=pool, features=features, kind=kind)
        with bar("writing", rounds) as advance:
            log.write(out, files=files, progress=advance)
        typer.echo(f"wrote {rounds:,} rounds in {files} {'file' if files == 1 else 'files'} to {out}")


def convert(
    paths: Annotated[
        list[Path], typer.Argument(help="Files or folders of a log, then the folder to create.", metavar="IN... OUT")
    ],
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="yahoo|openbandit|columns", help="Format; by default it is recognised."),
    ] = None,
    mapping: Annotated[Path | None, typer.Option(help="TOML file that describes columns, see docs/logs.md.")] = None,
    strict: Strict = False,
) -> None:
    """Convert a click log to Parquet tables, which all other commands (and other tools) read fast.

    Reads Yahoo! R6A and R6B (plain or gzip), the Open Bandit Dataset, and CSV or Parquet files of your own. Lines that
    cannot be used are skipped and counted by reason, each with the first example.
    """
    with plain_errors():
        if len(paths) < 2:
            raise ValueError(f"convert needs a log and then the folder to create, got only {paths[0]}: add the folder")
        from hybandits.evaluation.view import View
        from hybandits.logs.formats import reader_of
        from hybandits.logs.report import ReadReport
        from hybandits.logs.store import convert as convert_log

        *inputs, out = paths
        reader = reader_of(inputs, format=form, mapping=_read_mapping(mapping))
        report = ReadReport(strict=strict)
        with bar("reading", reader.size) as advance:
            log = convert_log(reader, out, report, advance)
        print_account(report)
        kind = "integers" if isinstance(log.names[0], int) else "strings"
        typer.echo(f"wrote {out}: {str(log).partition(': ')[2]}; ids are {kind} such as {log.names[0]!r}")
        _say_features(View(log))


def _read_mapping(path: Path | None) -> ColumnMapping | None:
    if path is None:
        return None
    from hybandits.foundation.files import read_toml
    from hybandits.logs.columns import Mapping as ColumnMapping

    settings = read_toml(path)
    if isinstance(settings.get("arms_file"), str):
        settings["arms_file"] = path.parent / settings["arms_file"]
    try:
        return ColumnMapping.of(settings)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


def _say_features(view: View) -> None:
    name, pair = view.map.name, ", ".join(view.log.pair)
    if view.why is not None:
        typer.echo(f"features: {name} by default, because {view.why}")
    elif pair and not view.map.pair:
        typer.echo(f"features: {name} leaves out the pair features of the log ({pair}); {name}+pair has them")


def _viewed(path: Path, features: str | None) -> View:
    from hybandits.evaluation.view import View
    from hybandits.logs.store import Log

    return View(Log(path), features=features)


def describe(
    log: LogArgument,
    features: Features = None,
) -> None:
    """Describe a log: arms over time, rewards, propensities and features."""
    with plain_errors():
        from hybandits.evaluation.describe import describe as describe_log
        from hybandits.report.terminal import print_description

        view = _viewed(log, features)
        with bar("reading", view.log.rounds) as advance:
            description = describe_log(view, progress=advance)
        print_description(replace(description, path=str(log)))
        _say_features(view)


def fit(
    log: LogArgument,
    policy: Annotated[str, typer.Option(help="The policy to fit, as for simulate: HyLinUCB:noise=0.3.")] = "HyIDS",
    out: Annotated[Path, typer.Option(help="File to write. Load it with hybandits.load.")] = Path("policy.npz"),
    features: Annotated[
        str | None,
        typer.Option(metavar="MAP", help="As for describe; columns: fit a Bandit to the columns of the log by name."),
    ] = None,
    rounds: Rounds = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the policy's own draws.")] = 0,
    engine: EngineOption = "local",
    workers: Workers = None,
) -> None:
    """Fit a policy to the rounds of a log, exactly and in one pass, and save it for use online."""
    with plain_errors():
        from hybandits.evaluation import fit as fitting
        from hybandits.evaluation.targets import note_fit, policy_for

        if out.is_dir() or not out.parent.is_dir():
            raise ValueError(f"{out} cannot be written: give a file in a folder that exists")
        if features == "columns":
            _fit_bandit(log, policy, out, rounds, seed)
            return
        view = _viewed(log, features)
        stop = min(rounds or view.log.rounds, view.log.rounds)
        fitted = policy_for(view, policy, horizon=stop, seed=seed)
        name = type(fitted).__name__
        if not fitted.learns_from_sums:
            raise ValueError(f"{name} learns from its own choices, not from a log: fit another policy")
        with bar("fitting", stop) as advance:
            statistics = fitting.collect(view, 0, stop, engine=make_engine(engine, workers), progress=advance)
            fitting.warm_start(fitted, statistics)
        note_fit(fitted, view, stop)
        fitted.save(out)
        typer.echo(
            f"wrote {out}: {name} with d1 = {fitted.d1}, d2 = {fitted.d2}, {stop:,} rounds of {len(fitted.arms)} arms"
        )
        _say_features(view)
        if (learned := fitted.learned) is not None:
            typer.echo(f"learned from the rewards: noise {learned.noise:.4g}; log evidence {learned.evidence:,.1f}")


def _fit_bandit(log: Path, policy: str, out: Path, rounds: int | None, seed: int) -> None:
    """Teach a `Bandit` the columns of a log."""
    from hybandits.bandit import Bandit
    from hybandits.evaluation.named import LogColumns, fit_bandit

    view = _viewed(log, None)
    stop = min(rounds or view.log.rounds, view.log.rounds)
    bandit = Bandit(**LogColumns(view.log).declared(), policy=policy, seed=seed)
    fit_bandit(bandit, view, 0, stop)
    bandit.save(out)
    typer.echo(f"wrote {out}: {bandit}")
    typer.echo(bandit.features.summary())


def evaluate(
    log: LogArgument,
    policy: Annotated[
        list[str],
        typer.Option(
            help="A saved policy (policy.npz), uniform, logged, always:ARM, or the name of a policy that learns during "
            "replay, as for fit. Repeat it for several."
        ),
    ],
    estimators: Annotated[
        str | None,
        typer.Option(help="Any of replay, ips, snips, dm, dr, separated by commas; by default all that fit."),
    ] = None,
    interval: Annotated[
        IntervalName, typer.Option(help="bootstrap, or bernstein, which is valid at any time and wider.")
    ] = IntervalName.bootstrap,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    clip: Annotated[float | None, typer.Option(help="Largest weight: less variance and more bias.")] = None,
    keep: Annotated[
        float | None,
        typer.Option(help="Probability with which replay keeps a choice; by default from the propensities."),
    ] = None,
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Range of rewards, for bernstein and the model of dr.  [bernstein: 0 1]"),
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="MAP", help="As for fit; saved policies keep their own features.")
    ] = None,
    start: Annotated[int, typer.Option("--from", min=0, help="First round to use.")] = 0,
    rounds: Rounds = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap and of policies that learn.")] = 0,
    engine: EngineOption = "local",
    workers: Workers = None,
    out: Annotated[Path | None, typer.Option(help="Folder for evaluation.json.")] = None,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", help="Module of a saved policy's class. Repeat it for several.", metavar="MODULE"),
    ] = None,
) -> None:
    """Estimate the mean reward of policies on a log, with confidence intervals.

    The other policies are compared with the first one on the same rounds.
    """
    with plain_errors():
        from hybandits.bandit import Bandit, load
        from hybandits.evaluation import EvaluationPlan, targets
        from hybandits.foundation.files import make_writable_folder, write_text
        from hybandits.policies.by_name import import_named
        from hybandits.report.terminal import print_evaluation

        if twice := [spec for spec, count in Counter(policy).items() if count > 1]:
            raise ValueError(f"--policy {twice[0]} is given twice: name each once")
        if out is not None:
            make_writable_folder(out)
        for module in modules or ():
            import_named(module)
        loaded = {spec: load(spec) for spec in policy if spec.endswith(".npz")}
        bandits = {spec: each for spec, each in loaded.items() if isinstance(each, Bandit)}
        saved = {spec: each for spec, each in loaded.items() if not isinstance(each, Bandit)}
        common = targets.common_features(saved) if features is None else features
        view = _viewed(log, common)
        for spec in (spec for spec in saved if features is None and "features" not in saved[spec].notes):
            _note(f"{spec} does not say how its features are built: using --features {view.map.name}")
        stop = min(start + (rounds or view.log.rounds), view.log.rounds)
        targets.check_fitted(saved, view)
        wanted = (
            None if estimators is None else [word for word in estimators.lower().replace(" ", "").split(",") if word]
        )
        plan = EvaluationPlan(
            view,
            {
                spec: bandits.get(spec) or targets.target_for(view, spec, saved=saved, horizon=stop, seed=seed)
                for spec in policy
            },
            estimators=wanted, interval=interval.value, level=level,
            seed=seed, clip=clip, keep=keep, start=start, stop=stop,
            reward_range=reward_range,
        )  # fmt: skip
        with bar("evaluating", plan.total) as advance:
            evaluation = plan.evaluate(make_engine(engine, workers), advance)
        for spec in saved:
            if start < (last := targets.rounds_learned(saved[spec], view)):
                note = f"{spec} has learned the first {last:,} rounds, so it looks better on them than it is"
                _note(f"{note}: evaluate it with --from {last}, or fit it to fewer")
        if out is not None:
            write_text(out / "evaluation.json", json.dumps(evaluation.plain(), indent=1, allow_nan=False) + "\n")
        print_evaluation(evaluation)
        _say_features(view)
        maps = {spec: each.notes.get("features", view.map.name) for spec, each in saved.items()}
        if own := ", ".join(f"{spec}: {name}" for spec, name in maps.items() if name != view.map.name):
            common = f"features of the reward model behind dm and dr, and of policies that learn: {view.map.name}"
            typer.echo(f"{common}; of {own}, as fitted")
        if out is not None:
            typer.echo(f"wrote {out / 'evaluation.json'}")


def _note(text: str) -> None:
    typer.echo(f"hybandits: {text}", err=True)
