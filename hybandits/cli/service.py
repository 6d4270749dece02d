"""The commands of the decision service: serve, and service verify, export and rotate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybandits.cli.shared import bar, plain_errors

if TYPE_CHECKING:
    from hybandits.service.log import Store

service = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Maintain the log of a decision service.")

StoreOption = Annotated[
    str | None,
    typer.Option(help="The log: a SQLite file, or postgresql://USER@HOST/DATABASE.  [bandit.db beside bandit.toml]"),
]
BanditFile = Annotated[Path, typer.Argument(help="The bandit's file.", metavar="bandit.toml")]


def serve(
    bandits: Annotated[list[Path], typer.Argument(help="Files of bandits, or folders of them.", metavar="bandit.toml")],
    store: StoreOption = None,
    host: Annotated[str, typer.Option(help="Address to listen at; any but loopback needs a token file.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token for requests; a second line has one for arms and promote.")
    ] = None,
) -> None:
    """Serve decisions: POST /v1/decisions and /v1/rewards, and a dashboard.

    The log is a SQLite file beside bandit.toml, or a PostgreSQL database that several servers share. A decision or a
    reward is answered when it is on disk, so the service can be stopped or killed at any time. Ctrl-C ends it after
    all accepted requests have been answered.

    Several bandits are served at /v1/bandits/NAME/.. and listed on the page. A file that is added to a folder is served
    without a restart. With several, --store is a folder or a database.
    """
    with _needs_extra(), plain_errors():
        from hybandits.service import serving

        tokens = None if token_file is None else str(token_file)
        settings = serving.Serving(list(map(str, bandits)), store, host, port, tokens)
        words = f"hybandits: serving {', '.join(settings.bandits)} at"
        serving.serve(settings, lambda url: typer.echo(f"{words} {url} (Ctrl-C ends it)", err=True))


@service.command()
def verify(
    bandit: BanditFile,
    store: StoreOption = None,
    previous: Annotated[
        str | None, typer.Option(help="The log that this one continues: check that it begins where that one ended.")
    ] = None,
) -> None:
    """Recompute every decision of the log and report those that differ.

    Decisions that were made on a machine of the same kind with the same versions must be equal to the bit; others may
    differ by 1e-9. The exit code is 1 if a decision differs.
    """
    with _opened(bandit, store) as log:
        from hybandits.service.verify import verify

        with bar("verifying", log.last()[0]) as advance:
            result = verify(log, advance)
        same = result.decisions - result.different - result.near_ties - result.erased
        typer.echo(
            f"{result.decisions:,} decisions: {same:,} same, "
            f"{result.near_ties:,} near ties, {result.different:,} different ({result.exact:,} compared to the bit)"
        )
        if result.erased:
            typer.echo(f"  {result.erased:,} cannot be recomputed: their models had learned what was erased since.")
        if result.copied:
            typer.echo(f"  {result.copied:,} more were copied from the log before: verify that one as well.")
        if result.begins_elsewhere:
            typer.echo(
                "  The log begins with a model from a machine of another kind or with other versions: decisions were "
                "compared up to 1e-9."
            )
        for example in result.examples:
            typer.echo(f"  {example}")
        wrong = None
        if previous is not None:
            from hybandits.service.log import open_store
            from hybandits.service.rotate import contradiction

            with closing(open_store(previous, create=False)) as before:
                wrong = contradiction(log, before)
            typer.echo(f"  {wrong}" if wrong else f"  The log begins where {before.name} ended.")
        if result.different or wrong:
            raise typer.Exit(1)


@service.command()
def export(
    bandit: BanditFile,
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist yet.", metavar="DIR")],
    store: StoreOption = None,
) -> None:
    """Write decisions and rewards as a log for describe, fit, evaluate and other tools (Parquet)."""
    with _opened(bandit, store) as log:
        from hybandits.service.export import export

        with bar("exporting", log.last()[0]) as advance:
            written, problems = export(log, out, progress=advance)
        typer.echo(f"wrote {written.rounds:,} decisions to {out}")
        for why, count in problems.reasons.most_common():
            typer.echo(f"  left out: {count:,} {why}")


@service.command()
def rotate(
    bandit: BanditFile,
    new: Annotated[
        str, typer.Argument(help="The new log: a SQLite file, or postgresql://USER@HOST/DATABASE.", metavar="NEW")
    ],
    store: StoreOption = None,
    carry: Annotated[
        str, typer.Option(help="Copy decisions that are younger than this, open or not: 12h, 30d.", metavar="TIME")
    ] = "1d",
) -> None:
    """End the log, and begin a new one with a snapshot of its model and the decisions that are still open.

    Stop the servers first, and start them with --store NEW. The old log stays as it is.
    """
    with _opened(bandit, store) as old:
        import time

        from hybandits.service.log import open_store
        from hybandits.service.rotate import rotate
        from hybandits.service.settings import seconds

        since = round((time.time() - seconds("--carry", carry)) * 1e6)
        with closing(open_store(new)) as log:
            done = rotate(old, log, since=since)
            typer.echo(f"{old.name} has ended, and {log.name} goes on at row {done.row:,}")
        typer.echo(f"copied {done.copied:,} decisions that are open or recent")
        typer.echo(f"SHA-256 of the model with which it begins: {done.digest}")


@contextmanager
def _opened(bandit: Path, store: str | None) -> Iterator[Store]:
    with _needs_extra(), plain_errors():
        from hybandits.service.log import open_store

        with closing(open_store(store or str(bandit.with_suffix(".db")), create=False)) as log:
            yield log


@contextmanager
def _needs_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        typer.echo(f"hybandits: the service needs {missing.name}: run pip install '.[service]' in a checkout", err=True)
        raise typer.Exit(2) from None
