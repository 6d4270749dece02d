"""The commands on experiments: list, reproduce, report, simulate."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Collection, Iterator
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hybandits.cli.shared import (
    KEPT,
    Address,
    Bars,
    EngineName,
    EngineOption,
    Workers,
    command_line,
    make_engine,
    plain_errors,
    print_account,
)
from hybandits.experiments.config import Simulation, find_data

if TYPE_CHECKING:
    from hybandits.engines import Engine
    from hybandits.experiments.record import Experiment
    from hybandits.experiments.results import Results


class ProtocolName(StrEnum):
    """Choices of --protocol."""

    released = "released"
    written = "written"
    both = "both"


class ScaleName(StrEnum):
    """Choices of --scale."""

    quick = "quick"
    paper = "paper"


# Repeated here, since importing the module that has the list would slow down `hybandits --help`.
ArmsName = StrEnum("ArmsName", ["articles", "positions"])

Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report. It is created if missing.")]


def list_experiments() -> None:
    """List the paper's experiments and the available policies."""
    from hybandits import paper
    from hybandits.experiments.worlds import KINDS
    from hybandits.policies.by_name import policy_names, wrapper_names

    typer.echo("experiments (hybandits reproduce NAME):")
    for name, s in paper.SETTINGS.items():
        arms = ", ".join(map(str, s.arms))
        typer.echo(f"  {name:<15} {s.about}")
        typer.echo(f"{_UNDER}d1={s.d1}, d2={s.d2}, K={arms}; T={s.horizon:,}; {_runs(s.environments, s.trials)}")
        typer.echo(f"{_UNDER}quick: T={s.quick_horizon:,}; {_runs(s.environments, s.quick_trials)}")
        if name in paper.FRESH_ARMS:
            arms = ", ".join(map(str, paper.FRESH_ARMS[name]))
            typer.echo(f"{_UNDER}--environments N adds: K={arms}; N fresh environments x 1 trial")
    typer.echo(f"  {'yahoo':<15} a reward model fitted to a click log; bandits are simulated on the rounds that follow")
    typer.echo(
        f"{_UNDER}d1=36, d2=6; fit on {paper.YAHOO_TRAIN:,} rounds; T={paper.YAHOO_ROUNDS:,}; "
        "runs only when it is named"
    )
    typer.echo(_UNDER + "quick: fit on {:,}; T={:,}".format(*paper.QUICK_YAHOO))
    typer.echo("protocols:  released (parameters of the published figure), written (parameters of the paper's text)")
    in_the_paper = dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies)
    typer.echo(f"policies:   for reproduce --policies: {', '.join(in_the_paper)}")
    typer.echo(f"            for simulate, fit and evaluate --policy: {', '.join(policy_names())}")
    for name in wrapper_names():
        typer.echo(f'            around another policy: {name}:policy="HyLinUCB:noise=0.1"')
    typer.echo(
        "            of your own, in a module that can be imported from here: package.module:Class:setting=value"
    )
    typer.echo("worlds:     for simulate --world:")
    for name, kind in KINDS.items():
        typer.echo(f"            {name:<15}{kind.about}")
    typer.echo("            of your own, in the same way: package.module:Class:setting=value")


_UNDER = " " * 18
"""Where descriptions of experiments begin."""


def _runs(environments: int, trials: int) -> str:
    return f"{environments} environment{'s' * (environments > 1)} x {trials} trial{'s' * (trials > 1)}"


