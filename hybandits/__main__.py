"""The command `hybandits`: its commands by name. `python -m hybandits` is the same."""

import sys
import time
from typing import Annotated

try:
    import typer
except ModuleNotFoundError as missing:  # the core install has no command line
    sys.exit(f"hybandits: the command line needs {missing.name}: run pip install '.[lab]' in a checkout of hybandits")

from hybandits.cli import experiments, logs, service, warm_up
from hybandits.foundation import __version__

app = typer.Typer(
    name="hybandits",
    help="Contextual bandits whose reward has a shared part and a part of each arm's own: x.theta + z.beta_arm.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("list", short_help="List experiments and policies.")(experiments.list_experiments)
app.command("reproduce", short_help="Rerun the paper's evaluation.")(experiments.reproduce)
app.command("report", short_help="Write the report again from saved results.")(experiments.report)
app.command("simulate", short_help="Run an experiment of your own.")(experiments.simulate)
app.command("make-log", short_help="Write a synthetic click log.")(logs.make_log)
app.command("convert", short_help="Convert a log to Parquet.")(logs.convert)
app.command("describe", short_help="Describe a log.")(logs.describe)
app.command("fit", short_help="Fit a policy to a log.")(logs.fit)
app.command("evaluate", short_help="Estimate the rewards of policies from a log.")(logs.evaluate)
app.command("serve", short_help="Serve decisions over HTTP.")(service.serve)
app.add_typer(service.service, name="service", short_help="Maintain the log of a decision service.")


@app.command(short_help="Compile everything now.")
def warmup(
    verbose: Annotated[bool, typer.Option("--verbose", help="Print the seconds that every kernel took.")] = False,
) -> None:
    """Compile everything now and keep the machine code on disk, which takes about a minute the first time."""
    start = time.perf_counter()
    compiled = warm_up.timed_warm_up()
    if verbose:
        for name, seconds in sorted(compiled.items(), key=lambda item: sum(item[1]), reverse=True):
            typer.echo(f"{sum(seconds):6.2f} s  {len(seconds)} times  {name}")
        total = sum(map(sum, compiled.values()))
        typer.echo(f"{total:6.2f} s  {sum(map(len, compiled.values()))} times  {len(compiled)} kernels")
    typer.echo(f"everything is compiled and on disk ({time.perf_counter() - start:.0f} seconds)")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hybandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


if __name__ == "__main__":
    app()
