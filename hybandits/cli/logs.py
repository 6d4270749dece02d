"""The commands on logs: make-log, convert, describe, fit, evaluate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hybandits.cli.shared import Address, EngineName, EngineOption, Workers, account_for, bar, make_engine, plain_errors
from hybandits.foundation.interrupts import tidying

if TYPE_CHECKING:
    from hybandits.offline.view import View
    from hybandits.policies.base import Policy

Format = StrEnum("Format", ["yahoo", "openbandit", "columns"])
FeaturesName = StrEnum("FeaturesName", ["das", "li", "shared", "disjoint"])
IntervalName = StrEnum("IntervalName", ["bootstrap", "bernstein"])

LogArgument = Annotated[
    Path, typer.Argument(help="A log: a folder made by convert, or a raw click log (file or folder).", metavar="LOG")
]
Features = Annotated[
    FeaturesName,
    typer.Option(
        help="das: x = vec(user arm'), z = arm; li: the same x, z = user; shared: that x alone; disjoint: z = user."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first line that cannot be used.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Only the first so many rounds; all if left out.")]


def convert(
    paths: Annotated[
        list[Path], typer.Argument(help="Files or folders of a log, then the folder to make.", metavar="IN... OUT")
    ],
    form: Annotated[Format | None, typer.Option("--format", help="Of the input; found out if left out.")] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(help="For --format columns: a TOML file that says what columns mean, see docs/logs.md."),
    ] = None,
    strict: Strict = False,
) -> None:
    """Read a click log into one form: Parquet tables that all other commands, and other tools, read fast.

    Reads Yahoo! R6A and R6B (plain or gzip), the Open Bandit Dataset, and CSV or Parquet files of your own. Lines that
    cannot be used are counted, and the first few are shown.
    """
    with plain_errors():
        if len(paths) < 2:
            raise ValueError(f"convert takes what to read and then the folder to make, got only {paths[0]}")
        from hybandits.logs.formats import reader_of
        from hybandits.logs.problems import Problems
        from hybandits.logs.store import convert as into_one_form

        *inputs, out = paths
        reader = reader_of(inputs, format=None if form is None else form.value, mapping=_mapping(mapping))
        problems = Problems(strict=strict)
        with tidying(), bar("reading", reader.size, unit="B") as advance:
            log = into_one_form(reader, out, problems, advance)
        account_for(problems)
        for name in (name for name in log.user if name.endswith(("=other", "=(all other)"))):
            typer.echo(
                f"  too many categories: all but the most frequent of {name.partition('=')[0]} are {name}", err=True
            )
        typer.echo(f"wrote {out}: {str(log).partition(': ')[2]}")


def _mapping(path: Path | None) -> Any:
    if path is None:
        return None
    from hybandits.experiments.config import read_file
    from hybandits.logs.columns import Mapping as ColumnMapping

    settings = read_file(path)
    if isinstance(settings.get("arms_file"), str):
        settings["arms_file"] = path.parent / settings["arms_file"]
    try:
        return ColumnMapping.of(settings)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


@contextmanager
def _viewed(path: Path, features: str, *, strict: bool = False) -> Iterator[View]:
    """A log, converted for the time being if it is raw."""
    from hybandits.logs.formats import opened
    from hybandits.logs.store import HEADER, Log
    from hybandits.offline.view import View

    if (path / HEADER).is_file():
        with tidying():
            yield View(Log(path), features=features)
        return
    with tidying(), ExitStack() as stack:
        with bar("reading", None, unit="B") as advance:
            log, problems = stack.enter_context(opened([path], strict=strict, progress=advance))
        account_for(problems if problems is not None and (problems.skipped or problems.files) else None)
        yield View(log, features=features)


def describe(
    log: LogArgument,
    features: Features = FeaturesName.das,
    out: Annotated[Path | None, typer.Option("--json", help="Write everything to this file too.")] = None,
    strict: Strict = False,
) -> None:
    """What is in a log: arms over time, rewards, propensities, ranks, and what they mean for HyLinUCB's guarantee."""
    with plain_errors():
        from hybandits.offline.describe import describe as described
        from hybandits.report.logs import print_description

        if out is not None:
            _must_be_writable(out)
        with _viewed(log, features.value, strict=strict) as view, bar("reading", view.log.rounds) as advance:
            found = described(view, progress=advance)
        print_description(found)
        if out is not None:
            _write_json(out, found.plain())


