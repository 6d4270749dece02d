"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ModuleNotFoundError as missing:  # the core install has no command line
    sys.exit(f"hybandits: the command line needs {missing.name}: pip install 'hybandits[lab]'")

from hybandits import __version__

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


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report; made if missing.")]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Where to run: processes of this machine, or a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Units run at a time; one per core if left out.")]
Address = Annotated[str | None, typer.Option(help="Address of a Ray cluster, e.g. auto; one is started if left out.")]


@contextmanager
def _plain_errors() -> Iterator[None]:
    """What a user can mend becomes one line and exit code 2."""
    from hybandits.engines import EngineError
    from hybandits.experiments import ResultsError

    try:
        yield
    except (ResultsError, EngineError, ValueError, TypeError) as problem:
        typer.echo(f"hybandits: {problem}", err=True)
    except OSError as problem:
        where = f" {problem.filename}" if problem.filename else ""
        typer.echo(f"hybandits: cannot read or write{where} ({problem.strerror or problem})", err=True)
    except MemoryError as problem:
        typer.echo(f"hybandits: not enough memory ({problem}): make the problem smaller", err=True)
    else:
        return
    raise typer.Exit(2)


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
    from hybandits import paper, runner

    typer.echo("experiments (hybandits reproduce NAME):")
    for name, s in paper.SETTINGS.items():
        arms = ", ".join(map(str, s.arms))
        typer.echo(f"  {name:<10} {s.about}")
        typer.echo(f"             d1={s.d1}, d2={s.d2}, K={arms}; T={s.horizon:,}; {_runs(s.environments, s.trials)}")
        short = f"T={s.quick_horizon:,}; {_runs(s.environments, s.quick_trials)}"
        typer.echo(f"             quick: {short}")
    typer.echo("protocols:  released (the published figure's), written (the paper's text)")
    every = dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies)
    typer.echo(f"policies:   in reproduce --policies: {', '.join(every)}")
    typer.echo(f"            in simulate --policy: {', '.join(runner.policy_names())}")


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
) -> None:
    """Rerun the paper's synthetic evaluation and say, claim by claim, what holds.

    Every finished unit is saved at once. A run that was interrupted or killed goes on where it was when the same
    command is given again.
    """
    with _plain_errors():
        from hybandits import paper

        wanted = list(dict.fromkeys(names or paper.SETTINGS))
        for name in wanted:
            _must_be("experiment", name, paper.SETTINGS)
        protocols: Any = ("released", "written") if protocol == "both" else (protocol.value,)
        start = paper.RELEASED_SEED if seed is None else seed
        records = paper.experiments(wanted, protocols, scale=scale.value, seed=start)
        if policies is not None:
            other = {"HyRanWithoutCrossBlocks": "HyRan (released)"}
            kept = [other.get(name.strip(), name.strip()) for name in policies.split(",") if name.strip()]
            every = list(dict.fromkeys(name for setting in paper.SETTINGS.values() for name in setting.policies))
            for name in kept:
                _must_be("policy", name, every)
            records = [record.only(kept) for record in records if any(e.name in kept for e in record.policies)]
            if not records:
                raise ValueError(f"--policies {policies} leaves nothing to run in {', '.join(wanted)}: name others")
        _run(records, out, _engine(engine, workers, address), {"scale": scale.value, "seed": start})
        _report(out)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder written by reproduce or simulate.", metavar="DIR")],
) -> None:
    """Make the figures and the page again from results, and print the tables; runs nothing."""
    with _plain_errors():
        _report(folder)


@app.command()
def simulate(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file with settings below, --engine and what follows it excepted.", metavar="[FILE.toml]"
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
    with _plain_errors():
        from hybandits import own

        given = {
            "policies": policy, "d1": d1, "d2": d2, "rounds": rounds, "environments": environments, "trials": trials,
            "noise": noise, "law": law, "theta_bound": theta_bound, "beta_bound": beta_bound, "seed": seed,
            "name": name, "arms": None if arms is None else _whole_numbers("--arms", arms),
        }  # fmt: skip
        settings = {} if config is None else own.read_file(config)
        record = own.experiment(settings | {key: value for key, value in given.items() if value is not None})
        _run([record], out, _engine(engine, workers, address), {})
        _report(out)


@app.command()
def warmup() -> None:
    """Compile everything now, so that nothing waits later."""
    from hybandits import paper, runner
    from hybandits.warming import warm_up

    warm_up()
    runner.compile_loops(paper.experiments(list(paper.SETTINGS), ("released", "written")))
    typer.echo("compiled; the machine code is on disk")


# ------------------------------------------------------------------ parts of commands


def _must_be(what: str, name: str, known: Any) -> None:
    from hybandits.own import nearest

    if name not in known:
        raise ValueError(f"there is no {what} {name!r}{nearest(name, known)}: there are {', '.join(known)}")


def _whole_numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be whole numbers separated by commas, got {text!r}") from None


def _engine(name: EngineName, workers: int | None, address: str | None) -> Any:
    from hybandits import engines

    if name is EngineName.ray:
        return engines.Ray(workers, address)
    if address is not None:
        raise ValueError("--address is of a Ray cluster: say --engine ray too")
    return engines.Local(workers)


def _run(records: list[Any], out: Path, engine: Any, about: dict[str, Any]) -> None:
    from hybandits import runner
    from hybandits.watching import Bars

    with Bars() as bars:
        runner.run(records, out, engine=engine, watcher=bars, about=about)


def _report(folder: Path) -> None:
    from rich.console import Console

    from hybandits import report as reporting
    from hybandits.claims import judge
    from hybandits.engines import Local, cores
    from hybandits.experiments import read_results
    from hybandits.runner import prepare

    results = read_results(folder)
    prepare(folder)
    verdicts = judge(results)
    reporting.print_summary(results, verdicts)
    with Console(stderr=True).status("drawing figures"):
        page = reporting.write_report(folder, results=results, engine=Local(min(cores(), len(results.protocols))))
    typer.echo(f"wrote {page}")


def main() -> None:
    """Entry point; Ctrl-C ends with one line and exit code 130."""
    try:
        app()
    except SystemExit as end:
        if end.code == 130:
            typer.echo(
                "hybandits: interrupted; what was finished is kept, the same command goes on from there", err=True
            )
        raise


if __name__ == "__main__":
    main()
