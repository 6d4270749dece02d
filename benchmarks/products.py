"""Products: worlds of raw columns, and how much of the possible gain `Bandit` makes of them by its default map.

The score of a run is (earned - uniform) / (oracle - uniform), in expected rewards. Beside the default map stand a map
made by hand by somebody who knows how the rewards come about, and scikit-learn's logistic regression with the ids of
arms, refitted whenever its rows have grown by half, with epsilon-greedy. Some rewards arrive blocks of rounds later.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybandits import Bandit, Features
from hybandits.foundation.checks import FloatArray

BLOCK = 20
"""Users that choose among the same candidates."""
EPSILON = 0.05
"""The share of random choices of logistic regression."""

Rows = list[dict[str, Any]]


class Block(NamedTuple):
    """Some users, the candidates that all of them choose among, and the mean reward of each."""

    users: Rows
    arms: dict[str, dict[str, Any]]
    means: FloatArray
    hand_users: Rows
    hand_arms: dict[str, dict[str, Any]]


class Product(NamedTuple):
    """A world: its columns, what somebody who knows it would declare, and its rounds."""

    name: str
    blocks: Callable[[np.random.Generator, int], Iterator[Block]]
    hand: dict[str, Any]
    clicks: bool = True
    late: int = 0
    """Blocks after which rewards arrive."""
    noise: float = 0.5
    """The standard deviation of rewards that are no clicks."""


def logistic(logits: FloatArray) -> FloatArray:
    """Click rates from log odds."""
    return 1.0 / (1.0 + np.exp(-logits))


def _dicts(**columns: Any) -> Rows:
    """One dict for every row of the columns."""
    plain = {name: np.asarray(each).tolist() for name, each in columns.items()}
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


class _Catalogue:
    """Articles of which some are replaced from time to time."""

    def __init__(self, random: np.random.Generator, size: int, draw: Callable[[int], dict[str, Any]]) -> None:
        self._random, self._draw, self._made = random, draw, size
        self.columns = draw(size)
        self.ids = np.arange(size)

    def replace(self, count: int) -> None:
        """Replace so many articles by new ones."""
        gone = self._random.choice(len(self.ids), count, replace=False)
        for name, each in self._draw(count).items():
            self.columns[name][gone] = each
        self.ids[gone] = self._made + np.arange(count)
        self._made += count

    def shown(self, count: int) -> tuple[list[str], dict[str, Any]]:
        """The ids and columns of some articles."""
        rows = self._random.choice(len(self.ids), count, replace=False)
        return [f"a{i}" for i in self.ids[rows]], {name: each[rows] for name, each in self.columns.items()}


def shop(rate: float, *, arms: int, shown: int, replaced: int, own: float) -> Callable[..., Iterator[Block]]:
    """Articles come and go; the best price depends on age, the topic on the country, and price has a curved effect."""

    def blocks(random: np.random.Generator, count: int) -> Iterator[Block]:
        countries, topics, brands = 5, 6, 8
        taste = 0.6 * random.standard_normal((countries, topics))
        brand_effect, device_effect = 0.4 * random.standard_normal(brands), 0.4 * random.standard_normal((3, topics))
        slope = 0.5 * random.choice([-1.0, 1.0])

        def draw(n: int) -> dict[str, Any]:
            return {
                "price": random.gamma(3.0, 10.0, n), "topic": random.integers(topics, size=n),
                "brand": random.integers(brands, size=n), "new": random.random(n) < 0.3,
                "own": own * random.standard_normal(n),
            }  # fmt: skip

        catalogue = _Catalogue(random, arms, draw)
        for block in range(count):
            if block and block % max(count // 10, 1) == 0:
                catalogue.replace(replaced)
            age, country = random.gamma(8.0, 5.0, BLOCK), random.integers(countries, size=BLOCK)
            device = random.integers(3, size=BLOCK)
            ids, a = catalogue.shown(shown)
            older, bump = (age - 40.0) / 14.0, np.exp(-(((a["price"] - 25.0) / 12.0) ** 2)) - 0.5
            dear = (a["price"] - 30.0) / 17.0
            effect = (
                1.2 * bump + brand_effect[a["brand"]] + 0.3 * a["new"] + a["own"]
                + slope * older[:, None] * dear + taste[country][:, a["topic"]] + device_effect[device][:, a["topic"]]
            )  # fmt: skip
            words = {"country": np.char.add("c", country.astype(str)), "device": np.char.add("d", device.astype(str))}
            users = _dicts(age=age, **words)
            plain = {name: np.char.add(name[0], a[name].astype(str)) for name in ("topic", "brand")}
            listed = _dicts(price=a["price"], **plain, new=a["new"])
            by_hand = _dicts(price=a["price"], bump=bump, **plain, new=a["new"])
            means = logistic(np.log(rate / (1 - rate)) - 0.3 + effect)
            yield Block(users, dict(zip(ids, listed, strict=True)), means, users, dict(zip(ids, by_hand, strict=True)))

    return blocks


SHOP_BY_HAND: dict[str, Any] = {
    "interactions": [("age", "price"), ("country", "topic"), ("device", "topic")], "own": ["1"], "curves": False,
}  # fmt: skip


FEW_BY_HAND: dict[str, Any] = {"own": ["1", "a", "b", "c", "kind", "curve"], "curves": False}


def few_arms(arms: int) -> Callable[..., Iterator[Block]]:
    """Arms without columns, each with an effect of its own for every kind of user."""

    def blocks(random: np.random.Generator, count: int) -> Iterator[Block]:
        slopes, kinds = random.standard_normal((arms, 3)), 0.7 * random.standard_normal((arms, 5))
        bend = random.standard_normal(arms)
        for _ in range(count):
            a, b, c = random.standard_normal(BLOCK), random.gamma(2.0, 1.0, BLOCK), random.standard_normal(BLOCK)
            kind = random.integers(5, size=BLOCK)
            curve = np.abs(a) - 0.8
            linear = np.column_stack([a, b - 2.0, c]) @ slopes.T
            means = 0.5 * (linear + kinds[:, kind].T + curve[:, None] * bend)
            words = np.char.add("k", kind.astype(str))
            users, by_hand = _dicts(a=a, b=b, c=c, kind=words), _dicts(a=a, b=b, c=c, kind=words, curve=curve)
            nothing: dict[str, dict[str, Any]] = {f"a{i}": {} for i in range(arms)}
            yield Block(users, nothing, means, by_hand, nothing)

    return blocks


def many_arms(arms: int, shown: int, own: float) -> Callable[..., Iterator[Block]]:
    """Many arms whose columns say much, and each a little of its own; linear products of numbers."""

    def blocks(random: np.random.Generator, count: int) -> Iterator[Block]:
        weights, main = 0.5 * random.standard_normal((4, 4)), 0.5 * random.standard_normal(4)

        def draw(n: int) -> dict[str, Any]:
            return {"v": random.standard_normal((n, 4)), "own": own * random.standard_normal(n)}

        catalogue = _Catalogue(random, arms, draw)
        for _ in range(count):
            u = random.standard_normal((BLOCK, 4))
            ids, a = catalogue.shown(shown)
            means = 0.3 * (u @ weights @ a["v"].T + a["v"] @ main + a["own"])
            users = _dicts(**{f"u{k}": u[:, k] for k in range(4)})
            listed = dict(zip(ids, _dicts(**{f"v{k}": a["v"][:, k] for k in range(4)}), strict=True))
            yield Block(users, listed, means, users, listed)

    return blocks


def tastes(arms: int, shown: int) -> Callable[..., Iterator[Block]]:
    """Users and films as vectors whose product matters, with labels and values that are missing."""

    def blocks(random: np.random.Generator, count: int) -> Iterator[Block]:
        turn = np.linalg.qr(random.standard_normal((5, 5)))[0]
        tag_effect = random.standard_normal((3, 4))
        names = np.array(["fun", "fear", "love", "war"])

        def draw(n: int) -> dict[str, Any]:
            return {"v": random.standard_normal((n, 5)), "tags": random.random((n, 4)) < 0.35}

        catalogue = _Catalogue(random, arms, draw)
        for block in range(count):
            if block and block % max(count // 10, 1) == 0:
                catalogue.replace(arms // 10)
            u, group = random.standard_normal((BLOCK, 5)), random.integers(3, size=BLOCK)
            hidden = random.random(BLOCK) < 0.2
            ids, a = catalogue.shown(shown)
            effect = 0.45 * np.where(hidden[:, None], 0.0, u) @ turn @ a["v"].T + 0.5 * tag_effect[group] @ a["tags"].T
            means = logistic(-1.8 + effect)
            users = [
                {"taste": None if off else row, "group": f"g{k}"}
                for row, k, off in zip(u.tolist(), group, hidden, strict=True)
            ]
            listed = {
                arm: {"style": style, "tags": names[tags].tolist()}
                for arm, style, tags in zip(ids, a["v"].tolist(), a["tags"], strict=True)
            }
            yield Block(users, listed, means, users, listed)

    return blocks


def wide(levels: int, arms: int, shown: int) -> Callable[..., Iterator[Block]]:
    """Two categories of many levels whose product matters: d1 near 2,000."""

    def blocks(random: np.random.Generator, count: int) -> Iterator[Block]:
        left, right = random.standard_normal((levels, 2)), random.standard_normal((levels, 2))
        level_effect = 0.4 * random.standard_normal(levels)

        def draw(n: int) -> dict[str, Any]:
            return {"brand": random.integers(levels, size=n), "price": random.gamma(3.0, 10.0, n)}

        catalogue = _Catalogue(random, arms, draw)
        for _ in range(count):
            city = random.integers(levels, size=BLOCK)
            ids, a = catalogue.shown(shown)
            effect = 0.6 * left[city] @ right[a["brand"]].T + level_effect[a["brand"]] - 0.02 * (a["price"] - 30.0)
            users = _dicts(city=np.char.add("c", city.astype(str)))
            brand = np.char.add("b", a["brand"].astype(str))
            listed = dict(zip(ids, _dicts(brand=brand, price=a["price"]), strict=True))
            yield Block(users, listed, logistic(-1.5 + effect), users, listed)

    return blocks


PRODUCTS = (
    Product("shop", shop(0.10, arms=200, shown=30, replaced=25, own=0.2), SHOP_BY_HAND, late=25),
    Product("shop, rare clicks", shop(0.03, arms=60, shown=20, replaced=6, own=0.3), SHOP_BY_HAND, late=25),
    Product("few arms, many users", few_arms(6), FEW_BY_HAND, clicks=False, noise=1.0),
    Product("many arms", many_arms(400, 20, 0.3), {"own": ["1"], "curves": False}, clicks=False, noise=0.5),
    Product("films", tastes(150, 20), {"own": ["1"], "interactions": [("taste", "style"), ("group", "tags")]}, late=10),
    Product("wide", wide(42, 200, 20), {"own": ["1"], "interactions": [("city", "brand")], "curves": False}),
)  # fmt: skip


class Contender(Protocol):
    """Chooses for the users of a block and learns rewards."""

    def choose(self, users: Rows, arms: dict[str, dict[str, Any]]) -> tuple[list[int], Sequence[Any]]:
        """Return the places of the arms chosen, and what `learn` needs."""

    def learn(self, receipts: Sequence[Any], rewards: FloatArray) -> None:
        """Learn the rewards of earlier choices."""


class Ours:
    """A `Bandit`, by default or by hand."""

    def __init__(self, block: Block, by_hand: bool, product: Product, seed: int, **settings: Any) -> None:
        users, arms = (block.hand_users, block.hand_arms) if by_hand else (block.users, block.arms)
        self.by_hand, given = by_hand, product.hand if by_hand else {}
        arm = list(arms.values()) if next(iter(arms.values())) else None
        self.bandit = Bandit(user=users, arm=arm, seed=seed, **{**given, **settings})

    def choose(self, users: Rows, arms: dict[str, dict[str, Any]]) -> tuple[list[int], Sequence[Any]]:
        choices = self.bandit.choose_batch(users, arms)
        return choices.indices.tolist(), choices.receipts

    def learn(self, receipts: Sequence[Any], rewards: FloatArray) -> None:
        self.bandit.learn_batch(receipts, rewards=rewards)


class Logistic:
    """scikit-learn's regression on all products of columns and on the ids of arms, refitted, with epsilon-greedy."""

    def __init__(self, block: Block, product: Product, seed: int) -> None:
        self._random, self._clicks = np.random.default_rng(seed), product.clicks
        self._arms = next(iter(block.arms.values())) != {}
        arm = list(block.arms.values()) if self._arms else None
        self._declared = Features(user=block.users, arm=arm, curves=False)
        self._features = self._declared.learn(block.users, arm)
        self._rows: list[tuple[dict[str, Any], dict[str, Any], str]] = []
        self._rewards: list[float] = []
        self._next, self._model, self._ids = 40, None, dict[str, int]()

    def _matrix(self, rows: Sequence[tuple[dict[str, Any], dict[str, Any], str]]) -> Any:
        from scipy import sparse

        users, arms, ids = zip(*rows, strict=True)
        x, z = self._features.rows(list(users), list(arms) if self._arms else len(rows))
        places = np.array([self._ids.get(arm, -1) for arm in ids])
        known = np.flatnonzero(places >= 0)
        if self._arms:
            shape, columns = (len(rows), len(self._ids)), places[known]
            return sparse.hstack([x, sparse.csr_matrix((np.ones(len(known)), (known, columns)), shape)]).tocsr()
        wide_rows = np.zeros((len(rows), max(len(self._ids), 1), z.shape[1]))
        wide_rows[known, places[known]] = z[known]
        return wide_rows.reshape(len(rows), -1)

    def choose(self, users: Rows, arms: dict[str, dict[str, Any]]) -> tuple[list[int], Sequence[Any]]:
        ids, n = list(arms), len(arms)
        picks = self._random.integers(n, size=len(users))
        if self._model is not None:
            rows = [(user, arms[arm], arm) for user in users for arm in ids]
            scores = self._predicted(self._matrix(rows)).reshape(len(users), n)
            greedy = self._random.random(len(users)) >= EPSILON
            picks = np.where(greedy, scores.argmax(axis=1), picks)
        return picks.tolist(), [(user, arms[ids[i]], ids[i]) for user, i in zip(users, picks, strict=True)]

    def _predicted(self, matrix: Any) -> FloatArray:
        model: Any = self._model
        return np.asarray(model.decision_function(matrix) if self._clicks else model.predict(matrix))

    def learn(self, receipts: Sequence[Any], rewards: FloatArray) -> None:
        from sklearn.linear_model import LogisticRegression, Ridge

        self._rows += receipts
        self._rewards += rewards.tolist()
        if len(self._rows) < self._next or len(set(self._rewards)) < 2:
            return
        self._next = int(1.5 * len(self._rows))
        users, arms, ids = zip(*self._rows, strict=True)
        self._features = self._declared.learn(list(users), list(arms) if self._arms else None)
        self._ids = {arm: i for i, arm in enumerate(dict.fromkeys(ids))}
        model = LogisticRegression(C=1.0, max_iter=300) if self._clicks else Ridge(alpha=1.0)
        self._model = model.fit(self._matrix(self._rows), self._rewards)