def make_log(
    out: Annotated[Path, typer.Argument(help="Folder to write the files to; made if missing.", metavar="DIR")],
    rounds: Annotated[int, typer.Option(min=1, help="Visits in all.")] = 100_000,
    files: Annotated[int, typer.Option(min=1, help="Days they are spread over, one file each.")] = 1,
    pool: Annotated[int, typer.Option(min=3, help="Articles to choose from at a time, about.")] = 20,
    features: Annotated[
        FeaturesName, typer.Option(help="What clicks depend on: das (arm's own: its features) or li (the user's).")
    ] = FeaturesName.das,
    kind: Annotated[str, typer.Option(help="R6A or R6B.")] = "R6A",
    seed: Annotated[int, typer.Option(min=0, help="Everything is a function of it.")] = 0,
) -> None:
    """Write a click log in Yahoo's format from a known model, to try everything without the licensed data.

    What clicks depend on is written to truth.json beside the files.
    """
    with plain_errors():
        from hybandits.logs.synthetic import SyntheticLog

        made = SyntheticLog(rounds=rounds, seed=seed, pool=pool, features=features.value, kind=kind)
        with tidying(), bar("writing", rounds) as advance:
            made.write(out, files=files, progress=advance)
        typer.echo(f"wrote {rounds:,} rounds in {files} {'file' if files == 1 else 'files'} to {out}")


def fit(
    log: LogArgument,
    policy: Annotated[
        str, typer.Option(help="The policy to start warm, with settings after a colon: HyLinUCB:noise=0.3,ridge=2.")
    ] = "HyLinUCB",
    out: Annotated[
        Path, typer.Option(help="File to write, replaced if it is there; load it with hybandits.load.")
    ] = Path("policy.npz"),
    features: Features = FeaturesName.das,
    rounds: Rounds = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the policy's own draws.")] = 0,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    strict: Strict = False,
) -> None:
    """Teach a policy everything in a log, exactly and in one pass, and save it for use online."""
    with plain_errors():
        from hybandits import HyRan, SupLinUCB
        from hybandits.offline import fit as fitting
        from hybandits.policies.ridge_policy import RidgePolicy

        _must_be_writable(out)
        with _viewed(log, features.value, strict=strict) as view:
            stop = min(rounds or view.log.rounds, view.log.rounds)
            made = _policy(policy, view, stop, seed)
            with bar("fitting", stop) as advance:
                if isinstance(made, RidgePolicy):
                    engine_made = make_engine(engine, workers, address)
                    fitting.warm_start(made, fitting.collect(view, 0, stop, engine=engine_made, progress=advance))
                else:
                    fitting.learn_log(made, view, 0, stop, progress=advance)
            if isinstance(made, HyRan | SupLinUCB):
                typer.echo(
                    f"hybandits: {type(made).__name__} did not choose what the log shows, and has learned each round "
                    "as one with that arm alone",
                    err=True,
                )
            made.notes = {
                "features": features.value, "user": view.log.user, "arm": view.log.arm,
                "fitted_to": {"content": view.log.about["content"], "rounds": stop},
            }  # fmt: skip
        with tidying(""):
            made.save(out)
        typer.echo(
            f"wrote {out}: {type(made).__name__} with d1 = {made.d1}, d2 = {made.d2}, {stop:,} rounds of "
            f"{len(made.arms)} arms"
        )


