"""Bandit: rounds from named columns, maps learned from the first rows, files, threads, and mistakes."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.testing import assert_array_equal

from hybandits import Bandit, Boolean, Category, FileError, Labels, Number, Policy, Vector, load

ARTICLES = {
    "a17": {"price": 2.5, "topic": "news"},
    "b4": {"price": 1.0, "topic": "sport"},
    "c8": {"price": 4.0, "topic": "film"},
}
DECLARED: dict[str, Any] = {
    "user": {"age": "number", "country": "category"},
    "arm": {"price": "number", "topic": "category"},
}


def users(n: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [
        {"age": float(age), "country": str(country)}
        for age, country in zip(random.gamma(3, 10, n), random.choice(["de", "fr", "it"], n), strict=True)
    ]


def taught(n: int, **settings: Any) -> Bandit:
    """A bandit that has chosen and learned n times."""
    bandit = Bandit(**{**DECLARED, "first_rows": 40, "seed": 1, **settings})
    for i, user in enumerate(users(n)):
        choice = bandit.choose(user, ARTICLES)
        bandit.learn(choice.receipt, reward=float(i % 3 == 0) + (choice.arm == "b4"))
    return bandit


def assert_same(first: Bandit, second: Bandit) -> None:
    """The same map and the same model, to the bit."""
    assert first.features.to_dict() == second.features.to_dict()
    assert first.rounds == second.rounds
    assert_array_equal(first.policy.theta, second.policy.theta)
    for user in users(3, seed=9):
        one, two = (bandit.predict(user, ARTICLES) for bandit in (first, second))
        assert_array_equal(one.mean, two.mean)
        assert_array_equal(one.width, two.width)


@pytest.mark.parametrize("n", [1, 3, 4, 30, 40, 55])
def test_a_batch_is_learned_as_row_by_row(n: int) -> None:
    rows = users(n)
    arms = [list(ARTICLES)[i % 3] for i in range(n)]
    rewards = np.sin(np.arange(n)) + 1.0
    columns = [ARTICLES[arm] for arm in arms]
    single, batch, halves = (Bandit(**DECLARED, first_rows=40, seed=0) for _ in range(3))
    for arm, user, reward, each in zip(arms, rows, rewards, columns, strict=True):
        single.learn(arm, user, reward, columns=each)
    batch.learn_batch(arms, rows, rewards, columns=columns)
    for part in (slice(0, n // 2), slice(n // 2, n)):
        halves.learn_batch(arms[part], rows[part], rewards[part], columns=columns[part])
    assert single.fixed is batch.fixed is (n >= 40)
    assert_same(single, batch)
    assert_same(single, halves)


def test_the_policy_is_one_that_had_the_present_map_from_the_start() -> None:
    bandit = taught(40)
    rows, n = users(40), 40
    again = taught(0)
    arms = [taught(i).choose(rows[i], ARTICLES).arm for i in (0, 5)]
    assert len(arms) == 2
    features = bandit.features
    replayed = Bandit(**DECLARED, first_rows=40, seed=1)
    chosen = [replayed_choice(replayed, user, i) for i, user in enumerate(rows)]
    x, z = features.rows(rows, [ARTICLES[arm] for arm, _ in chosen])
    policy = again._policy_for(features)
    policy.learn_batch([arm for arm, _ in chosen], x, z, [reward for _, reward in chosen])
    assert_array_equal(policy.theta, bandit.policy.theta)
    assert bandit.fixed
    assert policy.rounds == n


def replayed_choice(bandit: Bandit, user: dict[str, Any], i: int) -> tuple[str, float]:
    choice = bandit.choose(user, ARTICLES)
    reward = float(i % 3 == 0) + (choice.arm == "b4")
    bandit.learn(choice.receipt, reward=reward)
    return str(choice.arm), reward


TABLES: dict[str, Any] = {
    "dicts": [{"id": arm, **each} for arm, each in ARTICLES.items()],
    "pandas": pandas.DataFrame([{"id": arm, **each} for arm, each in ARTICLES.items()]),
    "polars": polars.DataFrame([{"id": arm, **each} for arm, each in ARTICLES.items()]),
    "pyarrow": pyarrow.Table.from_pylist([{"id": arm, **each} for arm, each in ARTICLES.items()]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_arms_from_tables_of_every_kind(kind: str) -> None:
    bandit, user = taught(50), users(1, seed=3)[0]
    wanted = bandit.choose(user, ARTICLES, key=7)
    assert bandit.choose(user, TABLES[kind], key=7) == wanted
    assert bandit.choose(pandas.Series(user), TABLES[kind], key=7) == wanted
    assert bandit.choose(polars.DataFrame([user]), TABLES[kind], key=7) == wanted
    bandit.put_arms(TABLES[kind])
    assert bandit.choose(user, key=7) == bandit.choose(user, list(ARTICLES), key=7) == wanted
    assert bandit.arms == ARTICLES
    assert not bandit.features.fallbacks  # the column of ids is known
    inferred = Bandit(user=pandas.DataFrame(users(5)), arm=TABLES[kind])
    assert inferred.features.user.keys() == {"age", "country"}
    assert inferred.features.arm.keys() == {"price", "topic"}


def test_receipts_are_plain_and_survive_json() -> None:
    bandit = taught(3)
    user = {"age": np.float32(31), "country": np.str_("de")}
    choice = bandit.choose(user, TABLES["polars"])
    receipt = json.loads(json.dumps(choice.receipt))
    other = bandit.copy()
    with pytest.raises(TypeError, match=r"got None .* pass a float, as in reward=1.0"):
        bandit.learn(receipt, 1.0)
    bandit.learn(choice, reward=1)
    other.learn(receipt, reward=1)
    assert_same(bandit, other)


def test_choosing_in_a_batch_and_ranking() -> None:
    one, many = taught(50), taught(50)
    rows = users(6, seed=5)
    choices = many.choose_batch(pandas.DataFrame(rows), ARTICLES)
    singles = [one.choose(user, ARTICLES) for user in rows]
    assert choices.arms == [choice.arm for choice in singles]
    assert choices.receipts == [choice.receipt for choice in singles]
    many.learn_batch(choices.receipts, rewards=np.ones(6))
    one.learn_batch([choice.receipt for choice in singles], rewards=np.ones(6))
    assert_same(one, many)
    ranking = one.rank(rows[0], ARTICLES, 2, key="k")
    assert ranking.arms[0] == one.choose(rows[0], ARTICLES, key="k").arm
    assert ranking.receipts[1]["arm"] == ranking.arms[1]
    randomized = one.choose(rows[0], ARTICLES, randomize=True, floor=0.3)
    assert randomized.propensity is not None
    assert randomized.propensity >= 0.1
    assert one.propensities(rows[0], ARTICLES).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [0, 10, 50])
def test_a_loaded_bandit_goes_on_as_the_saved_one(tmp_path: Path, n: int) -> None:
    bandit = taught(n, strict=n == 50)
    bandit.put_arms(ARTICLES)
    bandit.save(tmp_path / "bandit.npz")
    loaded = load(tmp_path / "bandit.npz")
    other = load(tmp_path / "bandit.npz", seed=5)
    again = bandit.copy()
    again.reseed(5)
    assert other.to_bytes() == again.to_bytes()
    for each in (bandit, loaded):
        for user in users(60, seed=4):
            each.learn(each.choose(user).receipt, reward=1.5)
    assert_same(bandit, loaded)
    assert loaded.choose(users(1)[0]) == bandit.choose(users(1)[0])


def test_files_that_are_no_bandits(tmp_path: Path) -> None:
    bandit = taught(5)
    bandit.policy.save(tmp_path / "policy.npz")
    with pytest.raises(FileError, match="holds a HyIDS, not a Bandit"):
        Bandit.load(tmp_path / "policy.npz")
    bandit.save(tmp_path / "bandit.npz")
    with pytest.raises(FileError, match=r"holds a Bandit, which is no policy by itself: use hybandits\.load"):
        Policy.load(tmp_path / "bandit.npz")
    with pytest.raises(FileError, match="truncated, corrupt"):
        Bandit.from_bytes(bandit.to_bytes()[:-30])


def test_a_key_changes_nothing() -> None:
    bandit = taught(50)
    before = bandit.to_bytes()
    for _ in range(2):
        bandit.choose({"age": 3.0, "country": "atlantis"}, ARTICLES, key="event")
    bandit.predict({"age": 3.0, "country": "atlantis"}, {"new": {"price": 1, "topic": "x"}})
    assert bandit.to_bytes() == before
    bandit.choose({"age": 3.0, "country": "atlantis"}, ARTICLES)
    assert bandit.features.fallbacks == {("user.country", "atlantis"): 1}
    assert bandit.to_bytes() != before


@pytest.mark.parametrize("n", [0, 1, 10, 50])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"user": {"country": "de"}}, "user has no feature 'age': it has .*; pass it"),
        ({"user": {"age": np.inf, "country": "de"}}, "user feature 'age' is inf: pass a finite number"),
        ({"user": {"age": "31", "country": "de"}}, r"user feature 'age' is '31' \(str\), expected a number"),
        ({"user": {"age": 31, "country": 1.5}}, "user feature 'country' is 1.5 .* expected a category"),
        ({"user": None}, "users are missing: pass age, country"),
        ({"arms": {}}, "there are no arms: pass at least one"),
        ({"arms": None}, "there are no arms: pass them, or put_arms"),
        ({"arms": ["a17"]}, "arm 'a17' was not put: pass its columns"),
        ({"arms": {"a": {"price": 1.0}}}, "arm has no feature 'topic'"),
        ({"arms": [{"price": 1.0, "topic": "x"}]}, "arm has no feature 'id': .*; ids are read from this column"),
        ({"arms": "a17"}, "arms is 'a17': pass a mapping"),
        ({"arms": {None: ARTICLES["a17"]}}, "arm is None"),
        ({"pairs": [{"km": 1}]}, "pairs are given, but there are no pair features"),
    ],
)
def test_refused_rounds_change_nothing(n: int, wrong: dict[str, Any], message: str) -> None:
    bandit = taught(n)
    before = bandit.to_bytes()
    with pytest.raises((TypeError, ValueError), match=message):
        bandit.choose(**{"user": {"age": 31.0, "country": "de"}, "arms": ARTICLES, **wrong})
    assert bandit.to_bytes() == before


@pytest.mark.parametrize("n", [0, 3, 39, 50])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a17", {"age": 3, "country": "de"}, 1.0), "arm 'a17' was not put"),
        (("a17", {"age": 3, "country": "de"}, float("nan")), "reward is nan"),
        (("a17", {"age": 3, "country": "de"}), "reward must be a number, got None"),
        (({"arm": "a17"}, None, 1.0), "the receipt has no 'user'"),
        ((["a17"], {"age": 3, "country": "de"}, 1.0), "was not put|hashable|cannot be saved"),
    ],
)
def test_refused_rewards_change_nothing(n: int, arguments: Any, message: str) -> None:
    bandit = taught(n)
    before = bandit.to_bytes()
    with pytest.raises((TypeError, ValueError), match=message):
        bandit.learn(*arguments)
    rows = [{"age": 3.0, "country": "de"}, {"age": 3.0, "country": 4}, {"age": 4.0, "country": "fr"}]
    with pytest.raises((TypeError, ValueError), match=r"country' (is both|in row 1 is 4 \(int\))"):
        bandit.learn_batch(["a17", "b4", "a17"], rows, [1.0, 0.0, 1.0], columns=[ARTICLES["a17"]] * 3)
    assert bandit.to_bytes() == before


def test_a_forgotten_arm_stays_forgotten_when_the_map_is_learned_again() -> None:
    bandit = taught(39)
    bandit.put_arms(ARTICLES)
    bandit.forget("b4")
    assert "b4" not in bandit.arms
    assert "b4" not in bandit.policy.arms
    bandit.learn("a17", users(1)[0], 0.0)
    assert bandit.fixed
    assert "b4" not in bandit.policy.arms
    assert_array_equal(bandit.policy.beta("a17") == bandit.policy.theta[0], False)
    with pytest.raises(KeyError, match="arm 'b4' is not known"):
        bandit.forget("b4")


@pytest.mark.parametrize(
    "policy",
    [
        "HyThompson:memory=500",
        "HyLinUCB:noise=0.5",
        "HyIDS:noise=0.5,scale=0.5",
        'EpsilonGreedy:policy="HyIDS",epsilon=0.1',
    ],
)
def test_policies_of_all_kinds(policy: str) -> None:
    bandit = taught(45, policy=policy, first_rows=40)
    assert bandit.fixed
    inner: Any = getattr(bandit.policy, "policy", bandit.policy)
    if policy.startswith("Eps"):
        assert inner.groups is not None
    assert bandit.copy().choose(users(1)[0], ARTICLES, key=1) == bandit.choose(users(1)[0], ARTICLES, key=1)


def test_policies_without_evidence_keep_the_columns_of_users_in_z() -> None:
    bandit = Bandit(user={"a": "number"}, policy="HyLinUCB:noise=0.5", first_rows=30, seed=0)
    bandit.learn_batch(["x", "y"] * 20, [{"a": float(i % 7)} for i in range(40)], np.arange(40.0) % 2)
    assert bandit.fixed
    assert "user.a" in bandit.features.names_z


def test_threads_lose_nothing() -> None:
    bandit = Bandit(**DECLARED, first_rows=64, seed=0)
    bandit.put_arms(ARTICLES)

    def work(seed: int) -> None:
        for user in users(40, seed):
            bandit.learn(bandit.choose(user).receipt, reward=user["age"])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.rounds == 160
    assert bandit.fixed


def test_nothing_is_learned_again_where_all_is_declared() -> None:
    number = Number(missing=0.0, centre=1.0, scale=2.0, knots=())
    bandit = Bandit(user={"age": number}, arm={"topic": Category(values=["news"], missing="other")}, seed=0)
    assert bandit.fixed
    policy = bandit.policy
    bandit.learn("a", {"age": 3.0}, 1.0, columns={"topic": "news"})
    assert bandit.policy is policy
    assert bandit.features.names_z == ["constant", "user.age"]


def test_every_kind_of_column() -> None:
    """Booleans, labels, vectors, pairs, missing values: nothing is lost without a count."""
    bandit = Bandit(
        user={"member": "boolean", "likes": "labels", "taste": "vector"},
        arm={"new": Boolean(), "tags": Labels(), "look": Vector()},
        pair={"km": "number"},
        first_rows=30,
        seed=0,
    )
    random = np.random.default_rng(0)
    arms = {f"a{i}": {"new": i % 2 == 0, "tags": ["x", "y"][: i % 3], "look": random.random(3)} for i in range(4)}
    for i in range(160):
        user = {
            "member": bool(i % 2),
            "likes": {"x"} if i % 3 else None,
            "taste": random.random(2).tolist() if i % 4 else None,
        }
        choice = bandit.choose(user, arms, [{"km": float(km)} for km in random.random(4)])
        bandit.learn(choice.receipt, reward=float(choice.index))
    assert bandit.fixed
    assert "user.likes=missing" in bandit.features.names_x
    assert "user.taste[1]*arm.look[2]" in bandit.features.names_x
    assert "pair.km" in bandit.features.names_x
    assert bandit.features.fallbacks["user.taste", "missing"] >= 40
    again = bandit.copy()
    pairs = [{"km": float(km)} for km in range(4)]
    assert_array_equal(again.predict(user, arms, pairs).mean, bandit.predict(user, arms, pairs).mean)


def test_what_is_not_declared_is_counted_or_refused() -> None:
    bandit = taught(50)
    user = {"age": 3.0, "country": "de", "shoe": 44}
    bandit.choose(user, ARTICLES)
    assert bandit.features.fallbacks == {("user.shoe", "(column not declared)"): 1}
    with pytest.raises(ValueError, match="user column 'shoe' is not declared, and strict=True"):
        taught(50, strict=True).choose(user, ARTICLES)


def test_a_value_that_falls_back_is_counted_once() -> None:
    bandit, user = taught(50), {"age": 3.0, "country": "atlantis"}
    fallbacks = bandit.features.fallbacks
    bandit.learn(bandit.choose(user, ARTICLES).receipt, reward=1.0)
    assert fallbacks == {("user.country", "atlantis"): 1}
    bandit.learn_batch(bandit.choose_batch([user] * 2, ARTICLES).receipts, rewards=[1.0, 0.0])
    bandit.learn(bandit.rank(user, ARTICLES, 2).receipts[1], reward=1.0)
    assert fallbacks == {("user.country", "atlantis"): 4}
    bandit.learn("a17", user, 1.0, columns=ARTICLES["a17"])
    with_a_key = bandit.choose(user, ARTICLES, key=1).receipt
    assert fallbacks == {("user.country", "atlantis"): 5}, "a key counts nothing"
    bandit.learn_batch([with_a_key, bandit.choose(user, ARTICLES).receipt], rewards=[1.0, 1.0])
    assert fallbacks == {("user.country", "atlantis"): 7}


@pytest.mark.parametrize(("levels", "arms", "fixed"), [(25, 2, True), (18, 60, True), (12, 60, False)])
def test_wide_maps_are_fixed_with_the_first_rows_and_not_compared(levels: int, arms: int, fixed: bool) -> None:
    names = [f"l{i}" for i in range(levels)]
    rows = [{"city": names[i % levels], "age": float(i // 2 % 5)} for i in range(80)]
    columns = [{"brand": names[(i + i // levels) % levels]} for i in range(80)]
    bandit = Bandit(user={"city": names, "age": "number"}, arm={"brand": "category"}, first_rows=80, seed=0)
    rewards = [row["age"] if i % 2 else -row["age"] for i, row in enumerate(rows)]  # each arm suits other users
    bandit.learn_batch([i % arms for i in range(80)], rows, rewards, columns=columns)
    assert bandit.fixed is fixed
    assert bandit.features.names_z == ["constant"]


def test_constant_and_repeated_columns_are_noticed_once() -> None:
    declared = {"age": "number", "months": "number", "planet": "category"}
    bandit = Bandit(user=declared, arm={"price": "number"}, first_rows=30, seed=0)
    rows = [{"age": u["age"], "months": 12 * u["age"], "planet": "earth"} for u in users(40)]
    rewards = [float(i % 2) for i in range(40)]
    columns = [{"price": float(i % 5)} for i in range(40)]
    with pytest.warns(UserWarning, match="user.months is the same as user.age; user.planet is always 'earth'") as seen:
        bandit.learn_batch(["a"] * 40, rows, rewards, columns=columns)
    assert len(seen) == 1
    bandit.learn_batch(["a"] * 40, rows, rewards, columns=columns)
    assert not [name for name in bandit.features.names_x if "months" in name or ("planet" in name and "*" in name)]
    assert "user.months" not in bandit.features.names_z
    assert "note: user.months is the same as user.age" in bandit.features.summary()


def played(arms: int, rows: int, sizes: float, rate: float | None = None, seed: int = 0) -> Bandit:
    """A bandit taught on arms of which each suits other users (by `sizes`), normal rewards or clicks."""
    random = np.random.default_rng(seed)
    own = sizes * random.standard_normal(arms)
    bandit = Bandit(user={"a": "number"}, arm={"v": "number"}, first_rows=250, seed=0)
    a, arm = random.standard_normal(rows), random.integers(arms, size=rows)
    means = own[arm] * a
    rewards = means + random.standard_normal(rows)
    if rate is not None:
        rewards = (random.random(rows) < rate).astype(float)
    columns = [{"v": float(np.sin(i))} for i in arm.tolist()]
    bandit.learn_batch([f"a{i}" for i in arm], [{"a": each} for each in a.tolist()], rewards, columns=columns)
    return bandit


def test_the_columns_of_users_stand_in_z_where_arms_have_rewards_enough_and_the_evidence_is_for_it() -> None:
    few = played(6, 250, 1.0)
    assert few.fixed
    assert few.features.names_z == ["constant", "user.a", "user.a~1", "user.a~2", "user.a~3", "user.a~4"]
    alike = played(6, 250, 0.0)
    assert alike.fixed
    assert alike.features.names_z == ["constant"]
    assert "user.a" in alike.features.names_x
    many, rare = played(60, 250, 1.5), played(20, 250, 1.0, rate=0.02)
    for bandit in (many, rare):
        assert not bandit.fixed
        assert bandit.features.names_z == ["constant"]
    later = played(60, 1300, 1.5)
    assert later.fixed
    assert "user.a" in later.features.names_z


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "HyRan"}, "HyRan needs all candidates"),
        ({"policy": "HyIDDS"}, "unknown policy 'HyIDDS'"),
        ({"first_rows": 0}, "first_rows must be at least 1"),
        ({"interactions": [("age",)]}, "interactions must be pairs of names"),
        ({"interactions": [("age", "country")]}, "name one feature of the user and one of an arm"),
        ({"own": ["agee"]}, r"own names 'agee' \(did you mean age\?\)"),
        ({"limit": 1}, "above limit=1: raise it"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bandit(**DECLARED, **settings)
