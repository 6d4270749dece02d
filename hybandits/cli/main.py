"""The command line: parse, call, print."""

# ruff: noqa: E402  (imports take a while, and Ctrl-C is listened for first)

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys

from hybandits.foundation import interrupts

interrupts.on_interrupt(interrupts.interrupt, instead_of=signal.default_int_handler)

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ModuleNotFoundError as missing:  # the core install has no command line
    sys.exit(f"hybandits: the command line needs {missing.name}: pip install 'hybandits[lab]'")

from hybandits.cli import logs as cli_logs
from hybandits.cli.shared import Address, EngineName, EngineOption, Workers, make_engine, plain_errors
from hybandits.foundation.version import __version__

app = typer.Typer(
    name="hybandits",
    help="Contextual bandits with a shared part and a part of each arm's own: x.theta + z.beta_arm.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ProtocolName(StrEnum):
    released = "released"
    written = "written"
    both = "both"


class ScaleName(StrEnum):
    quick = "quick"
    paper = "paper"


ArmsName = StrEnum("ArmsName", ["articles", "positions"])

Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report; made if missing.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hybandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("list")
def list_experiments() -> None:
    """The paper's experiments, and the policies there are."""
    from hybandits import paper
    from hybandits.policies.by_name import policy_names

    typer.echo("experiments (hybandits reproduce NAME):")
    for name, s in paper.SETTINGS.items():
        arms = ", ".join(map(str, s.arms))
        typer.echo(f"  {name:<10} {s.about}")
        typer.echo(f"             d1={s.d1}, d2={s.d2}, K={arms}; T={s.horizon:,}; {_runs(s.environments, s.trials)}")
        short = f"T={s.quick_horizon:,}; {_runs(s.environments, s.quick_trials)}"
        typer.echo(f"             quick: {short}")
    typer.echo("  yahoo      a reward model fitted to a click log, bandits simulated on the rounds that follow")
    typer.echo(
        f"             d1=36, d2=6; fit on {paper.YAHOO_TRAIN:,} rounds; T={paper.YAHOO_ROUNDS:,}; run when named"
    )
    typer.echo("             quick: fit on {:,}; T={:,}".format(*paper.QUICK_YAHOO))
    typer.echo("protocols:  released (the published figure's), written (the paper's text)")
    every = dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies)
    typer.echo(f"policies:   in reproduce --policies: {', '.join(every)}")
    typer.echo(f"            in simulate --policy: {', '.join(policy_names())}")


def _runs(environments: int, trials: int) -> str:
    return f"{environments} environment{'s' * (environments > 1)} x {trials} trial{'s' * (trials > 1)}"


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, see `hybandits list`; all of them if left out.")
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="Parameters of the released code, of the paper's text, or both.")
    ] = ProtocolName.both,
    scale: Annotated[
        ScaleName, typer.Option(help="quick: about two minutes; paper: full length, the best part of an hour.")
    ] = ScaleName.quick,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    out: Out = Path("out"),
    seed: Annotated[int | None, typer.Option(min=0, help="Of the environments; the released ones if left out.")] = None,
    policies: Annotated[str | None, typer.Option(help="Only these, separated by commas, e.g. HyLinUCB,LinUCB.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="yahoo: folder with the R6A files, or a converted log; a log is made up if left out."),
    ] = None,
    train: Annotated[
        int | None, typer.Option(min=1, help="yahoo: rounds the reward model is fitted to.  [1000000; quick: 100000]")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="yahoo: rounds played.  [10000000; quick: 200000]")] = None,
    trials: Annotated[int, typer.Option(min=1, help="yahoo: runs that differ by their noise.")] = 1,
    arms: Annotated[
        ArmsName,
        typer.Option(help="yahoo: articles, or positions in the line's list of 20, as in the released code."),
    ] = ArmsName.articles,
    defect: Annotated[
        bool,
        typer.Option(
            "--released-defect",
            help="yahoo: beside every algorithm, the same fed as by the released code: with another arm's reward.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="yahoo: stop at the first line that cannot be used.")
    ] = False,
) -> None:
    """Rerun the paper's evaluation and say, claim by claim, what holds.

    Every finished unit is saved at once. A run that was interrupted or killed goes on where it was when the same
    command is given again. The experiment on Yahoo's click log is run when it is named: hybandits reproduce yahoo.
    """
    interrupts.promise(interrupts.KEPT)
    with plain_errors():
        from hybandits import paper

        wanted = list(dict.fromkeys(names or (("yahoo",) if data is not None else paper.SETTINGS)))
        for name in wanted:
            _must_be("experiment", name, (*paper.SETTINGS, "yahoo"))
        if "yahoo" not in wanted:
            given = {"--train": train, "--rounds": rounds, "--trials": trials > 1, "--strict": strict}
            given |= {"--arms": arms is not ArmsName.articles, "--released-defect": defect}
            if idle := [name for name, value in given.items() if value]:
                raise ValueError(f"{', '.join(idle)}: only for the yahoo experiment, name it too")
        protocols: Any = ("released", "written") if protocol == "both" else (protocol.value,)
        start = paper.RELEASED_SEED if seed is None else seed
        synthetic = [name for name in wanted if name != "yahoo"]
        records = paper.experiments(synthetic, protocols, scale=scale.value, seed=start)
        kept = None if policies is None else _policies(policies)
        if kept is not None:
            records = [record.only(kept) for record in records if any(e.name in kept for e in record.policies)]
            if not records and "yahoo" not in wanted:
                raise ValueError(f"--policies {policies} leaves nothing to run in {', '.join(wanted)}: name others")
        made = make_engine(engine, workers, address)
        log = None
        if "yahoo" in wanted:
            quick = scale is ScaleName.quick
            lengths = paper.QUICK_YAHOO if quick else (paper.YAHOO_TRAIN, paper.YAHOO_ROUNDS)
            found, log = _yahoo_records(
                out, data, train or lengths[0], rounds or lengths[1], protocols, arms.value, trials, defect, kept, made,
                0 if seed is None else seed, strict,
            )  # fmt: skip
            records += found
        _run(records, out, made, {"scale": scale.value, "seed": start}, log)
        _report(out)


