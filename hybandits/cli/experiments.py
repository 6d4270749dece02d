"""The commands on experiments: list, reproduce, report, simulate."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hybandits.cli.shared import (
    KEPT,
    EngineOption,
    Workers,
    bars,
    command_line,
    make_engine,
    plain_errors,
    print_account,
)
from hybandits.experiments.config import Simulation, experiment

if TYPE_CHECKING:
    from hybandits.engines import Engine
    from hybandits.experiments.record import Experiment
    from hybandits.experiments.results import Results


ProtocolName = StrEnum("ProtocolName", ["released", "written", "both"])
ScaleName = StrEnum("ScaleName", ["quick", "paper"])

# Repeated here, because importing the module with the list would slow down `hybandits --help`.
ArmsName = StrEnum("ArmsName", ["articles", "positions"])

Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report. It is created if missing.")]


def list_experiments() -> None:
    """List the paper's experiments and the available policies."""
    from hybandits import paper
    from hybandits.experiments.worlds import KINDS
    from hybandits.policies.by_name import policy_names

    typer.echo("experiments (hybandits reproduce NAME):")
    for name, setting in paper.SETTINGS.items():
        arms = ", ".join(map(str, setting.arms))
        typer.echo(f"  {name:<17} {setting.about}")
        typer.echo(f"{'':20}d1={setting.d1}, d2={setting.d2}, K={arms}; T={setting.horizon:,}")
        typer.echo(f"{'':20}environments: {setting.environments}, trials: {setting.trials}")
    for name, family in paper.FAMILIES.items():
        typer.echo(f"  {name:<17} {family.about}")
        typer.echo(f"{'':20}{family.size}")
    typer.echo(f"  {'yahoo':<17} a reward model fitted to a click log; bandits are simulated on the rounds that follow")
    typer.echo(f"{'':20}d1=36, d2=6; fit on {paper.YAHOO_TRAIN:,} rounds; T={paper.YAHOO_ROUNDS:,}")
    typer.echo("protocols:  released (parameters of the published figure), written (parameters of the paper's text)")
    typer.echo(f"policies:   for reproduce --policies: {', '.join(_paper_policies())}")
    typer.echo(f"            for simulate, fit and evaluate --policy: {', '.join(policy_names())}")
    typer.echo('            around another policy: EpsilonGreedy:policy="HyLinUCB:noise=0.1"')
    typer.echo("worlds:     for simulate --world:")
    for name, (_, about) in KINDS.items():
        typer.echo(f"            {name:<15}{about}")
    typer.echo("policies and worlds of your own: package.module:Class:setting=value")