def score(product: Product, make: Callable[[Block], Contender], *, seed: int, rounds: int) -> float:
    """The share of the possible gain over uniform choice that a contender makes."""
    random = np.random.default_rng([seed, 1])
    earned = possible = uniform = 0.0
    waiting: deque[tuple[Sequence[Any], FloatArray]] = deque()
    contender: Contender | None = None
    for block in product.blocks(np.random.default_rng([seed, 0]), rounds // BLOCK):
        contender = make(block) if contender is None else contender
        by_hand = isinstance(contender, Ours) and contender.by_hand
        users, arms = (block.hand_users, block.hand_arms) if by_hand else (block.users, block.arms)
        picks, receipts = contender.choose(users, arms)
        means = block.means[np.arange(BLOCK), picks]
        draws = random.random(BLOCK), random.standard_normal(BLOCK)
        rewards = (draws[0] < means).astype(float) if product.clicks else means + product.noise * draws[1]
        waiting.append((receipts, rewards))
        if len(waiting) > product.late:
            contender.learn(*waiting.popleft())
        earned += means.sum()
        possible += block.means.max(axis=1).sum()
        uniform += block.means.mean(axis=1).sum()
    return (earned - uniform) / (possible - uniform)


def contenders(product: Product, seed: int) -> dict[str, Callable[[Block], Contender]]:
    """All contenders by name."""

    return {
        "default": lambda block: Ours(block, False, product, seed),
        "by hand": lambda block: Ours(block, True, product, seed),
        "logistic": lambda block: Logistic(block, product, seed),
    }


def main() -> None:
    """Play the products and print a score for every contender."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__)
    parser.add_argument("--products", help="names, separated by semicolons (default: all)")
    parser.add_argument("--contenders", default="default,by hand,logistic")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10_000)
    given = parser.parse_args()
    names = given.products.split(";") if given.products else [product.name for product in PRODUCTS]
    for product in PRODUCTS:
        if product.name not in names:
            continue
        for name in given.contenders.split(","):
            for seed in range(given.seed, given.seed + given.runs):
                begun = time.perf_counter()
                result = score(product, contenders(product, seed)[name], seed=seed, rounds=given.rounds)
                row: dict[str, Any] = {"product": product.name, "contender": name, "seed": seed, "rounds": given.rounds}
                row |= {"score": round(result, 4), "seconds": round(time.perf_counter() - begun, 1)}
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
