"""Synthetic click logs in the formats of Yahoo! R6A and R6B, from a hybrid model that is known.

Every visit brings a new user u. The article shown is drawn uniformly from the pool of that moment, and it is clicked
with probability x . theta + z . beta_a, where x = vec(u v') with the article's vector v, and z = v ("das") or u ("li").
"""

import datetime
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress, pairwise
from pathlib import Path

import numpy as np
from isal import isal_zlib

from hybandits.features import FeatureMap
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import clear_parts, discard, naming, part_of
from hybandits.logs.store import LogError

TRUTH = "truth.json"
"""The file beside the log that holds the model."""

KINDS = {"R6A": "ydata-fp-td-clicks-v1_0", "R6B": "ydata-fp-td-clicks-v2_0"}
"""The kinds of log, and how the names of their files begin."""

RATE = 0.06
"""The click rate around which those of articles and users lie."""

FIRST_DAY = datetime.date(2009, 5, 1)
FIRST_SECOND = 1_241_136_000
"""Midnight of the first day."""
DAY = 86_400
BLOCK = 1 << 14
"""Rounds that are drawn together, from a random stream of their own."""

MEMBERSHIPS = 5
ACTIVE_IDS = 136
MICRO = 1_000_000
"""Memberships are multiples of 1/MICRO, because the format has six decimals."""

_MODEL, _SCHEDULE, _ROUNDS = range(3)
"""The random streams of a seed."""