def reproduce(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments, see `hybandits list`; by default all but yahoo.", metavar="NAME"),
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="Use the parameters of the released code, of the paper's text, or both.")
    ] = ProtocolName.both,
    scale: Annotated[
        ScaleName, typer.Option(help="quick takes under three minutes; paper is full length: some 80 minutes.")
    ] = ScaleName.quick,
    engine: EngineOption = "local",
    workers: Workers = None,
    out: Out = Path("out"),
    seed: Annotated[int | None, typer.Option(min=0, help="Seed; by default that of the released code.")] = None,
    environments: Annotated[
        int | None, typer.Option(min=2, help="Number of fresh environments to play settings 1, 2 and 3 in as well.")
    ] = None,
    policies: Annotated[str | None, typer.Option(help="Only these policies, separated by commas.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="yahoo: folder with the R6A files or a converted log; by default synthetic.")
    ] = None,
    train: Annotated[
        int | None, typer.Option(min=1, help="yahoo: rounds to fit the reward model to.  [1000000; quick: 100000]")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="yahoo: rounds to play.  [10000000; quick: 200000]")] = None,
    trials: Annotated[int, typer.Option(min=1, help="yahoo: number of runs, which differ in their noise.")] = 1,
    arms: Annotated[
        ArmsName, typer.Option(help="yahoo: the arms are the articles, or the positions as in the released code.")
    ] = ArmsName.articles,
    model: Annotated[
        Path | None,
        typer.Option(help="yahoo: file of the reward model (JSON, or the released weights); by default one is fitted."),
    ] = None,
) -> None:
    """Rerun the paper's evaluation and report, claim by claim, what holds.

    Each unit of work is saved as soon as it is finished: after an interruption, the same command continues the run. The
    experiment on Yahoo's click log runs only when it is named: hybandits reproduce yahoo.
    """
    with plain_errors(KEPT):
        from hybandits import paper

        known = (*paper.SETTINGS, *paper.FAMILIES)
        wanted = list(dict.fromkeys(names or (("yahoo",) if data is not None else known)))
        for name in wanted:
            _must_be_known("experiment", name, (*known, "yahoo"))
        given = {"--train": train, "--rounds": rounds, "--trials": trials > 1, "--arms": arms is not ArmsName.articles,
                 "--model": model}  # fmt: skip
        if "yahoo" not in wanted and any(given.values()):
            option = next(option for option, value in given.items() if value)
            raise ValueError(f"{option} is for the yahoo experiment only: add yahoo to the names, or leave it out")
        protocols: Any = ("released", "written") if protocol == "both" else (protocol.value,)
        start = paper.RELEASED_SEED if seed is None else seed
        synthetic = [name for name in wanted if name != "yahoo"]
        chosen: Any = {"scale": scale.value, "seed": start}
        records = paper.records_of(synthetic, protocols, **chosen)
        if environments is not None:
            names = [name for name in synthetic if name in paper.FRESH_NAMES]
            if not names:
                raise ValueError(f"--environments is for {', '.join(paper.FRESH_NAMES)}: name one, or leave it out")
            fresh = [(name, protocol) for protocol in protocols for name in names]
            records += [paper.fresh_experiment(*each, environments=environments, **chosen) for each in fresh]
        on_log = list(paper.YAHOO_POLICIES) if "yahoo" in wanted else []
        if policies is not None:
            spelling = {name.lower(): name for name in _paper_policies()}
            kept = [spelling.get(name.strip().lower(), name.strip()) for name in policies.split(",") if name.strip()]
            for name in kept:
                _must_be_known("policy", name, spelling.values())
            shares = [[e.name for e in record.policies if e.name.partition(",")[0] in kept] for record in records]
            records = [record.only(names) for record, names in zip(records, shares, strict=True) if names]
            on_log = [name for name in on_log if name in kept]
        if not records and not on_log:
            raise ValueError(f"--policies {policies} leaves nothing to run in {', '.join(wanted)}: name others")
        chosen_engine = make_engine(engine, workers)
        log = None
        if on_log:
            from hybandits.paper import yahoo

            full = scale is ScaleName.paper
            lengths = (paper.YAHOO_TRAIN, paper.YAHOO_ROUNDS) if full else paper.QUICK_YAHOO
            size = {"train": train or lengths[0], "rounds": rounds or lengths[1]}
            with bars() as progress:
                clicks, account = yahoo.prepare_log(out, data, **size, seed=seed or 0, progress=progress)
                records += yahoo.experiments(
                    clicks, yahoo.split_log(clicks, **size), protocols, arms=arms.value, trials=trials,
                    seed=seed or 0, policies=on_log, model=model, engine=chosen_engine, progress=progress,
                )  # fmt: skip
            if account is not None:
                print_account(account)
            log = clicks.path
        _run(records, out, chosen_engine, chosen, command_line(context), log)


def _paper_policies() -> list[str]:
    from hybandits import paper

    return list(dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies))


def report(
    folder: Annotated[Path, typer.Argument(help="A folder written by reproduce or simulate.", metavar="DIR")],
    pack: Annotated[
        bool, typer.Option("--pack", help="Join the units of every complete case in one file, which is much smaller.")
    ] = False,
) -> None:
    """Draw the figures, write the page and print the tables again from saved results, without running anything."""
    with plain_errors():
        from hybandits.experiments import results
        from hybandits.experiments.results import read_results

        if pack:
            results.pack(folder)
        _report(read_results(folder))


def simulate(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file with these settings, or a record from a report.", metavar="FILE")
    ] = None,
    engine: EngineOption = "local",
    workers: Workers = None,
    out: Out = Path("simulation"),
    **options: Any,
) -> None:
    """Run an experiment of your own: policies in a synthetic world of the kind and size you choose.

    Settings come from options or from a TOML file with the same names. Options override the file. The file's list of
    policies is called policies and holds names or tables ([[policies]] class = "HyLinUCB" ridge = 0.5); --policy
    replaces the whole list. Policies that need a noise level get that of the world unless they learn it or their
    settings contain one. Classes of your own are imported from the current folder or from where Python finds modules.
    """
    with plain_errors(KEPT):
        import json

        from hybandits.experiments.record import Experiment
        from hybandits.foundation.files import read_toml

        given = {name: value for name, value in options.items() if value is not None}
        if config is not None and config.suffix == ".json":
            if given:
                raise ValueError(f"{config} is a whole record: leave out --{', --'.join(given)}")
            record = Experiment.from_plain(json.loads(config.read_text()))
        else:
            record = experiment(({} if config is None else read_toml(config)) | given)
        _run([record], out, make_engine(engine, workers), {}, command_line(context))


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
        raise ValueError(f"unknown {what} {name!r}{nearest(name, known)}: choose from {', '.join(known)}")


def _run(
    records: list[Experiment], out: Path, engine: Engine, about: dict[str, Any], command: str, data: Path | None = None
) -> None:
    from hybandits.experiments import runner

    with bars() as progress:
        results = runner.run(records, out, engine=engine, progress=progress, about=about, command=command, data=data)
    _report(results)


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