def reproduce(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments to run, see `hybandits list`; by default all but yahoo.", metavar="NAME"),
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="Use the parameters of the released code, of the paper's text, or both.")
    ] = ProtocolName.both,
    scale: Annotated[
        ScaleName,
        typer.Option(help="quick takes about two minutes; paper is full length and takes the best part of an hour."),
    ] = ScaleName.quick,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    out: Out = Path("out"),
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the environments; by default that of the released code.")
    ] = None,
    environments: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Also play settings 1, 2 and 3 in so many fresh environments, one trial each, and judge claims 1 to 3 "
            "on them too.",
        ),
    ] = None,
    policies: Annotated[
        str | None, typer.Option(help="Run only these policies, separated by commas: HyLinUCB,LinUCB.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="yahoo: folder with the R6A files, or a converted log. By default a synthetic log is generated."
        ),
    ] = None,
    train: Annotated[
        int | None,
        typer.Option(min=1, help="yahoo: number of rounds to fit the reward model to.  [1000000; quick: 100000]"),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="yahoo: number of rounds to play.  [10000000; quick: 200000]")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="yahoo: number of runs, which differ in their noise.")] = 1,
    arms: Annotated[
        ArmsName,
        typer.Option(
            help="yahoo: the arms are the articles, or the positions in the list of 20 as in the released code."
        ),
    ] = ArmsName.articles,
    defect: Annotated[
        bool,
        typer.Option(
            "--released-defect",
            help="yahoo: also run every algorithm with the released code's defect, in which it learns the reward of "
            "another arm.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="yahoo: stop at the first line that cannot be used.")
    ] = False,
) -> None:
    """Rerun the paper's evaluation and report, claim by claim, what holds.

    Each unit of work is saved as soon as it is finished, so a run that was interrupted or killed continues where it
    stopped when you give the same command again. The experiment on Yahoo's click log runs only when it is named:
    hybandits reproduce yahoo.
    """
    with plain_errors(KEPT):
        from hybandits import paper

        wanted = list(dict.fromkeys(names or (("yahoo",) if data is not None else paper.SETTINGS)))
        for name in wanted:
            _must_be_known("experiment", name, (*paper.SETTINGS, "yahoo"))
        if "yahoo" not in wanted:
            given = {"--train": train, "--rounds": rounds, "--trials": trials > 1, "--strict": strict}
            given |= {"--arms": arms is not ArmsName.articles, "--released-defect": defect}
            if idle := [name for name, value in given.items() if value]:
                is_or_are, them = ("is", "it") if len(idle) == 1 else ("are", "them")
                raise ValueError(
                    f"{', '.join(idle)} {is_or_are} for the yahoo experiment only: add yahoo to the names, or leave "
                    f"{them} out"
                )
        protocols: Any = ("released", "written") if protocol == "both" else (protocol.value,)
        start = paper.RELEASED_SEED if seed is None else seed
        synthetic = [name for name in wanted if name != "yahoo"]
        records = paper.experiments(synthetic, protocols, scale=scale.value, seed=start)
        if environments is not None:
            fresh = paper.fresh_experiments(
                synthetic, protocols, environments=environments, scale=scale.value, seed=start
            )
            if not fresh:
                raise ValueError(
                    f"--environments is for {', '.join(paper.FRESH_NAMES)}: name one of them, or leave it out"
                )
            records += fresh
        kept = None if policies is None else _paper_policies(policies)
        if kept is not None:
            records = [record.only(kept) for record in records if any(e.name in kept for e in record.policies)]
            if not records and "yahoo" not in wanted:
                raise ValueError(f"--policies {policies} leaves nothing to run in {', '.join(wanted)}: name others")
        chosen_engine = make_engine(engine, workers, address)
        log = None
        if "yahoo" in wanted:
            quick = scale is ScaleName.quick
            lengths = paper.QUICK_YAHOO if quick else (paper.YAHOO_TRAIN, paper.YAHOO_ROUNDS)
            yahoo_records, log = _yahoo_records(
                out, data, train=train or lengths[0], rounds=rounds or lengths[1], protocols=protocols,
                arms=arms.value, trials=trials, defect=defect, kept=kept, engine=chosen_engine,
                seed=0 if seed is None else seed, strict=strict,
            )  # fmt: skip
            records += yahoo_records
        about = {"scale": scale.value, "seed": start}
        _report(_run(records, out, chosen_engine, about, command_line(context), log))


def _paper_policies(text: str) -> list[str]:
    """The policies of the paper's experiments that --policies names."""
    from hybandits import paper

    known = list(dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies))
    spelling = {name.lower(): name for name in known} | {"hyranwithoutcrossblocks": paper.HYRAN_RELEASED}
    kept = [spelling.get(name.strip().lower(), name.strip()) for name in text.split(",") if name.strip()]
    for name in kept:
        _must_be_known("policy", name, known)
    return kept