def evaluate(
    log: LogArgument,
    policy: Annotated[
        list[str],
        typer.Option(
            help="Repeatable. A saved policy, frozen (policy.npz); uniform; logged; always:ARM; or, by replay, a "
            "policy that learns as it goes: HyLinUCB, HyThompson:noise=0.3 .."
        ),
    ],
    estimators: Annotated[
        str | None,
        typer.Option(
            help="Of replay, ips, snips, dm, dr, with commas.  [replay for those that learn, else the others]"
        ),
    ] = None,
    interval: Annotated[
        IntervalName, typer.Option(help="bootstrap, or bernstein: valid at any time, wider.")
    ] = IntervalName.bootstrap,
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    clip: Annotated[float | None, typer.Option(help="Cut weights off here; trades bias for variance.")] = None,
    reward_range: Annotated[
        str | None, typer.Option(help="Lowest and highest reward possible, for bernstein: 0,5.  [0,1]")
    ] = None,
    features: Annotated[
        FeaturesName | None, typer.Option(help="As for fit; those of the saved policies if left out, else das.")
    ] = None,
    start: Annotated[int, typer.Option("--from", min=0, help="The first round, e.g. after those of fit --rounds.")] = 0,
    rounds: Rounds = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap and of policies that learn.")] = 0,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for evaluation.json and a figure of the running estimates.")
    ] = None,
    strict: Strict = False,
) -> None:
    """What a policy would have earned on a log, and how sure that is.

    The first policy is the one that others are compared with, on the same rounds.
    """
    with plain_errors():
        from dataclasses import replace

        from hybandits import load
        from hybandits.experiments.runner import prepare
        from hybandits.offline.evaluation import evaluate as evaluated
        from hybandits.offline.evaluation import progress_total
        from hybandits.report.logs import draw_running, print_evaluation

        if twice := [spec for spec, count in Counter(policy).items() if count > 1]:
            raise ValueError(f"--policy {twice[0]} is given twice: name each once")
        if out is not None:
            prepare(out)
        saved = {spec: load(spec) for spec in dict.fromkeys(policy) if spec.endswith(".npz")}
        name = _features_of(saved, features)
        with _viewed(log, name, strict=strict) as view:
            stop = min(start + (rounds or view.log.rounds), view.log.rounds)
            _check_names(saved, view)
            targets = {spec: _target(spec, saved, view, stop, seed) for spec in dict.fromkeys(policy)}
            names = _estimators(estimators, targets)
            bounds = None if reward_range is None else _range(reward_range)
            made = make_engine(engine, workers, address)
            with bar("evaluating", progress_total(view, targets, estimators=names, start=start, stop=stop)) as advance:
                found = evaluated(
                    view, targets, estimators=names, interval=interval.value, level=level, seed=seed, clip=clip,
                    reward_range=bounds, start=start, stop=stop, engine=made, progress=advance,
                )  # fmt: skip
            _warn_of_own_rounds(saved, view, start)
        if estimators is None:  # what was not asked for need not be refused
            found = replace(found, estimates=[e for e in found.estimates if not _out_of_kind(e, targets)])
        files: list[Path] = []
        if out is not None:
            _write_json(out / "evaluation.json", found.plain(), quiet=True)
            files = [out / "evaluation.json", *draw_running(found, out)]
        print_evaluation(found)
        for file in files:
            typer.echo(f"wrote {file}")


def _features_of(saved: Mapping[str, Policy], asked: FeaturesName | None) -> str:
    """The features to use: those that saved policies were fitted with; an error if they differ."""
    noted = {spec: policy.notes["features"] for spec, policy in saved.items() if "features" in policy.notes}
    for spec, name in noted.items():
        wanted = next(iter(noted.values())) if asked is None else asked.value
        if name != wanted:
            raise ValueError(f"{spec} was fitted with --features {name}, not {wanted}: evaluate it in a run of its own")
    if asked is not None:
        return asked.value
    for spec in saved:
        if spec not in noted:
            taken = next(iter(noted.values()), "das")
            typer.echo(f"hybandits: {spec} does not say how its features are made: taking --features {taken}", err=True)
    return next(iter(noted.values()), "das")


