"""Named features: x and z by hand, names, tables of every kind, policies that carry them, and mistakes."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import Category, Features, HyIDS, HyLinUCB, Number, load
from hybandits.features import MAPS, FeatureMap

USER = {"age": 31.0, "land": "de"}
ARMS = [{"price": 2.0, "topic": "news"}, {"price": 3, "topic": "sport"}, {"price": 5.0, "topic": "film"}]
U = [1.0, 31.0, 1.0, 0.0, 0.0]
V = [[1.0, 2.0, 1.0, 0.0, 0.0], [1.0, 3.0, 0.0, 1.0, 0.0], [1.0, 5.0, 0.0, 0.0, 1.0]]


def declared(**settings: Any) -> Features:
    """Features with a map of the literature, for which numbers are taken as they are."""
    user = {"age": "number", "land": ["de", "fr"]}
    return Features(user=user, arm={"price": "number", "topic": ["news", "sport"]}, **{"map": "das", **settings})


@pytest.mark.parametrize("name", MAPS)
def test_x_and_z_are_those_of_the_map(name: str) -> None:
    features = declared(map=name)
    full = FeatureMap(name, 5, 5)
    assert (features.d1, features.d2) == (full.d1, full.d2) == (len(features.names_x), len(features.names_z))
    for array, expected in zip(features(USER, ARMS), full(U, V), strict=True):
        assert_array_equal(array, expected)
        assert array.flags.carray
    for array, expected in zip(features.rows([USER] * 3, ARMS), full(U, V), strict=True):
        assert_array_equal(array, expected)
        assert array.flags.carray


def test_arms_without_features_learn_from_the_user() -> None:
    features = Features(user={"age": "number"}, map="li")
    for arms in (["a", "b"], 2, range(2), [{"any": 1}, {"any": 2}]):
        x, z = features({"age": 3}, arms)
        assert x.tolist() == z.tolist() == [[1.0, 3.0], [1.0, 3.0]]
    for odd in ("ab", None, True):
        with pytest.raises(TypeError, match="arms must be a list or a number of arms"):
            features({"age": 3}, odd)
    with pytest.raises(ValueError, match=r'map "das" needs features of the arms.*or use map="li"'):
        Features(user={"age": "number"}, map="das")


def test_users_without_features() -> None:
    features = Features(arm={"price": "number"}, map="das")
    x, z = features(None, [{"price": 2}, {"price": 4}])
    assert x.tolist() == z.tolist() == [[1.0, 2.0], [1.0, 4.0]]
    assert_array_equal(features.rows(None, [{"price": 2}])[0], x[:1])


def test_without_the_constant() -> None:
    features = declared(constant=False)
    x, z = features(USER, ARMS)
    for array, expected in zip((x, z), FeatureMap("das", 4, 4)(U[1:], np.array(V)[:, 1:]), strict=True):
        assert_array_equal(array, expected)
    with pytest.raises(ValueError, match='map "li" needs arm features: name some, or leave'):
        Features(user={"age": "number"}, map="li", constant=False)


@pytest.mark.parametrize("arm", [None, {"price": "number"}])
def test_lazy_frames_are_refused(arm: dict[str, str] | None) -> None:
    frame = polars.DataFrame({"age": [31], "price": [1.0]}).lazy()
    features = Features(user={"age": "number"}, arm=arm, map="li")
    for attempt in (features.user_vector, features.arm_vectors, lambda data: features.rows(data, data)):
        with pytest.raises(
            TypeError, match=r"is <LazyFrame .*: call collect|must be a list or a number of arms, got <Lazy"
        ):
            attempt(frame)


def test_missing_values_of_frames() -> None:
    users = pandas.DataFrame(
        {
            "age": pandas.array([30, None, 34], dtype="Int64"),
            "visits": [1.0, np.nan, 2.0],
            "land": pandas.Categorical(["de", None, "fr"]),
            "code": [1.0, np.nan, 7.0],
        }
    )
    features = Features(
        user={
            "age": Number(missing=32.0),
            "visits": Number(missing="column"),
            "land": Category(values=["de", "fr"], missing="column"),
            "code": Category(values=[1, 7], missing="zero", unknown="zero"),
        },
        map="li",
    )
    assert [name.removeprefix("user.") for name in features.names_z] == [
        "constant", "age", "visits", "visits=missing", "land=de", "land=fr", "land=other", "land=missing", "code=1",
        "code=7",
    ]  # fmt: skip
    _, z = features.rows(users, range(3))
    assert z[1].tolist() == [1, 32, 0, 1, 0, 0, 0, 1, 0, 0]
    assert_array_equal(features(users.iloc[1], 1)[1][0], z[1])


def test_vectors_may_be_kept() -> None:
    features = declared()
    u, v = features.user_vector(USER), features.arm_vectors(ARMS)
    assert u.tolist() == U
    assert v.tolist() == V
    assert features.arm_vectors(v) is v
    expected = np.hstack(features(USER, ARMS))
    assert_array_equal(np.hstack(features(u, v)), expected)
    assert_array_equal(np.hstack(features(u.astype(np.float32), np.asfortranarray(v))), expected)
    assert_array_equal(features.arm_vectors({"a": ARMS[0], "b": ARMS[1]}), v[:2])
    with pytest.raises(ValueError, match=r"arms has 2 columns, expected 5 .*one row for each"):
        features(u, np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"users has 2 columns, expected 5 .*one row for each"):
        features(np.ones(2), v)


@pytest.mark.parametrize("settings", [{}, {"map": "li"}, {"constant": False}])
def test_features_survive_json(settings: dict[str, Any]) -> None:
    features = declared(**settings)
    again = Features.from_dict(json.loads(json.dumps(features.to_dict(), sort_keys=True)))
    assert again.to_dict() == features.to_dict()
    assert (again.names_x, again.names_z) == (features.names_x, features.names_z)
    assert_array_equal(np.hstack(again(USER, ARMS)), np.hstack(features(USER, ARMS)))


def test_what_is_not_features_is_refused() -> None:
    plain = declared().to_dict()
    for odd in ({}, {**plain, "map": "dsa"}, {**plain, "user": [{"name": "age", "kind": "text"}]}, {**plain, "arm": 3}):
        with pytest.raises(ValueError, match=r"these are not features as to_dict\(\) returns them"):
            Features.from_dict(odd)


def test_a_policy_carries_its_features(tmp_path: Path) -> None:
    features = declared(pair=KINDS)
    policy = HyIDS(d1=features.d1, d2=features.d2, seed=0)
    policy.notes["author"] = "me"
    features.attach(policy)
    assert policy.notes["pair"] == ["near", "bought=yes", "bought=no", "bought=other"]
    x, z = features(USER, ARMS, PAIRS)
    choice = policy.choose(x, z, ["a", "b", "c"])
    policy.learn(choice.arm, x[choice.index], z[choice.index], 1.0)
    policy.save(tmp_path / "policy.npz")
    loaded = load(tmp_path / "policy.npz")
    assert loaded.notes["author"] == "me"
    again = Features.of(loaded)
    assert again.to_dict() == features.to_dict()
    assert len(loaded.theta) == len(again.names_x)
    assert len(loaded.beta(choice.arm)) == len(again.names_z)


def test_features_and_policies_that_do_not_fit_are_refused() -> None:
    features = declared()
    other = HyLinUCB(d1=3, d2=5)
    with pytest.raises(
        ValueError, match=r"the features have d1=25, d2=5, but the policy has d1=3, d2=5: construct it as HyLinUCB\(d1="
    ):
        features.attach(other)
    assert other.notes == {}
    with pytest.raises(ValueError, match=r"the HyLinUCB carries no features: call features.attach\(policy\) before"):
        Features.of(other)
    policy = HyLinUCB(d1=25, d2=5)
    features.attach(policy)
    other.notes = policy.notes
    with pytest.raises(ValueError, match="but the policy has d1=3"):
        Features.of(other)


def test_a_policy_fitted_to_a_log_has_the_features_of_the_log() -> None:
    policy = HyLinUCB(d1=6, d2=3)
    policy.notes = {"features": "li", "user": ["constant", "age", "land=fr"], "arm": ["constant", "price"]}
    features = Features.of(policy)
    assert features.names_z == ["constant", "user.age", "user.land=fr"]
    x, z = features({"age": 31, "land=fr": True}, [{"price": 2}])
    assert z.tolist() == [[1.0, 31.0, 1.0]]
    assert x.tolist() == [[1.0, 31.0, 1.0, 2.0, 62.0, 2.0]]
    policy.notes = {"features": "das", "user": ["1", "2"], "arm": ["1", "2", "3"]}
    assert Features.of(policy).names_z == ["arm.1", "arm.2", "arm.3"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"user": ["age"]},
            r'user must be a dict such as \{"age": "number"\}, or rows to infer it from, got \[.age.\]',
        ),
        ({"user": {3: "number"}}, "user must name features by strings, got 3"),
        (
            {"arm": {"price": "float"}},
            "arm feature 'price' is declared as 'float': expected one of number, boolean, category, lab",
        ),
        ({"constant": 1}, "constant must be True or False, got 1"),
        ({"user": {"age=de": "number", "age": ["de"]}}, "two columns of the user features could be called 'age=de'"),
        ({"user": {"constant": "number"}, "map": "li"}, "two columns of the user features are called 'constant'"),
        ({"map": "dsa"}, "features must be one of das, li, shared, disjoint, got 'dsa'"),
    ],
)
def test_wrong_declarations_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Features(**settings)


def test_mistakes_in_calls_get_one_line() -> None:
    features = declared()
    calls: list[tuple[Any, Any, type[Exception], str]] = [
        ({}, ARMS, ValueError, "user has no feature 'age': it has none; pass it"),
        ({"age": 3}, ARMS, ValueError, r"user has no feature 'land': it has \['age'\]; pass it"),
        ({"age": "x", "land": "de"}, ARMS, TypeError, r"user feature 'age' is 'x' \(str\), expected a number"),
        ({"age": None, "land": "de"}, ARMS, ValueError, "user feature 'age' is missing, and there is no rule"),
        (None, ARMS, TypeError, "user is None"),
        (USER, [*ARMS, {"price": 1.0}], ValueError, "arm 3 has no feature 'topic'"),
        (
            USER,
            [{"price": 1, "topic": "news"}, {"price": np.inf, "topic": "news"}],
            ValueError,
            "'price' in row 1 is inf",
        ),
        (USER, "abc", TypeError, "arm is 'abc'"),
    ]
    for user, arms, kind, words in calls:
        with pytest.raises(kind, match=words) as refused:
            features(user, arms)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="there are 2 users and 3 arms: pass one of each per row"):
        features.rows([USER] * 2, ARMS)


# ------------------------------------------------------------------ pair features

PAIRS = [{"near": 0.1, "bought": "yes"}, {"near": 0.2, "bought": "no"}, {"near": 0.3, "bought": "never"}]
P = [[0.1, 1.0, 0.0, 0.0], [0.2, 0.0, 1.0, 0.0], [0.3, 0.0, 0.0, 1.0]]
KINDS = {"near": "number", "bought": ["yes", "no"]}


@pytest.mark.parametrize("name", [base + suffix for base in MAPS for suffix in ("", "+pair", "+pair:z", "+pair:xz")])
def test_pair_features_stand_at_the_end_of_x_or_z(name: str) -> None:
    features = declared(map=name, pair=KINDS)
    full = FeatureMap(name if "+" in name else f"{name}+pair", 5, 5, 4)
    assert features.map == full.name
    assert (features.d1, features.d2) == (full.d1, full.d2) == (len(features.names_x), len(features.names_z))
    names = ["pair.near", "pair.bought=yes", "pair.bought=no", "pair.bought=other"]
    assert (features.names_x[-4:] == names) == ("x" in full.pair_in)
    assert (features.names_z[-4:] == names) == ("z" in full.pair_in)
    for given in (features(USER, ARMS, PAIRS), features.rows([USER] * 3, ARMS, PAIRS)):
        for array, expected in zip(given, full(U, V, P), strict=True):
            assert_array_equal(array, expected)
            assert array.flags.carray
    again = Features.from_dict(json.loads(json.dumps(features.to_dict())))
    assert again.names_x == features.names_x
    assert_array_equal(again(USER, ARMS, PAIRS)[0], features(USER, ARMS, PAIRS)[0])


def test_pairs_of_every_kind() -> None:
    features = declared(pair=KINDS)
    expected = features(USER, ARMS, PAIRS)[0]
    vectors = np.array(P, order="F")
    for pairs in (PAIRS, pandas.DataFrame(PAIRS), polars.DataFrame(PAIRS), vectors, np.array(P)):
        assert_array_equal(features(USER, ARMS, pairs)[0], expected)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (None, "pairs are missing: pass near, bought as a table"),
        (PAIRS[:2], "there are 3 arms and 2 pairs"),
        ([{"near": 1}] * 3, "pair 0 has no feature 'bought'"),
        ([{**pair, "near": None} for pair in PAIRS], "pair feature 'near' in row 0 is missing"),
        (dict(zip("abc", PAIRS, strict=True)), "pairs is a dict: pass a list of dicts or a table in the order of the"),
        (np.ones((3, 3)), "pairs has 3 columns, expected 4"),
    ],
)
def test_pairs_that_cannot_be_used(pairs: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        declared(pair=KINDS)(USER, dict(zip("abc", ARMS, strict=True)), pairs)


def test_pairs_where_there_are_none() -> None:
    with pytest.raises(
        ValueError, match="pairs are given, but there are no pair features: name them in pair, or leave"
    ):
        declared()(USER, ARMS, PAIRS)
    with pytest.raises(ValueError, match=r'map "li\+pair" needs pair features: name them in pair, or use map="li"'):
        Features(user={"age": "number"}, map="li+pair")
    with pytest.raises(ValueError, match=r"'li\+pairs' is not known"):
        Features(user={"age": "number"}, map="li+pairs")


@pytest.mark.parametrize("map_", MAPS)
def test_users_crossed_with_arms_are_what_calls_return(map_: str) -> None:
    features = Features(
        user={"age": "number", "country": Category(values=["de", "fr"])},
        arm={"price": Number(missing=0.5), "size": "number"},
        map=map_,
    )
    users = [{"age": 31, "country": "fr"}, {"age": 2.5, "country": "it"}, {"country": "de", "age": True}]
    arms = [{"price": None, "size": 1}, {"price": 3, "size": 2.5}]
    x, z = features.crossed(users, arms)
    for b, user in enumerate(users):
        wanted = features(user, arms)
        assert_array_equal(x[b], wanted[0])
        assert_array_equal(z[b], wanted[1])
    with pytest.raises(ValueError, match="pair features"):
        Features(pair={"distance": "number"}, map="shared+pair").crossed([], [])


def rows(n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    random = np.random.default_rng(0)
    users = [{"age": float(a), "land": str(c)} for a, c in zip(random.gamma(3, 9, n), random.choice(["de", "fr"], n))]  # noqa: B905
    arms = [{"price": float(p), "new": bool(p > 2)} for p in random.gamma(2, 1, n)]
    return users, arms, [{"km": float(km)} for km in random.random(n)]


def test_the_default_map_and_its_groups() -> None:
    users, arms, pairs = rows(100)
    features = Features(user=users, arm=arms, pair=pairs).learn(users, arms, pairs)
    x, z = features.rows(users, arms, pairs)
    assert x.shape == (100, features.d1) == (100, len(features.names_x))
    assert z.shape == (100, features.d2) == (100, len(features.names_z))
    columns = dict(zip(features.names_x, x.T, strict=True))
    age = (np.array([u["age"] for u in users]) - np.mean([u["age"] for u in users])) / np.std([u["age"] for u in users])
    new = np.array([a["new"] for a in arms]) - np.mean([a["new"] for a in arms])
    assert_allclose(columns["user.age*arm.new"], age * new, atol=1e-12)
    assert_allclose(dict(zip(features.names_z, z.T, strict=True))["user.age"], age, atol=1e-12)
    groups = dict(zip(features.names_x, features.groups[0].tolist(), strict=True))
    assert groups["arm.price~1"] == groups["arm.price~4"] != groups["arm.price"]
    assert groups["user.land=de*arm.price"] == groups["user.land=fr*arm.price"] != groups["user.age*arm.price"]
    assert len(set(features.groups[0].tolist())) == 1 + 3 + 2 + 4, "constant; arms; pairs; products"
    assert len(set(features.groups[1].tolist())) == 1 + 3, "constant; age, its curve, land"
    for i in (0, 7):
        one = features(users[i], arms[i : i + 1], pairs[i : i + 1])
        assert_array_equal(one[0][0], x[i])
        assert_array_equal(one[1][0], z[i])
    policy = HyIDS(d1=features.d1, d2=features.d2, groups=features.groups, seed=0)
    policy.learn_batch(["a"] * 100, x, z, age)
    features({"age": 3.0, "land": "jp"}, arms, pairs)
    features.attach(policy)
    again = Features.of(HyIDS.from_bytes(policy.to_bytes()))
    assert again.to_dict() == features.to_dict()
    assert again.fallbacks == {("user.land", "jp"): 1}
    assert_array_equal(again.rows(users, arms, pairs)[0], x)
    assert again.summary() == features.summary()


def test_a_map_of_ones_own() -> None:
    users, arms, pairs = rows(100)
    given: dict[str, Any] = {"interactions": [("age", "price"), ("pair.km", "land")], "own": ["1", "arm.price"]}
    features = Features(user=users, arm=arms, pair=pairs, curves=False, **given).learn(users, arms, pairs)
    assert features.names_z == ["constant", "arm.price"]
    assert features.names_x == [
        "constant", "arm.price", "arm.new", "pair.km", "user.age", "user.land=fr", "user.land=de", "user.land=other",
        "user.age*arm.price", "user.land=fr*pair.km", "user.land=de*pair.km",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"own names 'age', which is a feature of several sides: write user.age or"):
        Features(user={"age": "number"}, arm={"age": "number"}, own=["age"]).learn()


def test_wide_products_are_hashed_or_left_out_and_said() -> None:
    cities, brands = ([f"{word}{i}" for i in range(200)] for word in "cb")
    wide = Features(
        user={"city": cities}, arm={"brand": brands, "new": Number(missing=0.0, centre=0, scale=1, knots=())}
    )
    assert wide.d1 == 2000
    assert wide.remarks == [
        "user.city*arm.brand is hashed: 40000 products share 1597 columns",
        "user.city is left out of z: d1=2000 leaves 49 of its 201 columns, for arms' blocks of 100000 numbers",
    ]
    assert "note: user.city*arm.brand is hashed" in wide.summary()
    assert wide.d2 == 1
    assert "note" not in Features(user={"city": cities[:9]}, arm={"brand": brands[:9]}).summary()
    x, _ = wide({"city": "c7"}, [{"brand": "b3", "new": 0.0}, {"brand": "b3", "new": 2.0}])
    assert np.abs(x[0]).sum() == 3.0, "the constant, the brand, and a product in a shared column"
    assert x[1, wide.names_x.index("user.city=c7*arm.new")] == 2.0
    small = Features(user={"city": cities}, arm={"brand": brands}, limit=220)
    assert small.remarks[0] == "user.city*arm.brand is left out: its 40000 products exceed limit=220"
    with pytest.raises(ValueError, match="the columns without any products give d1=202, above limit=100: raise it"):
        Features(user={"city": cities}, arm={"brand": brands}, limit=100)


def test_what_must_be_learned_first_is_said() -> None:
    features = Features(user={"age": "number"}, arm={"topic": ["news"]})
    with pytest.raises(ValueError, match=r"user.age is still to be learned: call features = features.learn\(users"):
        features({"age": 3.0}, [{"topic": "news"}])
    assert repr(features) == "Features(user=['age'], arm=['topic']): to be learned"


ROWS = [{"age": 31, "price": 2.5}, {"age": 52, "price": 3}]
TABLES = {
    "dicts": ROWS,
    "by id": {"a17": ROWS[0], 4: ROWS[1]},
    "pandas": pandas.DataFrame(ROWS),
    "rows of pandas": [pandas.DataFrame(ROWS).iloc[i] for i in range(2)],
    "polars": polars.DataFrame(ROWS),
    "pyarrow": pyarrow.table({"age": [31, 52], "price": [2.5, 3.0]}),
    "generator": (row for row in ROWS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind(kind: str) -> None:
    features = Features(user={"age": "number", "price": "number"}, map="li")
    if kind != "generator":
        with pytest.raises(ValueError, match=r"user( 0)? has no feature 'agee' \(did you mean age\?\): it has \["):
            Features(user={"agee": "number"}, map="li").user_vectors(TABLES[kind])
    assert features.user_vectors(TABLES[kind]).tolist() == [[1, 31, 2.5], [1, 52, 3]]
    for rows in (TABLES["pandas"], TABLES["polars"]):
        assert features.user_vector(rows[:1]).tolist() == [1, 31, 2.5]
        with pytest.raises(
            ValueError, match=r"user has 2 rows, expected one: pass one user, or use rows\(users, arms\)"
        ):
            features(rows, 2)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("de", "user is 'de'"),
        (3, r"user is 3 \(int\): pass a DataFrame or a list of dicts"),
        (None, "user is None"),
        ([ROWS[0], 7], "user 1 is 7"),
        ([[31, 2.5]], "user is .* pass a dict"),
        ({"age": [31, 52]}, "user is {'age': .31, 52.} .dict.: pass a DataFrame or a list of dicts"),
        (polars.DataFrame({"age": [datetime.date(2020, 1, 1)]}), "user feature 'age' holds times"),
        (pandas.DataFrame({"age": pandas.to_datetime(["2026-01-01"])}), "user feature 'age' holds times"),
    ],
)
def test_odd_tables_are_refused(table: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Features(user={"age": "number"}, map="li").user_vectors(table)