def _yahoo_records(
    out: Path,
    data: Path | None,
    *,
    train: int,
    rounds: int,
    protocols: Any,
    arms: str,
    trials: int,
    defect: bool,
    kept: list[str] | None,
    engine: Engine,
    seed: int,
    strict: bool,
) -> tuple[list[Experiment], Path]:
    """The records of the Yahoo experiment, and the folder of its log."""
    from hybandits import paper
    from hybandits.foundation.files import make_writable_folder
    from hybandits.paper import yahoo

    chosen = [name for name in paper.YAHOO_POLICIES if kept is None or name in kept]
    if not chosen:
        raise ValueError(f"--policies leaves nothing of {', '.join(paper.YAHOO_POLICIES)} to run: name others")
    new = not out.exists()
    make_writable_folder(out)
    with (
        _removed_if_empty(out) if new else contextlib.nullcontext(),
        Bars() as progress,
    ):
        prepared = yahoo.prepare_log(out, data, train=train, rounds=rounds, seed=seed, strict=strict, progress=progress)
        split = yahoo.split_log(prepared.log, train=train, rounds=rounds)
        records = yahoo.experiments(
            prepared.log, split, protocols, arms=arms, trials=trials, seed=seed, defect=defect, policies=chosen,
            engine=engine, progress=progress,
        )  # fmt: skip
    if prepared.problems is not None:
        print_account(prepared.problems)
    return records, prepared.log.path


@contextlib.contextmanager
def _removed_if_empty(folder: Path) -> Iterator[None]:
    """Remove the folder if the work within fails and has left nothing in it."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


def report(
    folder: Annotated[Path, typer.Argument(help="A folder written by reproduce or simulate.", metavar="DIR")],
) -> None:
    """Draw the figures, write the page and print the tables again from saved results, without running anything."""
    with plain_errors():
        from hybandits.experiments.results import read_results
        from hybandits.foundation.files import make_writable_folder

        results = read_results(folder)
        make_writable_folder(folder)
        _report(results)


def simulate(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file with any of the settings below, from --policy to --name, or a record from a report.",
            metavar="FILE",
        ),
    ] = None,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    out: Out = Path("simulation"),
    **options: Any,
) -> None:
    """Run an experiment of your own: policies in a synthetic world of the kind and size you choose.

    Settings come from options or from a TOML file with the same names. Options override the file. The file's list of
    policies is called policies and holds names or tables ([[policies]] class = "HyThompson" scale = 0.5); --policy
    replaces the whole list. HyThompson and HyIDS learn the noise and the scale of the parameters unless their settings
    contain them. Other policies that need a noise level get that of the world unless their settings contain one.
    Policies and worlds of your own are imported from the current folder or from where Python finds modules.
    """
    with plain_errors(KEPT):
        import json

        from hybandits.experiments.record import Experiment
        from hybandits.foundation.files import read_toml

        beside = None if config is None else config.parent
        given = {name: value for name, value in options.items() if value is not None}
        if config is not None and config.suffix == ".json":
            if given:
                raise ValueError(f"{config} is a whole record: leave out --{', --'.join(given)}")
            record = Experiment.from_plain(json.loads(config.read_text()))
        else:
            record = Simulation.of(({} if config is None else read_toml(config)) | given).experiment(beside)
        data = find_data(record.world_settings, beside)
        _report(_run([record], out, make_engine(engine, workers, address), {}, command_line(context), data))


def _add_options(command: Any) -> None:
    """Give a command that takes ``**options`` an option for each field of `Simulation`, None unless it is given."""
    signature = inspect.signature(command, eval_str=True)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    added = []
    for each in fields(Simulation):
        settings: dict[str, Any] = dict(each.metadata)
        flag = settings.pop("flag", f"--{each.name}")
        kind: Any = settings.pop("type", type(each.default))
        default = each.default if isinstance(each.default, tuple) else [each.default]
        settings["help"] += f"  [{', '.join(map(str, default))}]"
        annotation: Any = Annotated[kind | None, typer.Option(flag, **settings)]
        added.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    parameters[2:2] = added
    command.__signature__ = signature.replace(parameters=parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}


_add_options(simulate)


def _must_be_known(what: str, name: str, known: Collection[str]) -> None:
    from hybandits.foundation.checks import nearest

    if name not in known:
        raise ValueError(f"there is no {what} {name!r}{nearest(name, known)}: choose from {', '.join(known)}")


def _run(
    records: list[Experiment], out: Path, engine: Engine, about: dict[str, Any], command: str, data: Path | None = None
) -> Results:
    from hybandits.experiments import runner

    with Bars() as bars:
        return runner.run(records, out, engine=engine, progress=bars, about=about, command=command, data=data)


def _report(results: Results) -> None:
    from rich.console import Console

    from hybandits.engines import cores
    from hybandits.paper.judging import judge
    from hybandits.report.page import write_report
    from hybandits.report.terminal import print_summary

    verdicts = judge(results)
    print_summary(results, verdicts)
    with Console(stderr=True).status("drawing figures"):
        page = write_report(results, verdicts, workers=min(cores(), len(results.outcomes)))
    typer.echo(f"wrote {page}")
