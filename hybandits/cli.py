"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
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


THOMPSON_SCALE = 0.1


def _fail(message: str) -> typer.Exit:
    typer.echo(f"hybandits: {message}", err=True)
    return typer.Exit(2)


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


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the numbers; made if missing.")] = Path("out"),
    rounds: Annotated[int, typer.Option(min=1, max=80_000, help="Rounds per run; the paper plays 80,000.")] = 10_000,
    environments: Annotated[int, typer.Option(min=1, max=5, help="How many of the paper's five environments.")] = 5,
) -> None:
    """The paper's setting 1, shortened: regret table and figure.

    d1=40, d2=5, 25 arms; the paper's own environments, drawn again from its released seeds.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".hybandits-probe"
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise _fail(f"--out {out} is a file: give a folder") from None
    except OSError as problem:
        raise _fail(f"--out {out} cannot be written ({problem.strerror}): give another folder") from None
    curves = _demonstration(rounds, environments)
    _print_table(curves, rounds, environments)
    from hybandits import figures, paper

    title = f"Setting 1 (d1=40, d2=5, K=25): {environments} environment(s), {rounds:,} rounds"
    written = figures.regret_curves(
        curves, paper.SETTING_1.published, title=title, path=out / "setting-1-demonstration"
    )
    numbers = out / "setting-1-demonstration.json"
    final = {name: runs[:, -1].tolist() for name, runs in curves.items()}
    numbers.write_text(json.dumps({"rounds": rounds, "environments": environments, "regret": final}, indent=1) + "\n")
    typer.echo("wrote " + ", ".join(str(path) for path in [*written, numbers]))


@app.command()
def warmup() -> None:
    """Compile everything now, so that nothing waits later."""
    from hybandits.warming import warm_up

    warm_up()
    typer.echo("compiled; the machine code is on disk")


def _demonstration(rounds: int, environments: int) -> dict[str, Any]:
    """Cumulative regret (environments, rounds) of each policy under the released protocol."""
    import numpy as np
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from hybandits import DisLinUCB, Greedy, HyLinUCB, HyThompson, LinUCB, SelfNormalised, paper
    from hybandits.environments import Synthetic
    from hybandits.simulate import cumulative_regret

    setting = paper.SETTING_1
    shape = {"d1": setting.d1, "d2": setting.d2}
    coefficient = SelfNormalised(
        noise=paper.RELEASED_NOISE, bound=paper.RELEASED_BOUND, feature_bound=1.0, delta=paper.RELEASED_DELTA
    )
    makers = {
        "HyLinUCB": lambda: HyLinUCB(**shape, exploration=coefficient, ridge=paper.RELEASED_RIDGE),
        "LinUCB": lambda: LinUCB(**shape, exploration=coefficient, ridge=paper.RELEASED_RIDGE),
        "DisLinUCB": lambda: DisLinUCB(**shape, exploration=coefficient, ridge=paper.RELEASED_RIDGE),
        "HyThompson": lambda: HyThompson(**shape, noise=paper.RELEASED_NOISE, scale=THOMPSON_SCALE, seed=0),
        "Greedy": lambda: Greedy(**shape, ridge=paper.RELEASED_RIDGE),
    }
    curves: dict[str, Any] = {}
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        task = bars.add_task("", total=len(makers) * environments * rounds)
        for name, make in makers.items():
            runs: list[Any] = []
            for seed in paper.RELEASED_SEEDS[:environments]:
                bars.update(task, description=f"{name:<10} environment {len(runs) + 1}/{environments}")
                world = Synthetic(
                    d1=setting.d1, d2=setting.d2, arms=setting.arms, noise=paper.RELEASED_NOISE, seed=seed
                )
                done = bars.tasks[0].completed

                def advance(t: int, done: float = done) -> None:
                    bars.update(task, completed=done + t)

                runs.append(cumulative_regret(make(), world, rounds, progress=advance))
            curves[name] = np.array(runs)
    return curves


def _print_table(curves: dict[str, Any], rounds: int, environments: int) -> None:
    from hybandits import paper

    typer.echo(f"{'policy':<12}{'mean regret':>12}{'lowest':>10}{'highest':>10}{'published':>11}")
    for name, runs in curves.items():
        last = runs[:, -1]
        # The published figure is a mean over all environments.
        whole = environments == len(paper.RELEASED_SEEDS)
        published = paper.SETTING_1.published.get(name, {}).get(rounds) if whole else None
        shown = f"{published:.0f}" if published is not None else "-"
        typer.echo(f"{name:<12}{last.mean():>12.1f}{last.min():>10.1f}{last.max():>10.1f}{shown:>11}")
    typer.echo("published: read off the paper's figure, within about 10; same environments, five noise draws each")
    typer.echo(
        f"settings: noise {paper.RELEASED_NOISE}, ridge {paper.RELEASED_RIDGE}, bound {paper.RELEASED_BOUND}, ",
        nl=False,
    )
    typer.echo(
        f"delta {paper.RELEASED_DELTA}; HyThompson prior scale {THOMPSON_SCALE}; lowest, highest: over environments"
    )


def main() -> None:
    """Entry point; Ctrl-C ends with one line and exit code 130."""
    try:
        app()
    except SystemExit as end:
        if end.code == 130:
            typer.echo("hybandits: interrupted", err=True)
        raise


if __name__ == "__main__":
    main()
