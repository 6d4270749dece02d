"""The commands of the decision service: serve, and service verify, export, promote, snapshot and archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybandits.cli.shared import bar, plain_errors
from hybandits.foundation.interrupts import NOTHING, promise, tidying

if TYPE_CHECKING:
    from hybandits.service.admin.archive import Archived
    from hybandits.service.log.store import Store

service = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look after the log of a decision service.")

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="The log: a SQLite file, or postgresql://USER@HOST/DATABASE.  [bandit.db beside bandit.toml]",
    ),
]
BanditFile = Annotated[Path, typer.Argument(help="The bandit's file.", metavar="bandit.toml")]


def serve(
    bandit: BanditFile,
    store: StoreOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at. Addresses other than loopback need --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token that requests must carry; a second line is the token for arms and promote."
        ),
    ] = None,
) -> None:
    """Serve decisions: ask POST /v1/decisions, give POST /v1/rewards, and look at the page.

    The log is a SQLite file beside bandit.toml, or a PostgreSQL database that several servers share. A decision or a
    reward is answered when it is on disk, so the service can be stopped or killed at any time. Ctrl-C ends it after
    all accepted requests have been answered.
    """
    with _needs_extra(), plain_errors():
        from hybandits.foundation.files import read_toml
        from hybandits.service.log.store import StoreError
        from hybandits.service.serving import Serving
        from hybandits.service.serving import serve as run
        from hybandits.service.settings import read_bandit

        read_bandit(read_toml(bandit))  # notice a wrong setting here, not in a worker
        serving = Serving(
            bandit=str(bandit),
            store=store or str(_beside(bandit)),
            host=host,
            port=port,
            workers=workers,
            tokens=None if token_file is None else str(token_file),
        )
        try:
            run(serving, lambda url: typer.echo(f"hybandits: serving {bandit} at {url} (Ctrl-C ends it)", err=True))
        except StoreError as problem:
            raise ValueError(str(problem)) from None


@service.command()
def verify(bandit: BanditFile, store: StoreOption = None) -> None:
    """Recompute every decision of the log, and say which come out differently.

    Decisions that were made on a machine of the same kind with the same versions must be equal to the bit; others may
    differ by 1e-9. The exit code is 1 if a decision differs.
    """
    with _opened(bandit, store) as log:
        from hybandits.service.admin.verify import verify

        rows, _ = log.last()
        done = 0
        with bar("verifying", rows, unit="rows") as advance:

            def progress(row: int) -> None:
                nonlocal done
                advance(max(0, row - done))  # it begins anew if the log is archived
                done = max(done, row)

            result = verify(log, progress)
        typer.echo(
            f"{result.decisions:,} decisions: {result.decisions - result.different - result.near_ties:,} same, "
            f"{result.near_ties:,} near ties, {result.different:,} different "
            f"({result.exact:,} compared to the bit)"
        )
        if result.archived_model:
            typer.echo(
                f"  {result.archived_model:,} more were made before the row at which the log was archived, and cannot "
                "be recomputed: the rewards that their models had learned are in the archive."
            )
        if result.base_elsewhere:
            typer.echo(
                "  The log was archived on a machine of another kind or with other versions, so that decisions were "
                "compared up to 1e-9."
            )
        for example in result.examples:
            typer.echo(f"  {example}")
        if result.different:
            raise typer.Exit(1)


@service.command()
def snapshot(bandit: BanditFile, store: StoreOption = None) -> None:
    """Fold the log and keep the model, so that the next start is fast."""
    with _opened(bandit, store) as log:
        from hybandits.service.model_state import ModelState

        fold = ModelState.restored(log)
        assert fold is not None
        log.keep_snapshot(fold.snapshot())
        typer.echo(f"kept the model at row {fold.row:,}")


@service.command()
def promote(
    bandit: BanditFile,
    policy: Annotated[str, typer.Argument(help="The name of the challenger.", metavar="NAME")],
    store: StoreOption = None,
) -> None:
    """Let a challenger decide from now on; running servers follow at once."""
    with _opened(bandit, store) as log:
        from hybandits.service.commands import Promote
        from hybandits.service.problems import Refused
        from hybandits.service.writer import Writer

        (outcome,) = Writer(log).serve([Promote(policy)])
        if isinstance(outcome, Refused):
            raise ValueError(outcome.detail)
        typer.echo(f"{policy} decides from now on")


@service.command()
def export(
    bandit: BanditFile,
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist yet.", metavar="DIR")],
    store: StoreOption = None,
) -> None:
    """Write decisions and rewards as a log for describe, fit, evaluate and other tools (Parquet)."""
    with _opened(bandit, store) as log:
        from hybandits.service.admin.export import export

        with tidying(), bar("exporting", log.last()[0], unit="rows") as advance:
            written, problems = export(log, out, progress=advance)
        typer.echo(f"wrote {written.rounds:,} decisions to {out}")
        for why, count in problems.kinds.most_common():
            typer.echo(f"  left out: {count:,} {why}")


@service.command()
def archive(
    bandit: BanditFile,
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist yet.", metavar="DIR")],
    older_than: Annotated[
        str, typer.Option(help="Archive decisions that were made longer ago than this: 12h, 30d.", metavar="TIME")
    ] = "30d",
    store: StoreOption = None,
) -> None:
    """Move old decisions out of the log into Parquet, with a snapshot of the model in their place.

    The folder is a log for describe, fit and evaluate, and rows.parquet in it has all rows that were removed, as they
    were. Servers may be running. Decisions that are still open stay in the log. A reward that comes for an archived
    decision is answered with 404, and an event id that was archived can be used again.
    """
    with _opened(bandit, store) as log:
        import time

        from hybandits.service.admin.archive import archive
        from hybandits.service.settings import seconds

        before = round((time.time() - seconds("--older-than", older_than)) * 1e6)
        in_doubt = (
            f"if {out} is there, look for an event of its rows.parquet with GET /v1/decisions/ID. Answered with 404, "
            "the rows were moved: keep the folder. Otherwise remove it and archive again"
        )
        with tidying(in_doubt), ExitStack() as shown:
            advance = shown.enter_context(bar("archiving", log.last()[0], unit="rows"))

            def moved(done: Archived) -> None:
                promise(f"keep {out}, the rows are there; the log's files may have their text until the next archive")
                shown.close()  # what is printed while a bar is drawn goes to stderr
                _say_moved(done, out)

            try:
                warning = archive(log, out, before=before, progress=advance, moved=moved).warning
            except BaseException:
                if not out.exists():
                    promise(NOTHING)
                raise
        if warning is not None:
            typer.echo(f"hybandits: {warning}", err=True)


def _say_moved(done: Archived, out: Path) -> None:
    typer.echo(
        f"moved {done.decisions:,} decisions to {out}: {done.rewarded:,} with a reward, "
        f"{done.decisions - done.rewarded:,} without; {done.rounds:,} are rounds of the log there"
    )
    typer.echo(f"the model at row {done.row:,} stands for them; decisions made from there on can be verified")
    typer.echo(f"SHA-256 of the model that stands for them: {done.digest}")


@contextmanager
def _opened(bandit: Path, store: str | None) -> Iterator[Store]:
    with _needs_extra(), plain_errors():
        from hybandits.service.log.store import StoreError, open_store

        try:
            log = open_store(store or str(_beside(bandit)), create=False)
            try:
                yield log
            finally:
                log.close()
        except StoreError as problem:
            raise ValueError(str(problem)) from None


def _beside(bandit: Path) -> Path:
    return bandit.with_suffix(".db")


@contextmanager
def _needs_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        typer.echo(f"hybandits: the service needs {missing.name}: run pip install 'hybandits[service]'", err=True)
        raise typer.Exit(2) from None
