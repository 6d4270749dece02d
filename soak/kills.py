"""Servers of one log are killed at random moments under load: `python -m soak.kills`.

Two servers share a log. Clients decide, rank, give and correct rewards, change arms and have users erased, one by one
and in batches, and remember every answer; a request without an answer is sent again, to either server. Now and then one
server is killed with kill -9 and started again; with PostgreSQL, every fifth time PostgreSQL is killed too. Every tenth
time a server is asked to end, which keeps a snapshot. In the end every answer must be in the log, exactly once, nothing
of users who were erased, and every decision that can be recomputed must come out the same. Rewards are learned after a
window or at once.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from hybandits.service.log import Arm, Corrected, Decision, Retired, Reward, Row, Store, open_store
from hybandits.service.model_state import ModelState
from hybandits.service.verify import verify
from soak.preloaded import BANDIT, CLICKS
from soak.servers import SECONDS, Postgres, Service

ENDED = (0, -signal.SIGTERM)
"""Ways in which a server ends on request."""

CLIENTS = 3
PAUSE = 0.01
"""Seconds between two requests of a client, on average."""
BATCH = 20


class Outcome(NamedTuple):
    """Results of a run."""

    kills: int
    decisions: int
    rewards: int
    changes: int
    """Acknowledged decisions, rewards and changes of arms."""
    rows: int
    problems: list[str]


class Client(threading.Thread):
    """A client that records the answers it got."""

    def __init__(self, number: int, urls: list[str], seed: int) -> None:
        super().__init__(daemon=True)
        self.number, self.urls = number, urls
        self.random = random.Random(f"{seed} {number}")
        self.http = httpx.Client(timeout=10.0)
        self.stopping = threading.Event()
        self.asked = 0
        self.decisions: dict[str, dict[str, Any]] = {}
        self.waiting: list[tuple[str, int]] = []
        """Events and places whose reward is still to be given."""
        self.rewards: dict[tuple[str, int], tuple[float, bool]] = {}
        """By event and place."""
        self.corrections: dict[tuple[str, int], float | None] = {}
        self.erased: set[str] = set()
        """Keys of users, of whom nothing may be left."""
        self.arms: dict[str, list[tuple[str, float | None]]] = {}
        """The history of every arm of this client: prices, and None where it was retired."""
        self.problems: list[str] = []

    def run(self) -> None:
        try:
            self._put("always")
            while not self.stopping.wait(self.random.uniform(0, 2 * PAUSE)):
                self._step()
            self._ask_again()
        except Exception as problem:  # whatever it is, the run has failed, and the others go on
            self.problems.append(f"client {self.number}: {problem!r}")
        finally:
            self.http.close()

    def _step(self) -> None:
        act = self.random.random()
        if act < 0.35:
            self._decide(1)
        elif act < 0.45:
            self._decide(BATCH)
        elif act < 0.8:
            self._reward(1)
        elif act < 0.86:
            self._reward(BATCH)
        elif act < 0.9:
            self._correct()
        elif act < 0.91:
            self._erase()
        elif act < 0.97:
            self._put(self.random.choice(("x", "y", "z")))
        else:
            self._retire(self.random.choice(("x", "y", "z")))

    def _next(self) -> int:
        self.asked += 1
        return self.asked

    def _decide(self, n: int) -> None:
        bodies: list[dict[str, Any]] = [
            {
                "event_id": f"{self.number}/{self._next()}", "user": {"age": self.random.gauss(0, 1)},
                "user_key": self._key(self.asked), "places": self.random.choice((1, 1, 2)),
            }
            for _ in range(n)
        ]  # fmt: skip
        for body, answer in zip(bodies, self._ask_all("/v1/decisions", bodies), strict=True):
            if answer.pop("status") not in (200, 201) or answer["event_id"] != body["event_id"]:
                self.problems.append(f"{body} was answered {answer}")
            asked = {name: body[name] for name in ("user", "user_key", "places")}
            self.decisions[body["event_id"]] = {"asked": asked, "answer": answer}
            self.waiting += [(body["event_id"], place + 1) for place in range(len(answer.get("places", [1])))]

    def _reward(self, n: int) -> None:
        events = [self.waiting.pop(self.random.randrange(len(self.waiting))) for _ in range(min(n, len(self.waiting)))]
        bodies = [
            {"event_id": event, "reward": self.random.random(), "place": place}
            for event, place in events
            if self.random.random() < 0.8
        ]
        for body, answer in zip(bodies, self._ask_all("/v1/rewards", bodies), strict=True):
            if answer["status"] not in (200, 201, 202) or answer["reward"] != body["reward"]:
                self.problems.append(f"{body} was answered {answer}")
            self.rewards[str(body["event_id"]), int(str(body["place"]))] = answer["reward"], answer["learned"]

    def _key(self, asked: int) -> str:
        """The user of an event: a few dozen events in a row are of one."""
        return f"{self.number}/user {asked // 40}."

    def _correct(self) -> None:
        """Correct a reward, or withdraw it."""
        if self.rewards:
            event, place = self.random.choice(sorted(self.rewards))
            value = self.random.choice((None, self.random.random()))
            id = f"{self.number}/correction {self._next()}"
            body = {"event_id": event, "place": place, "reward": value, "correction_id": id}
            response = self._ask("POST", "/v1/corrections", body)
            if response.status_code not in (200, 201) or response.json()["reward"] != value:
                self.problems.append(f"{body} was answered {response.text}")
            self.corrections[event, place] = value

    def _erase(self) -> None:
        """Have a user erased who does not come again."""
        keys = {each["asked"]["user_key"] for each in self.decisions.values()} - {self._key(self.asked)}
        if keys:
            key = self.random.choice(sorted(keys))
            response = self._ask("POST", "/v1/erasures", {"user_key": key})
            if response.status_code != 202:
                self.problems.append(f"the erasure of {key} was answered {response.text}")
            self.erased.add(key)
            gone = {event for event, each in self.decisions.items() if each["asked"]["user_key"] == key}
            self.waiting = [each for each in self.waiting if each[0] not in gone]
            for event in gone:
                del self.decisions[event]
                for place in (1, 2):
                    self.rewards.pop((event, place), None)
                    self.corrections.pop((event, place), None)

    def finish(self) -> None:
        """Wait until what was to be erased is gone."""
        with httpx.Client(timeout=10.0) as self.http:
            for key in sorted(self.erased):
                while self._ask("POST", "/v1/erasures", {"user_key": key}).status_code != 200:
                    time.sleep(0.05)
            while self._ask("GET", "/v1/view", None).json()["relearning"]:
                time.sleep(0.05)

    def _put(self, name: str) -> None:
        arm, price = f"{self.number}/{name}", float(self._next())
        response = self._ask("PUT", f"/v1/arms/{arm}", {"features": {"price": price}})
        if response.status_code not in (200, 201):
            self.problems.append(f"PUT {arm} was answered {response.text}")
        self.arms.setdefault(arm, []).append(("put", price))

    def _retire(self, name: str) -> None:
        arm = f"{self.number}/{name}"
        if arm in self.arms and self.arms[arm][-1][0] == "put":
            response = self._ask("DELETE", f"/v1/arms/{arm}", None)
            if response.status_code != 200:
                self.problems.append(f"DELETE {arm} was answered {response.text}")
            self.arms[arm].append(("retire", None))

    def _ask_again(self) -> None:
        """Repeat requests and compare the answers."""
        for event in self.random.sample(sorted(self.decisions), min(50, len(self.decisions))):
            known = self.decisions[event]["answer"]
            body = {"event_id": event, **self.decisions[event]["asked"]}
            response = self._ask("POST", "/v1/decisions", body)
            if (response.status_code, response.json()) != (200, known):
                self.problems.append(f"{body} was answered {known}, and now {response.text}")

    def _ask_all(self, path: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Ask for one or several at once; the answers with their statuses."""
        if len(bodies) == 1:
            response = self._ask("POST", path, bodies[0])
            return [{"status": response.status_code, **response.json()}]
        if not bodies:
            return []
        while True:
            answers: list[dict[str, Any]] = self._ask("POST", f"{path}/batch", bodies).json()
            if all(answer["status"] != 503 for answer in answers):
                return answers

    def _ask(self, method: str, path: str, body: Any) -> httpx.Response:
        """Ask one of the servers, until there is an answer."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                response = self.http.request(method, self.random.choice(self.urls) + path, json=body)
            except httpx.TransportError:
                time.sleep(0.01)
                continue
            if response.status_code != 503:
                return response
            time.sleep(0.01)
        raise TimeoutError(f"{method} {path} has not been answered for {SECONDS:g} seconds")


def run(
    kind: str, kills: int, *, window: bool = True, seed: int = 0, say: Callable[[str], None] = lambda line: None
) -> Outcome:
    """Kill servers of a log in "sqlite" or "postgresql" so many times, and check what is left."""
    chance = random.Random(seed)
    with contextlib.ExitStack() as at_the_end:
        folder = at_the_end.enter_context(tempfile.TemporaryDirectory())
        file = Path(folder) / "bandit.toml"
        file.write_text(BANDIT if window else BANDIT.replace(CLICKS, 'rewards = "explicit"'))
        postgres, address = None, str(file.with_suffix(".db"))
        if kind == "postgresql":
            postgres = Postgres()
            at_the_end.callback(postgres.end)
            address = postgres.address("killed")
        services: list[Service] = []
        for _ in range(2):
            services.append(Service(file, address))
            at_the_end.callback(services[-1].kill)
        problems: list[str] = []
        clients = [Client(number, [service.url for service in services], seed) for number in range(CLIENTS)]
        for service in services:
            service.wait()
        for client in clients:
            at_the_end.callback(client.stopping.set)
            client.start()
        for number in range(1, kills + 1):
            time.sleep(chance.uniform(0.1, 0.7))
            service = chance.choice(services)
            service.kill()
            if postgres is not None and number % 5 == 0:
                postgres.kill()
                postgres.start()
            service.start()
            service.wait()
            if number % 10 == 0:
                _end(service, problems)
                service.start()
                service.wait()
                say(f"{kind}: {number} kills")
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join()
            problems += client.problems
        for client in clients:
            client.finish()
        for service in services:
            _end(service, problems)
        with contextlib.closing(open_store(address)) as store:
            return check(store, clients, kills, problems)


def _end(service: Service, problems: list[str]) -> None:
    """Ask a server to end."""
    code = service.stop()
    if code not in ENDED:
        problems.append(f"a server that was asked to end did so with {code}")


def check(store: Store, clients: list[Client], kills: int, problems: list[str]) -> Outcome:
    """Look for every answer in the log, and make every decision again."""
    rows = list(store.rows(0))
    if [row.number for row in rows] != list(range(1, len(rows) + 1)):
        problems.append("the numbers of the rows have gaps")
    if any(later.time < row.time for row, later in itertools.pairwise(rows)):
        problems.append("times go back")
    counts = Counter((type(row.content).__name__, row.key) for row in rows if row.key is not None)
    problems += [f"{key} is in the log {count} times" for key, count in counts.items() if count > 1]
    problems += [problem for client in clients for problem in _missing(client, rows)]
    again = verify(store)
    problems += again.examples
    state, whole = ModelState.restored(store), ModelState.based(store)
    assert state is not None
    whole.apply(store.rows(whole.row), store)
    for name, policy in whole.policies.items():
        if state.policies[name].to_bytes() != policy.to_bytes():
            problems.append(f"{name} differs between snapshot and log")
    if whole.bandit.window is None:
        withdrawn = {key for key, value in whole.amended.items() if value is None}
        due = sum(isinstance(row.content, Reward) and row.key not in withdrawn for row in rows)
    else:
        closed = [row.content for row in rows if row.number <= whole.closed]
        due = sum(len(content.more) + 1 for content in closed if isinstance(content, Decision))
    counted = sum(terms.n for terms in whole.summary.places.values())
    if not due == counted == whole.policies["live"].rounds or whole.pending:
        problems.append(f"{due} rewards are due, {counted} are counted")
    left = {key for client in clients for key in client.erased}
    problems += [f"row {row.number} was to be erased" for row in rows if getattr(row.content, "key", None) in left]
    return Outcome(
        kills=kills,
        decisions=sum(len(client.decisions) for client in clients),
        rewards=sum(len(client.rewards) for client in clients),
        changes=sum(len(history) for client in clients for history in client.arms.values()),
        rows=len(rows),
        problems=problems,
    )


def _missing(client: Client, rows: list[Row]) -> list[str]:
    """Answers that contradict the log."""
    decisions = {row.content.event: row.content for row in rows if isinstance(row.content, Decision)}
    rewards = {(row.content.event, row.content.place): row.content for row in rows if isinstance(row.content, Reward)}
    corrected = {(row.content.of, row.content.place): row.content for row in rows if isinstance(row.content, Corrected)}
    arms: dict[str, list[tuple[str, float | None]]] = {}
    for row in rows:
        if isinstance(row.content, Arm):
            price = row.content.features["price"]
            assert isinstance(price, int | float)
            arms.setdefault(row.content.arm, []).append(("put", float(price)))
        elif isinstance(row.content, Retired):
            arms.setdefault(row.content.arm, []).append(("retire", None))
    problems = []
    for event, answer in client.decisions.items():
        decision = decisions.get(event)
        logged = decision and {
            "event_id": decision.event,
            "arm": decision.arm,
            "propensity": decision.chance,
            "version": decision.version,
            **({"places": _places(decision)} if decision.places > 1 else {}),
        }
        if decision is None or logged != answer["answer"] or decision.user != answer["asked"]["user"]:
            problems.append(f"decision {event}: answered {answer}, in the log {logged}")
    for rewarded, (value, learned) in client.rewards.items():
        given = rewards.get(rewarded)
        if given is None or (given.reward, not given.late) != (value, learned):
            problems.append(f"reward {rewarded}: answered {value}, learned {learned}, in the log {given}")
    for place, reward in client.corrections.items():
        if place not in corrected or corrected[place].reward != reward:
            problems.append(f"correction of {place}: answered {reward}, in the log {corrected.get(place)}")
    for arm, history in client.arms.items():
        if arms.get(arm) != history:
            problems.append(f"arm {arm}: answered {history}, in the log {arms.get(arm)}")
    return problems


def _places(decision: Decision) -> list[dict[str, Any]]:
    places = (decision.at(place) for place in range(1, len(decision.more) + 2))
    return [{"arm": each.arm, "propensity": each.chance} for each in places]


def describe(kind: str, outcome: Outcome) -> tuple[str, bool]:
    """Return a summary line, and True if there are no problems."""
    right = not outcome.problems
    line = (
        f"{kind}, {outcome.kills} kills: {outcome.decisions:,} decisions, {outcome.rewards:,} rewards and "
        f"{outcome.changes:,} changes of arms acknowledged, all in the log of {outcome.rows:,} rows once, and "
        f"recomputed without difference: {'reached' if right else 'MISSED'}"
    )
    return "\n  ".join([line, *outcome.problems[:20]]), right


def main() -> int:
    """Kill servers of one store, or of both; the exit code is 1 if anything was lost or differs."""
    parser = argparse.ArgumentParser(prog="python -m soak.kills", description=__doc__, allow_abbrev=False)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), help="where the log is (default: both)")
    parser.add_argument("--kills", type=int, default=100, help="how often a server is killed (default: 100)")
    parser.add_argument("--at-once", action="store_true", help="without a window, so that rewards are learned at once")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failed = 0
    for kind in [given.store] if given.store else ["sqlite", "postgresql"]:
        outcome = run(
            kind, given.kills, window=not given.at_once, seed=given.seed,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )  # fmt: skip
        line, right = describe(kind, outcome)
        failed += not right
        print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