def _check_names(saved: Mapping[str, Policy], view: View) -> None:
    """A policy fitted to other columns would take one for another."""
    for spec, policy in saved.items():
        for what, there in (("user", view.log.user), ("arm", view.log.arm)):
            fitted = policy.notes.get(what, there)
            if fitted != there:
                odd = [name for name in (*fitted, *there) if (name in fitted) != (name in there)]
                words = f"differing: {', '.join(odd[:3])}" if odd else "in another order"
                raise ValueError(
                    f"{spec} was fitted to a log with other {what} features ({words}): evaluate it on one with the same"
                )


def _warn_of_own_rounds(saved: Mapping[str, Policy], view: View, start: int) -> None:
    """A policy looks better than it is on rounds that it has learned from."""
    for spec, policy in saved.items():
        known = policy.notes.get("fitted_to", {})
        last = known.get("rounds", 0)
        if known.get("content") == view.log.about["content"] and start < last:
            remedy = f"evaluate it with --from {last}" if last < view.log.rounds else "fit it to fewer with --rounds"
            typer.echo(
                f"hybandits: {spec} has learned the first {last:,} rounds of this log and looks better on them than it "
                f"is: {remedy}",
                err=True,
            )


def _target(spec: str, saved: Mapping[str, Policy], view: View, horizon: int, seed: int) -> Any:
    """What --policy names: a frozen policy, a rule, or a policy that learns."""
    from hybandits.offline.evaluation import Frozen, Learning

    if spec in saved:
        return Frozen(saved[spec])
    if spec.lower() in ("uniform", "logged"):
        return spec.lower()
    if spec.lower().startswith("always:"):
        return f"always {spec.partition(':')[2]}"
    try:
        return Learning(_policy(spec, view, horizon, seed))
    except ValueError as problem:
        if str(problem).startswith("there is no policy"):
            raise ValueError(f"{problem}; or uniform, logged, always:ARM, or a saved policy (a file .npz)") from None
        raise


def _estimators(asked: str | None, targets: dict[str, Any]) -> tuple[str, ...]:
    """Replay for policies that learn, the others for those that do not, unless asked for."""
    from hybandits.offline.evaluation import Learning

    if asked is not None:
        return tuple(part.strip().lower() for part in asked.split(",") if part.strip())
    learning = any(isinstance(target, Learning) for target in targets.values())
    fixed = any(not isinstance(target, Learning) for target in targets.values())
    return ("replay",) * learning + ("ips", "snips", "dm", "dr") * fixed


def _out_of_kind(estimate: Any, targets: dict[str, Any]) -> bool:
    """A refusal only because the estimator is not for this kind of policy."""
    from hybandits.offline.evaluation import Learning

    learns = isinstance(targets[estimate.policy], Learning)
    return estimate.value is None and learns != (estimate.estimator == "replay")


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--reward-range must be two numbers such as 0,1, got {text!r}") from None
    return low, high


def _policy(spec: str, view: View, horizon: int, seed: int) -> Policy:
    """A new policy by name, whatever its capitals."""
    from hybandits.policies.by_name import make_policy, parse_policy, policy_names, with_noise

    given, settings = parse_policy(spec)
    name = {name.lower(): name for name in policy_names()}.get(given.lower(), given)
    # A click is 0 or 1: its standard deviation is at most 1/2.
    settings = with_noise(name, settings, 0.5)
    return make_policy(name, settings, d1=view.d1, d2=view.d2, arms=len(view.names), horizon=horizon, seed=seed)


def _must_be_writable(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: give a file in a folder that is there")


def _write_json(path: Path, content: dict[str, Any], *, quiet: bool = False) -> None:
    from hybandits.foundation.files import write_atomically

    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_atomically(path, lambda name: Path(name).write_text(text))
    if not quiet:
        typer.echo(f"wrote {path}")
