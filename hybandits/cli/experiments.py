"""The commands on experiments: list, reproduce, report, simulate."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
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
    account_for,
    command_line,
    make_engine,
    plain_errors,
)

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
    from hybandits.policies.by_name import policy_names, wrapper_names
    from hybandits.simulation.kinds import KINDS

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
    for kind, (words, _) in KINDS.items():
        typer.echo(f"            {kind:<15}{words}")
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
    account_for(prepared.problems)
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
            help="A TOML file with any of the settings below, from --policy to --name.", metavar="FILE.toml"
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy, with settings after a colon: HyThompson:scale=0.5,noise=0.1. One of your own: "
            'package.module:Class:setting=value. One around another: EpsilonGreedy:policy="HyLinUCB:ridge=2". '
            "Repeat it for several.  [HyLinUCB, LinUCB, DisLinUCB]"
        ),
    ] = None,
    d1: Annotated[int | None, typer.Option(help="Number of shared features.  [10]")] = None,
    d2: Annotated[int | None, typer.Option(help="Number of features of each arm's own part.  [5]")] = None,
    arms: Annotated[str | None, typer.Option(help="Number of arms K, or several: 10,100.  [20]")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds T.  [10000]")] = None,
    environments: Annotated[int | None, typer.Option(help="Number of environments.  [5]")] = None,
    trials: Annotated[int | None, typer.Option(help="Number of trials in each environment.  [1]")] = None,
    noise: Annotated[float | None, typer.Option(help="Standard deviation of the reward's noise.  [0.1]")] = None,
    law: Annotated[
        str | None,
        typer.Option(help="Distribution of the features: ball, cube-direction, inscribed-cube or sphere.  [ball]"),
    ] = None,
    theta_bound: Annotated[float | None, typer.Option(help="Bound on the norm of theta.  [1]")] = None,
    beta_bound: Annotated[float | None, typer.Option(help="Bound on the norm of every beta_i.  [1]")] = None,
    world: Annotated[
        str | None,
        typer.Option(
            help="Kind of world: linear, clicks, products, churn or classification; or one of your own: "
            "package.module:Class:setting=value.  [linear]"
        ),
    ] = None,
    jumps: Annotated[
        int | None, typer.Option(help="linear: how often all parameters are drawn anew, at even distances.  [0]")
    ] = None,
    walk: Annotated[
        float | None,
        typer.Option(
            help="linear: parameters walk, and forget where they were in about so many rounds; 0: they stay.  [0]"
        ),
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(help="linear: what the arms have of their own: drawn, zero (nothing) or alike.  [drawn]"),
    ] = None,
    constant: Annotated[bool, typer.Option("--constant", help="linear: the last feature of z is a 1.")] = False,
    heavy_tails: Annotated[
        bool, typer.Option("--heavy-tails", help="linear: Student's noise with 3 degrees of freedom.")
    ] = False,
    rate: Annotated[float | None, typer.Option(help="clicks, products: the share of clicks.  [0.05]")] = None,
    spread: Annotated[
        float | None, typer.Option(help="clicks, products: standard deviation of the log odds.  [0.5]")
    ] = None,
    every: Annotated[
        int | None, typer.Option(help="churn: a tenth of the arms is replaced after so many rounds.  [250]")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="classification: a CSV or Parquet file, or terrain, which is made.  [terrain]"),
    ] = None,
    label: Annotated[str | None, typer.Option(help="classification: the column of the class.  [the last one]")] = None,
    factor: Annotated[float | None, typer.Option(help="Rewards are multiplied by it.  [1]")] = None,
    offset: Annotated[float | None, typer.Option(help="It is added to all rewards.  [0]")] = None,
    delay: Annotated[int | None, typer.Option(help="Rewards are learned so many rounds later.  [0]")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the environments.  [0]")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the experiment.  [simulation]")] = None,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    out: Out = Path("simulation"),
) -> None:
    """Run an experiment of your own: policies in a synthetic world of the kind and size you choose.

    Settings come from options or from a TOML file with the same names (theta_bound for --theta-bound). Options override
    the file. The file's list of policies is called policies and holds names or tables ([[policies]] policy =
    "HyThompson" scale = 0.5); --policy replaces the whole list. HyThompson and HyIDS learn the noise and the scale of
    the parameters unless their settings contain them. Other policies that need a noise level get that of the world
    unless their settings contain one. All other settings have the policies' defaults. Policies and worlds of your own
    are imported from the current folder or from where Python finds modules; the settings of such a world are a table,
    [world_settings].
    """
    with plain_errors(KEPT):
        from hybandits.experiments.config import experiment, with_data_beside, without_text
        from hybandits.foundation.files import read_toml

        given = {
            "policies": policy, "d1": d1, "d2": d2, "rounds": rounds, "environments": environments, "trials": trials,
            "noise": noise, "law": law, "theta_bound": theta_bound, "beta_bound": beta_bound, "seed": seed,
            "name": name, "world": world, "jumps": jumps, "walk": walk, "own": own, "constant": constant or None,
            "heavy_tails": heavy_tails or None, "rate": rate, "spread": spread, "every": every, "data": data,
            "label": label,
            "factor": factor, "offset": offset, "delay": delay,
            "arms": None if arms is None else _whole_numbers("--arms", arms),
        }  # fmt: skip
        options = {key: value for key, value in given.items() if value is not None}
        settings = without_text(options if config is None else read_toml(config) | options)
        if config is not None and "data" not in without_text(options):
            settings = with_data_beside(settings, config)
        record = experiment(settings)
        file = Path(settings["data"]) if record.needs_data else None
        _report(_run([record], out, make_engine(engine, workers, address), {}, command_line(context), file))


def _must_be_known(what: str, name: str, known: Collection[str]) -> None:
    from hybandits.foundation.checks import nearest

    if name not in known:
        raise ValueError(f"there is no {what} {name!r}{nearest(name, known)}: choose from {', '.join(known)}")


def _whole_numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be whole numbers separated by commas, got {text!r}") from None


def _run(
    records: list[Experiment], out: Path, engine: Engine, about: dict[str, Any], command: str, data: Path | None = None
) -> Results:
    from hybandits.experiments import runner

    with Bars() as bars:
        return runner.run(records, out, engine=engine, progress=bars, about=about, command=command, data=data)


def _report(results: Results) -> None:
    from rich.console import Console

    from hybandits.engines import ProcessEngine, cores
    from hybandits.paper.judging import judge
    from hybandits.report.terminal import print_summary
    from hybandits.report.write import write_report

    verdicts = judge(results)
    print_summary(results, verdicts)
    with Console(stderr=True).status("drawing figures"):
        engine = ProcessEngine(min(cores(), len(results.protocols)))
        page = write_report(results.folder, results=results, verdicts=verdicts, engine=engine)
    typer.echo(f"wrote {page}")
