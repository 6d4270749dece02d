"""The decision service under load: decisions and rewards beside an echo, batches, another stack, restarts, memory.

Load comes from wrk (Debian's package of that name), which runs on the other core. All rates are of one run, and what is
judged are ratios.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.report import JUDGED, Measurement, Section, Sense, number
from benchmarks.workloads import Plan
from soak.servers import Postgres

ARMS = 25
FEATURES = 5
"""Of users and of arms, beside the constant: 6 x 6 in all."""

CONNECTIONS = 32

BANDIT = f"""
name = "bench"
rewards = "explicit"
seed = 1
[user]
numeric = {json.dumps([f"u{i}" for i in range(FEATURES)])}
[arm]
numeric = {json.dumps([f"a{i}" for i in range(FEATURES)])}
"""

LUA = """
local names = {{}}
for i = 1, {arms} do names[i] = '"arm' .. i .. '"' end
local candidates = table.concat(names, ",")
local count = 0
local stem
local function item()
  count = count + 1
  local user = string.format('"u0":%.6f,"u1":%.6f,"u2":%.6f,"u3":%.6f,"u4":%.6f', math.random(), math.random(),
    math.random(), math.random(), math.random())
  return '{{"event_id":"' .. stem .. count .. '","user":{{' .. user .. '}},"candidates":[' .. candidates .. ']}}'
end
function init(arguments)
  stem = arguments[1] .. "-"
  math.randomseed(tonumber(arguments[2]))
end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  local body
  if {batch} == 1 then
    body = item()
  else
    local items = {{}}
    for i = 1, {batch} do items[i] = item() end
    body = "[" .. table.concat(items, ",") .. "]"
  end
  return wrk.format(nil, wrk.path, nil, body)