def _policies(text: str) -> list[str]:
    from hybandits import paper

    other = {"HyRanWithoutCrossBlocks": "HyRan (released)"}
    kept = [other.get(name.strip(), name.strip()) for name in text.split(",") if name.strip()]
    every = list(dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies))
    for name in kept:
        _must_be("policy", name, every)
    return kept


def _yahoo_records(
    out: Path, data: Path | None, train: int, rounds: int, protocols: Any, arms: str, trials: int, defect: bool,
    kept: list[str] | None, engine: Any, seed: int, strict: bool,
) -> tuple[list[Any], Path]:  # fmt: skip
    """The Yahoo experiment's records, and where its log lies."""
    from hybandits import paper
    from hybandits.cli.progress import StagedBar
    from hybandits.experiments import runner
    from hybandits.paper import yahoo

    chosen = [name for name in paper.YAHOO_POLICIES if kept is None or name in kept]
    if not chosen:
        raise ValueError(f"--policies leaves nothing of {', '.join(paper.YAHOO_POLICIES)} to run: name others")
    new = not out.exists()
    runner.prepare(out)
    with (
        _unless_empty(out) if new else contextlib.nullcontext(),
        interrupts.tidying(interrupts.KEPT),
        StagedBar() as progress,
    ):
        prepared = yahoo.prepare(out, data, train=train, rounds=rounds, seed=seed, strict=strict, progress=progress)
        planned = yahoo.plan(prepared.log, train=train, rounds=rounds)
        records = yahoo.records(
            prepared, planned, protocols, arms=arms, trials=trials, seed=seed, defect=defect, policies=chosen,
            engine=engine, progress=progress,
        )  # fmt: skip
    cli_logs.tell(prepared.problems)
    return records, prepared.log.path


