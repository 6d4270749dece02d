"""Synthetic click logs in the formats of Yahoo! R6A and R6B, from a hybrid model that is known.

Every visit brings a new user u. The article shown is drawn uniformly from the pool of that moment, and it is clicked
with probability

    p(u, article a) = clip(x . theta + z . beta_a, 0.005, 0.95),   x = vec(u v'),   z = v ("das") or u ("li")

where v is the article's vector. The parameters are drawn so that nothing is ever clipped with the default `rate` and
`spread`: the model is then exactly linear, and what is learned from the log can be compared with the truth.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from isal import isal_zlib

from hybandits.features import FeatureMap
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import clear_parts, discard, naming, part_of
from hybandits.logs.store import LogError

LOWEST, HIGHEST = 0.005, 0.95
"""The bounds to which click probabilities are clipped."""

TRUTH = "truth.json"
"""The file beside the log that holds the model."""

KINDS = {"R6A": "ydata-fp-td-clicks-v1_0", "R6B": "ydata-fp-td-clicks-v2_0"}
"""The kinds of log, and how the names of their files begin."""

FIRST_DAY = datetime.date(2009, 5, 1)
FIRST_SECOND = 1_241_136_000
"""Midnight of the first day."""
DAY = 86_400
BLOCK = 1 << 14
"""How many rounds are drawn together, from a random stream of their own."""

MEMBERSHIPS = 5
ACTIVE_IDS = 136
MICRO = 1_000_000
"""Memberships are multiples of 1/MICRO, because the format has six decimals."""

_MODEL, _SCHEDULE, _ROUNDS = range(3)
"""The random streams of a seed."""


class Parameters(NamedTuple):
    """The model: theta, which all articles share, and beta of each article by its id."""

    theta: FloatArray
    beta: dict[str, FloatArray]


class _DrawnRounds(NamedTuple):
    """Rounds as drawn: places shown, clicks, users in the units of the file, and where the mean was clipped."""

    shown: np.ndarray
    clicks: np.ndarray
    users: np.ndarray
    clipped: np.ndarray


class _Text(NamedTuple):
    """Lines of one day as bytes, and how many rounds, clicks and clipped means they hold."""

    day: int
    rounds: int
    clicks: int
    clipped: int
    lines: bytes


@dataclass(frozen=True, kw_only=True)
class SyntheticLog:
    """A click log from a known model; everything in it is a function of the settings and the seed.

    Parameters
    ----------
    rounds : int
        How many visits there are.
    seed : int
        What all random draws depend on.
    pool : int
        How many candidates a visit has on average; at times there are up to two more or fewer.
    change_every : int, optional
        After how many rounds the pool changes, on average: 35,000 unless given, or an eighth of a short log.
    features : {"das", "li"}
        What clicks depend on beside the products of user and article features: per article, on the article's features
        ("das") or on the user's ("li").
    kind : {"R6A", "R6B"}
        R6A has six numbers for users and for articles; R6B has 136 features that are on or off for users, and none for
        articles.
    rate : float
        The click rate around which those of articles and users lie.
    spread : float
        How far apart they lie: with 1, from about 0.02 to 0.1.

    Attributes
    ----------
    articles : dict
        The vector of every article.
    parameters : Parameters
        The truth: theta, and beta of every article.
    schedule : list
        The first round and the articles of every pool in turn.

    Examples
    --------
    >>> log = SyntheticLog(rounds=1000, seed=1)
    >>> article, vector = next(iter(log.articles.items()))
    >>> 0.02 < log.mean(vector, vector, article) < 0.1
    True
    >>> [path.name for path in log.write("synthetic-clicks", files=2)]
    ['ydata-fp-td-clicks-v1_0.20090501.gz', 'ydata-fp-td-clicks-v1_0.20090502.gz']
    """

    rounds: int
    seed: int = 0
    pool: int = 20
    change_every: int | None = None
    features: str = "das"
    kind: str = "R6A"
    rate: float = 0.06
    spread: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.features not in ("das", "li"):
            raise ValueError(f"features must be das or li, got {self.features!r}: the model needs both theta and beta")
        least = {"rounds": 1, "pool": 3, "seed": 0, "change_every": 1}
        for name, bound in least.items():
            if (value := getattr(self, name)) is not None:
                checks.count(name, value, least=bound, why="give a larger number")
        checks.positive("rate", self.rate, "pass a click rate such as 0.06")
        checks.positive("spread", self.spread, "pass 1 for differences as large as in real logs")

    # ------------------------------------------------------------------ the model

    @property
    def map(self) -> FeatureMap:
        """The map from u and v to x and z."""
        return FeatureMap(self.features, *((ACTIVE_IDS, 1) if self.kind == "R6B" else (1 + MEMBERSHIPS,) * 2))

    def _random(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *stream])

    @cached_property
    def schedule(self) -> list[tuple[int, list[int]]]:
        """(first round, articles by number) of every pool in turn; neighbours differ in one article."""
        random = self._random(_SCHEDULE)
        every = self.change_every or max(1, min(35_000, self.rounds // 8))
        listed, known, start = list(range(self.pool)), self.pool, 0
        turns = [(0, list(listed))]
        while True:
            start += max(1, int(every * random.uniform(4 / 7, 10 / 7)))
            if start >= self.rounds:
                return turns
            room = [step for step in (-1, 0, 0, 1) if abs(len(listed) + step - self.pool) <= min(2, self.pool - 2)]
            step = room[random.integers(len(room))]
            place = int(random.integers(len(listed)))
            if step <= 0:
                del listed[place]
            if step >= 0:
                listed.insert(place, known)
                known += 1
            turns.append((start, list(listed)))

    @cached_property
    def names(self) -> list[str]:
        """The id of every article, by its number."""
        known = 1 + max(max(listed) for _, listed in self.schedule)
        return [f"id-{560_620 + 3 * i}" if self.kind == "R6B" else str(109_453 + 3 * i) for i in range(known)]

    @cached_property
    def _memberships(self) -> np.ndarray:
        """The memberships of the articles in units of 1/MICRO; -1 for an article that has only the constant."""
        memberships = _simplex(self._random(_MODEL, 1), len(self.names), 1.0)
        memberships[5::12] = -1
        return memberships

    @cached_property
    def articles(self) -> dict[str, FloatArray]:
        """The vector of every article."""
        if self.kind == "R6B":
            return {name: np.ones(1) for name in self.names}
        vectors = np.concatenate((np.ones((len(self.names), 1)), np.maximum(self._memberships, 0) / MICRO), axis=1)
        return dict(zip(self.names, vectors, strict=True))

    @cached_property
    def parameters(self) -> Parameters:
        """The true theta, and the true beta of every article.

        Memberships sum to 1, so the mean of R6A lies within 0.055 of the rate. In R6B, a feature that is on moves the
        mean by at most 0.0025, an article by 0.01.
        """
        random, features = self._random(_MODEL, 0), self.map
        if self.kind == "R6B":
            shared = np.full((features.user, 1), 0.002)
        else:
            shared = np.full((features.user, features.arm), 0.02)
            shared[:, 0], shared[0, :] = 0.01, 0.005
        own = np.full(features.d2, 0.0005 if self.kind == "R6B" else 0.01)
        own[0] = 0.01
        theta = self.spread * shared * random.uniform(-1, 1, shared.shape)
        theta[0, 0] = self.rate
        beta = {name: self.spread * own * random.uniform(-1, 1, len(own)) for name in self.names}
        return Parameters(theta.ravel(order="F"), beta)

    def mean(self, user: FloatArray, vector: FloatArray, article: str) -> float:
        """The probability that a user clicks on an article, given their vectors."""
        x, z = self.map(user, vector)
        theta, beta = self.parameters
        return float(np.clip(x @ theta + z @ beta[article], LOWEST, HIGHEST))

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray]:
        """Offset and weights of every article: its mean is offset + weights . u before clipping."""
        theta, beta = self.parameters
        vectors = np.array([self.articles[name] for name in self.names])
        weights = vectors @ theta.reshape(self.map.user, self.map.arm, order="F").T
        own = np.array([beta[name] for name in self.names])
        if self.features == "li":
            return np.zeros(len(own)), weights + own
        return (vectors * own).sum(axis=1), weights

    # ------------------------------------------------------------------ the rounds

    @cached_property
    def _popular(self) -> FloatArray:
        """How often each of a user's 136 features is on: the first always, of the others about 15 at a time."""
        popular = self._random(_MODEL, 2).uniform(0.02, 0.2, ACTIVE_IDS)
        popular[0] = 1.0
        return popular

    @cached_property
    def _pools(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The schedule as arrays: first rounds and sizes of the pools, and the articles of all pools in a row."""
        starts = np.array([start for start, _ in self.schedule])
        sizes = np.array([len(listed) for _, listed in self.schedule])
        return starts, sizes, np.concatenate([listed for _, listed in self.schedule])

    def _draw(self, block: int) -> _DrawnRounds:
        """The rounds of a block, which begins with round BLOCK * block."""
        random = self._random(_ROUNDS, block)
        first = block * BLOCK
        n = min(BLOCK, self.rounds - first)
        if self.kind == "R6B":
            users = (random.random((n, ACTIVE_IDS), np.float32) < self._popular).astype(np.uint8)
            vectors = users.astype(np.float64)
        else:
            users = _simplex(random, n, 0.4)
            vectors = np.concatenate((np.ones((n, 1)), users / MICRO), axis=1)
        starts, sizes, listing = self._pools
        pools = np.searchsorted(starts, np.arange(first, first + n), "right") - 1
        shown = random.integers(0, sizes[pools])
        articles = listing[(np.cumsum(sizes) - sizes)[pools] + shown]
        offsets, weights = self._weights
        means = offsets[articles] + np.einsum("ij,ij->i", weights[articles], vectors)
        kept = np.clip(means, LOWEST, HIGHEST)
        return _DrawnRounds(shown, (random.random(n) < kept).astype(np.uint8), users, kept != means)

    def _pool_text(self, listed: list[int]) -> bytes:
        """The candidates, as they end a line."""
        parts = []
        for i in listed:
            parts.append(f" |{self.names[i]}")
            if self.kind == "R6A":
                if self._memberships[i, 0] >= 0:
                    parts += [f" {k + 2}:{share / MICRO:.6f}" for k, share in enumerate(self._memberships[i])]
                parts.append(" 1:1.000000")
        return "".join(parts).encode()

    def write(
        self, folder: Path | str, *, files: int = 1, progress: Callable[[int], None] = lambda rounds: None
    ) -> list[Path]:
        """Write the log as gzip files, and the truth as `truth.json` beside them.

        Parameters
        ----------
        folder : path
            The folder to write, which must not exist yet or be empty. If anything fails, nothing is left behind.
        files : int
            How many files to split the rounds over evenly, one per day.
        progress : callable
            Called with the rounds written since the last call.
        """
        if not 1 <= files <= self.rounds:
            raise ValueError(f"files must be between 1 and the {self.rounds} rounds, got {files}")
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise LogError(f"{folder} exists already and is not empty: give another folder, or remove it")
        days = [(FIRST_DAY + datetime.timedelta(days=day)).strftime("%Y%m%d") for day in range(files)]
        names = [f"{KINDS[self.kind]}.{day}.gz" for day in days]
        part = part_of(folder)
        clear_parts([folder])
        discard(part)
        try:
            with naming(folder):
                part.mkdir(parents=True)
                clicks, clipped = self._write_days([part / name for name in names], progress)
                (part / TRUTH).write_text(json.dumps(self._truth(clipped, clicks), indent=1) + "\n")
                os.replace(part, folder)
        finally:
            discard(part)
        return [folder / name for name in names]

    def _write_days(self, paths: list[Path], progress: Callable[[int], None]) -> tuple[int, int]:
        """Write the files; the number of clicks, and of rounds whose click probability was clipped."""
        clicks = clipped = 0
        for day, texts in groupby(self._texts(len(paths)), lambda text: text.day):
            # A compressor object writes a header with time 0, so the same log gives the same bytes.
            packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
            with paths[day].open("wb") as file:
                for text in texts:
                    file.write(packer.compress(text.lines))
                    clicks, clipped = clicks + text.clicks, clipped + text.clipped
                    progress(text.rounds)
                file.write(packer.flush())
        return clicks, clipped

    def _texts(self, days: int) -> Iterator[_Text]:
        """The lines, in pieces that belong to one block, one pool and one day."""
        bounds = [day * self.rounds // days for day in range(days + 1)]
        starts = self._pools[0].tolist()
        cuts = sorted({*range(0, self.rounds, BLOCK), *bounds, *starts})
        day = turn = -1
        for first, stop in pairwise(cuts):
            if first % BLOCK == 0:
                rounds = self._draw(first // BLOCK)
            if turn + 1 < len(starts) and first == starts[turn + 1]:
                turn += 1
                listed = self.schedule[turn][1]
                pool = self._pool_text(listed)
                ids = [self.names[i].encode() for i in listed]
            if first == bounds[day + 1]:
                day += 1
            in_day = np.arange(first - bounds[day], stop - bounds[day])
            times = FIRST_SECOND + day * DAY + in_day * DAY // (bounds[day + 1] - bounds[day])
            part = slice(first % BLOCK, first % BLOCK + stop - first)
            clicks = rounds.clicks[part]
            heads = zip(times.tolist(), rounds.shown[part].tolist(), clicks.tolist(), strict=True)
            lines = [
                b"%d %s %d |user%s%s\n" % (time, ids[place], click, user, pool)
                for (time, place, click), user in zip(heads, self._user_texts(rounds.users[part]), strict=True)
            ]
            yield _Text(day, stop - first, int(clicks.sum()), int(rounds.clipped[part].sum()), b"".join(lines))

    def _user_texts(self, users: np.ndarray) -> Iterator[bytes]:
        """The features of users, as they stand in a line."""
        if self.kind == "R6B":
            keys = [b" %d" % (key + 1) for key in range(ACTIVE_IDS)]
            return (b"".join(compress(keys, user)) for user in map(bytes, users))
        text = b"".join(b" %d:%%d.%%06d" % (key + 2) for key in range(MEMBERSHIPS)) + b" 1:1.000000"
        shares = np.stack(np.divmod(users, MICRO), axis=2).reshape(len(users), -1)
        return (text % tuple(user) for user in shares.tolist())

    def _truth(self, clipped: int, clicks: int) -> dict[str, Any]:
        theta, beta = self.parameters
        return {
            "synthetic": asdict(self), "clicks": clicks, "clipped": clipped, "pools": len(self.schedule),
            "theta": theta.tolist(), "beta": {name: each.tolist() for name, each in beta.items()},
            "articles": {name: each.tolist() for name, each in self.articles.items()},
        }  # fmt: skip


def _simplex(random: np.random.Generator, n: int, concentration: float) -> np.ndarray:
    """n draws of memberships in units of 1/MICRO: integers that sum to MICRO."""
    gammas = random.standard_gamma(concentration, (n, MEMBERSHIPS)) + 1e-12
    shares: np.ndarray = np.rint(gammas * (MICRO / gammas.sum(axis=1))[:, None]).astype(np.int64)
    shares[np.arange(n), shares.argmax(axis=1)] += MICRO - shares.sum(axis=1)
    return shares