end
function delay() return {pause} end
function done(summary, latency, requests)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("MEASURED %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(99), bad))
end
"""

REWARDS = """
local count, stem = 100, nil  -- wrk makes one request of every script that it does not send, here the first batch
function init(arguments) stem = arguments[1] .. "-" end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  count = count + 1
  local reward = count % 10 == 0 and 1 or 0
  return wrk.format(nil, wrk.path, nil, '{"event_id":"' .. stem .. count .. '","reward":' .. reward .. '}')
end
function done(summary, latency, requests)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format("MEASURED %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(99), bad))
end
"""

ECHO = """
import sys
import uvicorn
from starlette.responses import Response
from starlette.routing import Route
from hybandits.service.serving import Serving, make_application, server_settings

async def echo(request):
    return Response(await request.body(), media_type="application/json")

serving = Serving(bandits=["bandit.toml"], store=sys.argv[1], port=int(sys.argv[2]))
app = make_application(serving)
app.router.routes.insert(0, Route("/echo", echo, methods=["POST"]))
uvicorn.Server(uvicorn.Config(app, **server_settings(serving))).run()
"""
"""The service with a route that answers what it was sent, as Starlette's users write one."""

OTHER = """
import numpy as np
from fastapi import FastAPI
from mabwiser.mab import MAB, LearningPolicy
from pydantic import BaseModel

arms = [f"arm{i}" for i in range(1, 26)]
mab = MAB(arms, LearningPolicy.LinUCB(alpha=1.0))
rng = np.random.default_rng(0)
mab.fit([arms[i % 25] for i in range(250)], rng.random(250).tolist(), rng.random((250, 5)))
app = FastAPI()

class Request(BaseModel):
    event_id: str
    user: dict[str, float]
    candidates: list[str]

@app.post("/decide")
def decide(request: Request):
    return {"event_id": request.event_id, "arm": mab.predict([list(request.user.values())])}
"""

CEILING = """
import asyncio, sys, uvloop
ANSWER = b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\ncontent-type: application/json\\r\\n\\r\\n{}"

class Fixed(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data): self.transport.write(ANSWER)

async def main():
    server = await asyncio.get_running_loop().create_server(Fixed, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

uvloop.run(main())
"""


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server process, and how much processor time it has used."""

    def __init__(self, command: list[str], port: int, folder: Path) -> None:
        roots = os.pathsep.join([str(folder), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": roots, "HYBANDITS_QUIET": "1"}
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL)
        for _ in range(1200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if self.process.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} ended with {self.process.returncode}")
            time.sleep(0.1)

    def processor_seconds(self) -> float:
        """Of the process so far."""
        import psutil

        return float(sum(psutil.Process(self.process.pid).cpu_times()[:2]))

    def resident(self) -> int:
        """Bytes of memory."""
        import psutil

        return int(psutil.Process(self.process.pid).memory_info().rss)

    def stop(self) -> None:
        """End it in an orderly way."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@contextlib.contextmanager
def served(folder: Path, store: str | None = None, *, echo: bool = False) -> Iterator[Server]:
    """The service with its arms."""
    import httpx

    (folder / "bandit.toml").write_text(BANDIT)
    (folder / "bench_app.py").write_text(ECHO)
    port = free_port()
    address = store or str(folder / "bandit.db")
    if echo:
        command = [sys.executable, "bench_app.py", address, str(port)]
    else:
        serve = [sys.executable, "-m", "hybandits", "serve", "bandit.toml"]
        command = [*serve, "--port", str(port), "--store", address]
    server = Server(command, port, folder)
    try:
        random = np.random.default_rng(0)
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for i in range(1, ARMS + 1):
                features = {f"a{j}": round(float(random.random()), 6) for j in range(FEATURES)}
                client.put(f"/v1/arms/arm{i}", json={"features": features}).raise_for_status()
            for _ in range(200):  # so that the policy has learned something, and everything is compiled
                user = {f"u{j}": float(random.random()) for j in range(FEATURES)}
                decided = client.post("/v1/decisions", json={"user": user}).json()
                client.post("/v1/rewards", json={"event_id": decided["event_id"], "reward": int(random.random() < 0.2)})
        yield server
    finally:
        server.stop()


class Load:
    """Result of wrk: requests per second, seconds at the 99th percentile, and failed requests."""

    def __init__(self, text: str) -> None:
        match = re.search(r"MEASURED (\d+) (\d+) (\d+) (\d+)", text)
        if match is None:
            raise RuntimeError(f"wrk said {text[-300:]!r}")
        requests, microseconds, slowest, self.bad = map(int, match.groups())
        self.requests, self.rate, self.p99 = requests, 1e6 * requests / microseconds, slowest / 1e6


def load(url: str, script: str, folder: Path, seconds: float, stem: str, connections: int = CONNECTIONS) -> Load:
    """Let wrk ask for so many seconds."""
    path = folder / "load.lua"
    path.write_text(script)
    done = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(path), url, "--", stem, "7"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Load(done.stdout)


def decisions(batch: int = 1, pause: int = 0) -> str:
    """The script that asks for decisions, in batches of so many, each connection pausing so many milliseconds."""
    return LUA.format(arms=ARMS, batch=batch, pause=pause)


def run_load(plan: Plan) -> Section:
    """Decisions and rewards per second beside an echo of the same server, batches, another stack, and waiting times."""
    section = Section("service-load", "the decision service under load of wrk", ("what", *JUDGED))
    if shutil.which("wrk") is None:
        section.add("wrk is not installed: apt-get install wrk", "", "")
        return section
    seconds = 2
    rates: dict[str, list[Load]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder, echo=True) as server:
            for turn in range(2 if plan.quick else 15):
                for what, path, script, stem in (
                    ("echo", "/echo", decisions(), f"x{turn}"),
                    ("decisions", "/v1/decisions", decisions(), f"d{turn}"),
                    ("batches", "/v1/decisions/batch", decisions(100), f"b{turn}"),
                    ("rewards", "/v1/rewards", REWARDS, f"b{turn}"),  # of these, there are enough of them
                ):
                    plan.say(f"service: {what}")
                    rates.setdefault(what, []).append(load(server.url + path, script, folder, seconds, stem))
            best = max(each.rate for each in rates["decisions"])
            seconds = 2 if plan.quick else 8
            pause = max(1, round(2000 * CONNECTIONS / best))
            calm = {
                what: min(
                    (load(server.url + path, decisions(pause=pause), folder, seconds, f"{what}{i}") for i in range(3)),
                    key=lambda each: each.p99,
                )
                for what, path in (("calm-echo", "/echo"), ("calm", "/v1/decisions"))
            }
        fsync = bare_fsync(folder)
        plan.say("service: FastAPI with mabwiser")
        other = _other_stack(folder, seconds)
        ceiling = _ceiling(folder, seconds)
    middle = {what: float(np.median([each.rate for each in each_load])) for what, each_load in rates.items()}

    def judge(what: str, kind: Sense, target: float, value: float, unit: str = "") -> None:
        section.add(what, measurement=Measurement("service", what, kind, target, value, unit))

    def ratio(what: str, other: str) -> float:
        """The median over the turns, in each of which one comes right after the other: machines change their speed."""
        return float(np.median([a.rate / b.rate for a, b in zip(rates[what], rates[other], strict=True)]))

    judge("decisions / echo", "at least", 0.4, ratio("decisions", "echo"))
    judge("rewards / echo", "at least", 0.5, ratio("rewards", "echo"))
    judge("decisions in batches of 100 / single", "at least", 5.0, 100 * ratio("batches", "decisions"))
    if other is not None:
        judge("decisions / FastAPI with mabwiser", "at least", 3.0, middle["decisions"] / other)
    allowed = max(5 * calm["calm-echo"].p99, 3 * fsync)
    judge("p99 at half load / allowed", "at most", 1.0, calm["calm"].p99 / allowed)
    judge("wrk's ceiling / echo", "at least", 2.0, ceiling / middle["echo"])
    bad = sum(each.bad for loads in rates.values() for each in loads)
    section.add(
        f"per second: echo {number(middle['echo'])}, decisions {number(middle['decisions'])}, rewards "
        f"{number(middle['rewards'])}, in batches {number(100 * middle['batches'])}, FastAPI with mabwiser "
        f"{number(other or 0)}, ceiling {number(ceiling)}; {bad} failed", "", "",
    )  # fmt: skip
    section.add(
        f"p99 in ms: echo {1e3 * calm['calm-echo'].p99:.1f}, decisions {1e3 * calm['calm'].p99:.1f}, bare fsync "
        f"{1e3 * fsync:.1f}; at {number(calm['calm'].rate)} a second", "", "",
    )  # fmt: skip
    section.data.append({"rates": middle, "other": other, "ceiling": ceiling, "fsync_p99": fsync, "failed": bad})
    return section


def bare_fsync(folder: Path, times: int = 300) -> float:
    """Seconds at the 99th percentile of writing a page and waiting for it to be on disk."""
    waited = []
    with (folder / "fsync").open("wb") as file:
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            waited.append(time.perf_counter() - begun)
    return float(np.quantile(waited, 0.99))


def _other_stack(folder: Path, seconds: float) -> float | None:
    """Decisions per second of FastAPI with mabwiser's LinUCB, in memory; None if they are not installed."""
    if any(__import__("importlib.util").util.find_spec(name) is None for name in ("fastapi", "mabwiser")):
        return None
    (folder / "other_stack.py").write_text(OTHER)
    port = free_port()
    command = [
        sys.executable, "-m", "uvicorn", "other_stack:app", "--port", str(port), "--loop", "uvloop", "--http",
        "httptools", "--no-access-log", "--log-level", "warning",
    ]  # fmt: skip
    server = Server(command, port, folder)
    try:
        return load(f"{server.url}/decide", decisions(), folder, seconds, "o").rate
    finally:
        server.stop()


def _ceiling(folder: Path, seconds: float) -> float:
    """Requests per second that wrk can send, to a server that does not parse them."""
    (folder / "fixed.py").write_text(CEILING)
    port = free_port()
    server = Server([sys.executable, "fixed.py", str(port)], port, folder)
    try:
        return load(f"{server.url}/", decisions(), folder, seconds, "c").rate
    finally:
        server.stop()


# ------------------------------------------------------------------ restarts, verifying


def run_restart(plan: Plan) -> Section:
    """A long log: starting from it alone and with a snapshot, and recomputing all decisions."""
    from hybandits.foundation.files import read_toml
    from hybandits.service.commands import Answer, Decide, GiveReward, PutArm, PutArms
    from hybandits.service.log import Value, encode_ids
    from hybandits.service.model_state import ModelState
    from hybandits.service.settings import read_bandit
    from hybandits.service.sqlite import SqliteStore
    from hybandits.service.verify import verify
    from hybandits.service.writer import Writer

    section = Section(
        "service-restart", "starting from a log of a million rewards, and verifying it", ("what", *JUDGED)
    )
    rounds = 20_000 if plan.quick else 1_000_000
    scale = 1_000_000 / rounds
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "bandit.toml"
        path.write_text(BANDIT)
        writer = Writer(SqliteStore(Path(name) / "log.db"), read_bandit(read_toml(path)))
        arms = [f"arm{i}" for i in range(1, ARMS + 1)]
        for arm in arms:
            features: dict[str, Value] = {f"a{j}": float(random.random()) for j in range(FEATURES)}
            writer.serve([PutArms([PutArm(arm=arm, features=features)])])
        for start in range(0, rounds, 1000):
            users = random.random((1000, FEATURES)).tolist()
            asked = [Decide({f"u{j}": u for j, u in enumerate(user)}, encode_ids(arms)) for user in users]
            answers = [answer.body for answer in writer.serve(asked) if isinstance(answer, Answer)]
            clicks = (random.random(1000) < 0.1).tolist()
            writer.serve([GiveReward(a.event_id, float(c)) for a, c in zip(answers, clicks, strict=True)])
            if start % 50_000 == 0:
                plan.say(f"service: {start:,} of {rounds:,} decisions written")
        store = writer.store
        plan.say("service: learning the log")
        begun = time.process_time()
        state = ModelState.based(store)
        state.apply(store.rows(state.row), store)
        alone = time.process_time() - begun
        store.keep_snapshot(state.snapshot())
        begun = time.process_time()
        ModelState.restored(store)
        restored = time.process_time() - begun
        plan.say("service: verifying")
        begun = time.process_time()
        result = verify(store)
        verified = time.process_time() - begun
        store.close()
    words = "" if scale == 1 else f" (from {rounds:,}, times {scale:g})"
    for what, target, value in (
        (f"seconds from the log alone{words}", 60.0, alone * scale),
        ("seconds with a snapshot", 3.0, restored),
        (f"seconds to verify a million decisions{words}", 240.0, verified * scale),
    ):
        section.add(what, measurement=Measurement("service", what, "at most", target, value, " s"))
    section.add(f"{result.decisions:,} decisions verified, {result.different:,} different", "", "")
    section.data.append({"rounds": rounds, "alone": alone, "restored": restored, "verified": verified})
    return section


# ------------------------------------------------------------------ several servers, memory


def run_several(plan: Plan) -> Section:
    """Processor time per decision of two servers on SQLite and two servers on PostgreSQL, and memory over time."""
    section = Section("service-several", "two servers beside one, and memory over time", ("what", *JUDGED))
    if shutil.which("wrk") is None:
        section.add("wrk is not installed: apt-get install wrk", "", "")
        return section
    turns = 2 if plan.quick else 6
    cost: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:

        def start(what: str, store: str | None = None) -> Server:
            folder = Path(name) / what
            folder.mkdir()
            return stack.enter_context(served(folder, store))

        database = Postgres()
        stack.callback(database.end)
        several = {
            "one": [start("one")],
            "two": [start("two"), start("two-too", str(Path(name) / "two" / "bandit.db"))],
            "pg-one": [start("pg-one", database.address("one"))],
            "pg-two": [start("pg-two", database.address("two")), start("pg-too", database.address("two"))],
        }
        for turn in range(turns):
            for what, servers in several.items():
                plan.say(f"service: {what}")
                cost.setdefault(what, []).append(_cost(servers, Path(name), 3, f"t{turn}"))
        (Path(name) / "memory").mkdir()
        plan.say("service: memory")
        sizes = _memory(Path(name) / "memory", 10_000 if plan.quick else 100_000)
    for what, many, one in (("two servers on SQLite", "two", "one"), ("two servers on PostgreSQL", "pg-two", "pg-one")):
        words = f"processor time per decision, {what} / one"
        ratio = float(np.median(np.array(cost[many]) / np.array(cost[one])))
        section.add(words, measurement=Measurement("service", words, "at most", 1.15, ratio))
    words = "memory after 100,000 decisions / after 1,000"
    section.add(words, measurement=Measurement("service", words, "at most", 1.2, sizes[-1] / sizes[0]))
    section.add(
        "microseconds of processor per decision: "
        + ", ".join(f"{k} {1e6 * np.median(v):.0f}" for k, v in cost.items()),
        "",
        "",
    )
    section.add("MB: " + ", ".join(f"{size / 1e6:.0f}" for size in sizes), "", "")
    section.data.append({"cost": cost, "resident": sizes})
    return section


def _cost(servers: list[Server], folder: Path, seconds: float, stem: str) -> float:
    """Processor seconds per decision, the store's own included if it runs in the servers' processes."""
    before = sum(server.processor_seconds() for server in servers)
    runs = []
    for i, server in enumerate(servers):
        path = folder / f"load{i}.lua"
        path.write_text(decisions())
        connections = f"-c{CONNECTIONS // len(servers)}"
        command = ["wrk", "-t1", connections, f"-d{round(seconds)}s", "-s", str(path), f"{server.url}/v1/decisions"]
        runs.append(subprocess.Popen([*command, "--", f"{stem}{i}", "7"], stdout=subprocess.PIPE, text=True))
    done = sum(Load(run.communicate()[0]).requests for run in runs)
    return (sum(server.processor_seconds() for server in servers) - before) / done


def _memory(folder: Path, last: int) -> list[int]:
    """Bytes of the server after 1,000 decisions and then after every tenth of the last."""
    sizes = []
    with served(folder) as server:
        decided = 0
        for goal in (1_000, *range(last // 10, last + 1, last // 10)):
            while decided < goal:
                decided += load(f"{server.url}/v1/decisions", decisions(), folder, 1, f"m{decided}").requests
            sizes.append(server.resident())
    return sizes