@contextlib.contextmanager
def _unless_empty(folder: Path) -> Iterator[None]:
    """If what is done within it fails, the folder goes too, unless something is in it."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder written by reproduce or simulate.", metavar="DIR")],
) -> None:
    """Make the figures and the page again from results, and print the tables; runs nothing."""
    with plain_errors():
        _report(folder)


@app.command()
def simulate(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file with settings below, --engine and what follows it excepted.", metavar="FILE.toml"
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy, repeatable; with settings after a colon: HyThompson:scale=0.5,noise=0.1.  "
            "[HyLinUCB, LinUCB, DisLinUCB]"
        ),
    ] = None,
    d1: Annotated[int | None, typer.Option(help="Shared features.  [10]")] = None,
    d2: Annotated[int | None, typer.Option(help="Features of each arm's own.  [5]")] = None,
    arms: Annotated[str | None, typer.Option(help="Number of arms K, or several: 10,100.  [20]")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds T.  [10000]")] = None,
    environments: Annotated[int | None, typer.Option(help="Environments.  [5]")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials per environment.  [1]")] = None,
    noise: Annotated[float | None, typer.Option(help="Standard deviation of the reward's noise.  [0.1]")] = None,
    law: Annotated[
        str | None, typer.Option(help="How features are drawn: ball, cube-direction, inscribed-cube.  [ball]")
    ] = None,
    theta_bound: Annotated[float | None, typer.Option(help="Norm bound of theta.  [1]")] = None,
    beta_bound: Annotated[float | None, typer.Option(help="Norm bound of every beta_i.  [1]")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the environments.  [0]")] = None,
    name: Annotated[str | None, typer.Option(help="What the experiment is called.  [simulation]")] = None,
    engine: EngineOption = EngineName.local,
    workers: Workers = None,
    address: Address = None,
    out: Out = Path("simulation"),
) -> None:
    """An experiment of your own: policies in a synthetic world of your size.

    Settings come from flags or a TOML file with the same names (theta_bound for --theta-bound); flags override the
    file, and --policy replaces its whole list, which is called policies there and holds names or tables: [[policies]]
    policy = "HyThompson" scale = 0.5. Policies are told the world's noise unless their settings name another; all else
    is their own default.
    """
    interrupts.promise(interrupts.KEPT)
    with plain_errors():
        from hybandits.experiments import config as own

        given = {
            "policies": policy, "d1": d1, "d2": d2, "rounds": rounds, "environments": environments, "trials": trials,
            "noise": noise, "law": law, "theta_bound": theta_bound, "beta_bound": beta_bound, "seed": seed,
            "name": name, "arms": None if arms is None else _whole_numbers("--arms", arms),
        }  # fmt: skip
        settings = {} if config is None else own.read_file(config)
        record = own.experiment(settings | {key: value for key, value in given.items() if value is not None})
        _run([record], out, make_engine(engine, workers, address), {})
        _report(out)


@app.command()
def warmup() -> None:
    """Compile everything now, so that nothing waits later."""
    from hybandits import paper
    from hybandits.cli.warm_up import warm_up
    from hybandits.experiments import runner

    warm_up()
    runner.compile_loops(paper.experiments(list(paper.SETTINGS), ("released", "written")))
    typer.echo("compiled; the machine code is on disk")


# ------------------------------------------------------------------ parts of commands


def _must_be(what: str, name: str, known: Any) -> None:
    from hybandits.foundation.checks import nearest

    if name not in known:
        raise ValueError(f"there is no {what} {name!r}{nearest(name, known)}: there are {', '.join(known)}")


def _whole_numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be whole numbers separated by commas, got {text!r}") from None


def _run(records: list[Any], out: Path, engine: Any, about: dict[str, Any], data: Path | None = None) -> None:
    from hybandits.cli.progress import Bars
    from hybandits.experiments import runner

    with Bars() as bars:
        runner.run(records, out, engine=engine, watcher=bars, about=about, data=data)


def _report(folder: Path) -> None:
    from rich.console import Console

    from hybandits.engines import Local, cores
    from hybandits.experiments.results import read_results
    from hybandits.experiments.runner import prepare
    from hybandits.paper.claims import judge
    from hybandits.report import write_report
    from hybandits.report.terminal import print_summary

    results = read_results(folder)
    prepare(folder)
    verdicts = judge(results)
    print_summary(results, verdicts)
    with Console(stderr=True).status("drawing figures"):
        page = write_report(folder, results=results, engine=Local(min(cores(), len(results.protocols))))
    typer.echo(f"wrote {page}")


for _name, _command in cli_logs.COMMANDS.items():
    app.command(_name)(_command)


def main() -> None:
    """Entry point; Ctrl-C ends with one line and exit code 130."""
    interrupts.on_interrupt(interrupts.interrupt, instead_of=signal.default_int_handler)
    atexit.register(_leave)
    try:
        app()
    finally:
        # Nothing is left to interrupt but Python's own end.
        interrupts.on_interrupt(signal.SIG_IGN, instead_of=interrupts.interrupt)
        if interrupts.interrupted:  # whatever became of the exception
            interrupts.say()
            sys.exit(130)


def _leave() -> None:
    """The last exit function, as it is registered first. Beyond it libraries that were interrupted (Ray) may crash."""
    if interrupts.interrupted:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(130)


# Until `main`: who imports this may run on.
interrupts.on_interrupt(signal.default_int_handler, instead_of=interrupts.interrupt)

if __name__ == "__main__":
    main()