@dataclass(frozen=True, kw_only=True)
class SyntheticLog:
    """A click log from a known model; everything in it is a function of the settings and the seed.

    `pool` is the average number of candidates; at times there are up to two more or fewer. The pool changes after
    35,000 rounds on average, or an eighth of a short log. An article's own part of the click rate depends on its
    features ("das") or on the user's ("li"). R6A has six numbers for users and for articles; R6B has 136 features that
    are on or off for users, and none for articles.

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
    features: str = "das"
    kind: str = "R6A"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.features not in ("das", "li"):
            raise ValueError(f"features must be das or li, got {self.features!r}: the model needs both theta and beta")
        for name, least in {"rounds": 1, "pool": 3, "seed": 0}.items():
            checks.count(name, getattr(self, name), least=least, why="give a larger number")

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
        every = max(1, min(35_000, self.rounds // 8))
        listed, known, start = list(range(self.pool)), self.pool, 0
        turns = [(0, list(listed))]
        while True:
            start += max(1, int(every * random.uniform(4 / 7, 10 / 7)))
            if start >= self.rounds:
                return turns
            steps = [step for step in (-1, 0, 0, 1) if abs(len(listed) + step - self.pool) <= min(2, self.pool - 2)]
            step = steps[random.integers(len(steps))]
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
    def parameters(self) -> tuple[FloatArray, dict[str, FloatArray]]:
        """The true theta, and the true beta of every article. Means are about 0.02 to 0.1."""
        random, features = self._random(_MODEL, 0), self.map
        if self.kind == "R6B":
            shared = np.full((features.user, 1), 0.002)
        else:
            shared = np.full((features.user, features.arm), 0.02)
            shared[:, 0], shared[0, :] = 0.01, 0.005
        own = np.full(features.d2, 0.0005 if self.kind == "R6B" else 0.01)
        own[0] = 0.01
        theta = shared * random.uniform(-1, 1, shared.shape)
        theta[0, 0] = RATE
        beta = {name: own * random.uniform(-1, 1, len(own)) for name in self.names}
        return theta.ravel(order="F"), beta

    def mean(self, user: FloatArray, vector: FloatArray, article: str) -> float:
        """The probability that a user clicks on an article, given their vectors."""
        x, z = self.map(user, vector)
        theta, beta = self.parameters
        return float(x @ theta + z @ beta[article])

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray]:
        """Offset and weights of every article: its mean is offset + weights . u."""
        theta, beta = self.parameters
        vectors = np.array([self.articles[name] for name in self.names])
        weights = vectors @ theta.reshape(self.map.user, self.map.arm, order="F").T
        own = np.array([beta[name] for name in self.names])
        if self.features == "li":
            return np.zeros(len(own)), weights + own
        return (vectors * own).sum(axis=1), weights

    @cached_property
    def _popular(self) -> FloatArray:
        """Shares of users with each of the 136 features: 1 for the first; of the others, about 15 are on at a time."""
        popular = self._random(_MODEL, 2).uniform(0.02, 0.2, ACTIVE_IDS)
        popular[0] = 1.0
        return popular

    def _draw(self, block: int) -> tuple[np.ndarray, ...]:
        """Places shown, clicks and users, in the units of the file, of a block that begins with round BLOCK * block."""
        random = self._random(_ROUNDS, block)
        first = block * BLOCK
        n = min(BLOCK, self.rounds - first)
        if self.kind == "R6B":
            users = (random.random((n, ACTIVE_IDS), np.float32) < self._popular).astype(np.uint8)
            vectors = users.astype(np.float64)
        else:
            users = _simplex(random, n, 0.4)
            vectors = np.concatenate((np.ones((n, 1)), users / MICRO), axis=1)
        sizes = np.array([len(listed) for _, listed in self.schedule])
        pools = np.searchsorted([start for start, _ in self.schedule], np.arange(first, first + n), "right") - 1
        shown = random.integers(0, sizes[pools])
        articles = np.concatenate([listed for _, listed in self.schedule])[(np.cumsum(sizes) - sizes)[pools] + shown]
        offsets, weights = self._weights
        means = offsets[articles] + np.einsum("ij,ij->i", weights[articles], vectors)
        return shown, (random.random(n) < means).astype(np.uint8), users

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
        """Write the log as gzip files, one per day, and the truth as `truth.json` beside them.

        The folder must not exist yet or be empty. If anything fails, nothing is left behind. `progress` is called with
        the rounds written since the last call.
        """
        if not 1 <= files <= self.rounds:
            raise ValueError(f"files must be between 1 and the {self.rounds} rounds, got {files}")
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise LogError(f"{folder} exists already and is not empty: give another folder, or remove it")
        days = [(FIRST_DAY + datetime.timedelta(days=day)).strftime("%Y%m%d") for day in range(files)]
        names = [f"{KINDS[self.kind]}.{day}.gz" for day in days]
        bounds = [day * self.rounds // files for day in range(files + 1)]
        part = part_of(folder)
        clear_parts([folder])
        discard(part)
        try:
            with naming(folder):
                part.mkdir(parents=True)
                for day, name in enumerate(names):
                    # A compressor object writes a header with time 0, so the same log gives the same bytes.
                    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
                    with (part / name).open("wb") as file:
                        for rounds, text in self._texts(bounds[day], bounds[day + 1], FIRST_SECOND + day * DAY):
                            file.write(packer.compress(text))
                            progress(rounds)
                        file.write(packer.flush())
                theta, beta = self.parameters
                truth = {
                    "synthetic": asdict(self), "theta": theta.tolist(),
                    "beta": {name: each.tolist() for name, each in beta.items()},
                    "articles": {name: each.tolist() for name, each in self.articles.items()},
                }  # fmt: skip
                (part / TRUTH).write_text(json.dumps(truth, indent=1) + "\n")
                os.replace(part, folder)
        finally:
            discard(part)
        return [folder / name for name in names]

    def _texts(self, start: int, stop: int, midnight: int) -> Iterator[tuple[int, bytes]]:
        """The lines of a day with the rounds start..stop-1, in pieces of one block and one pool, and their numbers."""
        turns = [first for first, _ in self.schedule]
        blocks = range(start // BLOCK * BLOCK, stop, BLOCK)
        cuts = sorted({start, stop, *(cut for cut in (*blocks, *turns) if start < cut < stop)})
        for first, last in pairwise(cuts):
            if first == start or first % BLOCK == 0:
                rounds = self._draw(first // BLOCK)
            listed = self.schedule[int(np.searchsorted(turns, first, "right")) - 1][1]
            pool, ids = self._pool_text(listed), [self.names[i].encode() for i in listed]
            times = midnight + np.arange(first - start, last - start) * DAY // (stop - start)
            shown, clicks, users = (column[first % BLOCK :][: last - first] for column in rounds)
            heads = zip(times.tolist(), shown.tolist(), clicks.tolist(), self._user_texts(users), strict=True)
            lines = [b"%d %s %d |user%s%s\n" % (time, ids[at], click, user, pool) for time, at, click, user in heads]
            yield last - first, b"".join(lines)

    def _user_texts(self, users: np.ndarray) -> Iterator[bytes]:
        if self.kind == "R6B":
            keys = [b" %d" % (key + 1) for key in range(ACTIVE_IDS)]
            return (b"".join(compress(keys, user)) for user in map(bytes, users))
        text = b"".join(b" %d:%%d.%%06d" % (key + 2) for key in range(MEMBERSHIPS)) + b" 1:1.000000"
        shares = np.stack(np.divmod(users, MICRO), axis=2).reshape(len(users), -1)
        return (text % tuple(user) for user in shares.tolist())


def _simplex(random: np.random.Generator, n: int, concentration: float) -> np.ndarray:
    """n draws of memberships in units of 1/MICRO: integers that sum to MICRO."""
    gammas = random.standard_gamma(concentration, (n, MEMBERSHIPS)) + 1e-12
    shares: np.ndarray = np.rint(gammas * (MICRO / gammas.sum(axis=1))[:, None]).astype(np.int64)
    shares[np.arange(n), shares.argmax(axis=1)] += MICRO - shares.sum(axis=1)
    return shares
