"""A fitted policy says what it was fitted to, and is not mistaken for another."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from hybandits import Features, Greedy, load
from hybandits.evaluation.targets import (
    check_fitted,
    common_features,
    note_fit,
    rounds_learned,
)
from hybandits.evaluation.view import View
from hybandits.features import Category, Number
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.report import ReadReport
from hybandits.logs.store import convert
from tests.support.loglike import little_log


def fitted(view: View, rounds: int = 100) -> Greedy:
    policy = Greedy(d1=view.d1, d2=view.d2)
    note_fit(policy, view, rounds)
    return policy


@pytest.mark.parametrize("features", ["das+pair", "li+pair:xz", "das"])
def test_a_policy_fitted_to_pair_features_takes_them_by_name(tmp_path: Path, features: str) -> None:
    text = "item,clicked,shown,age,price_hat,price_shoe,near_hat,near_shoe\n"
    text += "shoe,1,hat|shoe,31,2,3,0.1,0.2\nhat,0,shoe|hat,52,5,4,0.3,0.4\nhat,1,hat,7,6,,0.5,\n"
    (tmp_path / "shop.csv").write_text(text)
    (tmp_path / "items.csv").write_text("item,size\nhat,1\nshoe,2.5\n")
    mapping = Mapping(
        arm="item", reward="clicked", candidates="shown", user=["age"], arms_file=tmp_path / "items.csv",
        pair={"price": "price_{arm}", "near": "near_{arm}"},
    )  # fmt: skip
    reader = ColumnsReader(tmp_path / "shop.csv", mapping=mapping)
    view = View(convert(reader, tmp_path / "shop", ReadReport()), features=features)
    fitted(view).save(tmp_path / "policy.npz")
    policy = load(tmp_path / "policy.npz")
    check_fitted({"it": policy}, view)
    online = Features.of(policy)
    arms = {"shoe": {"size": 2.5}, "hat": {"size": 1}}
    pairs = [{"price": 4, "near": 0.4}, {"price": 5, "near": 0.3}]
    (batch,) = view.log.batches()
    expected = view.map(batch.user[1], view.vectors[[1, 0]], batch.pair[1] if view.map.pair else None)
    given = online({"age": 52}, arms, pairs) if view.map.pair else online({"age": 52}, arms)
    for array, same in zip(given, expected, strict=True):
        assert_array_equal(array, same)
    assert list(online.pair) == (["price", "near"] if view.map.pair else [])
    if view.map.pair:
        assert "pair.near" in online.names_x + online.names_z
        other = View(little_log(tmp_path, pair=2), features=features)
        policy.notes.update(user=other.log.user, arm=other.log.arm)
        with pytest.raises(
            ValueError, match=r"fitted to a log with other pair features \(differing: price, near, p1\)"
        ):
            check_fitted({"it": policy}, other)


def test_policies_with_and_without_pair_features_are_distinguished(tmp_path: Path) -> None:
    log = little_log(tmp_path, pair=1)
    policies = {"with": fitted(View(log)), "without": fitted(View(log, features="das"))}
    assert "pair" not in policies["without"].notes
    assert [policy.notes["features"] for policy in policies.values()] == ["das+pair", "das"]
    assert common_features(policies) is common_features({}) is None
    assert common_features({"with": policies["with"], "unknown": Greedy(d1=2, d2=1)}) == "das+pair"
    for view in (View(log), View(log, features="das")):
        check_fitted(policies, view)  # each is evaluated with the map of its own


ITEMS: dict[str, dict[str, Any]] = {"hat": {"price": 0.3, "size": 2.0}, "shoe": {"price": 1.1, "size": -1.0}}


def shop_rows() -> list[dict[str, Any]]:
    """Users with a number, categories that are text, whole numbers and truth values, and the item shown to each."""
    random = np.random.default_rng(0)
    return [
        {
            "item": ("hat", "shoe")[i % 2],
            "clicked": i % 3 % 2,
            "age": round(float(random.normal()), 3),
            "country": random.choice(["de", "fr", "it", "se"]).item(),
            "segment": int(random.integers(7, 12)),
            "mobile": bool(random.integers(2)),
        }
        for i in range(60)
    ]


def shop_view(folder: Path, kind: str, *, features: str | None, arms_file: bool) -> View:
    rows = shop_rows()
    if kind == "csv":
        with (folder / "shop.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "mobile": int(row["mobile"])} for row in rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), folder / "shop.parquet")
    (folder / "items.csv").write_text("item,price,size\nhat,0.3,2\nshoe,1.1,-1\n")
    mapping = Mapping(
        arm="item",
        reward="clicked",
        user=["country", "age", "segment"],
        categorical=["segment", "country", "mobile"],
        arms_file=folder / "items.csv" if arms_file else None,
        uniform=True,
    )
    reader = ColumnsReader(folder / f"shop.{kind}", mapping=mapping)
    return View(convert(reader, folder / "log", ReadReport()), features=features)


def assert_online_as_in_the_log(view: View, online: Features) -> None:
    """x and z of all candidates of every round, to the bit, from what the rows of the log say by name."""
    users, n = shop_rows(), 0
    for batch in view.log.batches():
        for t in range(batch.rounds):
            entries = slice(view.offsets[batch.pool[t]], view.offsets[batch.pool[t] + 1])
            arms = [ITEMS[str(view.names[a])] for a in view.arm[entries]]
            expected = view.map(batch.user[t], view.vectors[view.vector[entries]])
            for array, own_view in zip(online(users[n], arms), expected, strict=True):
                assert_array_equal(array, own_view)
            n += 1
    assert n == len(users)


@pytest.mark.parametrize(
    ("kind", "features", "arms_file"), [("csv", None, True), ("parquet", "li", True), ("csv", "disjoint", False)]
)
def test_a_policy_fitted_to_a_log_of_ones_own_takes_users_by_name(
    tmp_path: Path, kind: str, features: str | None, arms_file: bool
) -> None:
    view = shop_view(tmp_path, kind, features=features, arms_file=arms_file)
    fitted(view).save(tmp_path / "policy.npz")
    online = Features.of(load(tmp_path / "policy.npz"))
    assert list(online.user) == ["country", "age", "segment", "mobile"]
    assert online.user["age"] == Number(missing="error", centre=0.0, scale=1.0, knots=()), "taken as it is"
    assert_online_as_in_the_log(view, online)
    segment = online.user["segment"]
    assert isinstance(segment, Category)
    assert (segment.base, segment.values) == (10, (11, 7, 8, 9)), "in the order of their names"
    vector = dict(zip(view.log.user, online.user_vector({**shop_rows()[0], "country": "jp"}).tolist(), strict=True))
    assert [vector[name] for name in view.log.user if name.startswith("country=")] == [0.0] * 3
    with pytest.raises(ValueError, match="user feature 'country' is missing, and there is no rule for that"):
        online.user_vector({**shop_rows()[0], "country": None})


def test_named_features_are_noted_as_those_of_a_log_are(tmp_path: Path) -> None:
    view = View(little_log(tmp_path))
    names = {"user": view.log.user, "arm": view.log.arm}
    user, arm = (dict.fromkeys(each, "number") for each in names.values())
    features = Features(user=user, arm=arm, map="das", constant=False)
    policy = Greedy(d1=features.d1, d2=features.d2)
    features.attach(policy)
    assert common_features({"policy": policy}) == "das"
    check_fitted({"policy": policy}, view)
    assert policy.notes.items() >= {"features": "das", **names}.items()
    other = Features(user={"age": "number"}, arm={"price": "number"}, map="das")
    policy = Greedy(d1=other.d1, d2=other.d2)
    other.attach(policy)
    with pytest.raises(ValueError, match="p was fitted to a log with other user features"):
        check_fitted({"p": policy}, view)


def test_notes_are_saved_with_the_policy(tmp_path: Path) -> None:
    view, other = View(little_log(tmp_path), features="li"), View(little_log(tmp_path, "other", seed=1))
    fitted(view, 40).save(tmp_path / "policy.npz")
    loaded = load(tmp_path / "policy.npz")
    assert common_features({"policy": loaded}) == "li"
    assert rounds_learned(loaded, view) == 40
    assert rounds_learned(loaded, other) == 0
    assert rounds_learned(Greedy(d1=view.d1, d2=view.d2), view) == 0


def test_other_columns_are_refused(tmp_path: Path) -> None:
    view = View(little_log(tmp_path))
    check_fitted({"same": fitted(view), "unknown": Greedy(d1=2, d2=1)}, view)
    policy = fitted(view)
    policy.notes["user"] = ["age", *policy.notes["user"][1:]]
    with pytest.raises(ValueError, match=r"p was fitted to a log with other user features \(differing: age, 1\)"):
        check_fitted({"p": policy}, view)
    policy = fitted(view)
    policy.notes["arm"] = policy.notes["arm"][::-1]
    with pytest.raises(ValueError, match=r"other arm features \(in another order\): use such a log"):
        check_fitted({"p": policy}, view)


def test_ids_must_have_the_type_of_the_log(tmp_path: Path) -> None:
    """Otherwise the policy would take every arm for a new one, and its estimate would look well."""
    integers, strings = (View(little_log(tmp_path, kind.__name__, ids=kind)) for kind in (int, str))
    knows_integers, knows_strings, knows_none = (Greedy(d1=1, d2=1) for _ in range(3))
    knows_integers.learn(3, [1.0], [1.0], 1.0)
    knows_strings.learn("3", [1.0], [1.0], 1.0)
    check_fitted({"i": knows_integers, "n": knows_none}, integers)
    check_fitted({"s": knows_strings, "n": knows_none}, strings)
    with pytest.raises(ValueError, match=r"s knows the arms of the log as str \('3'\), the log has 3"):
        check_fitted({"s": knows_strings}, integers)
    with pytest.raises(ValueError, match=r"i knows the arms of the log as int \(3\), the log has '3'"):
        check_fitted({"i": knows_integers}, strings)
