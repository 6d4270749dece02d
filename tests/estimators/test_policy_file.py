"""Policy files: what is saved comes back, and anything else is refused with a clear error."""

from __future__ import annotations

import importlib
import json
import math
import pickle
import sys
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import hybandits
from hybandits import (
    AsWritten,
    EpsilonGreedy,
    FileError,
    Greedy,
    HyLinUCB,
    HyRan,
    Policy,
    SelfNormalised,
)
from hybandits.estimators import policy_file
from hybandits.estimators.exploration import Exploration
from hybandits.foundation import checks
from hybandits.policies.by_name import import_class
from tests.support.own_classes import write_softmax


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    policy = HyLinUCB(d1=2, d2=1, noise=0.1, seed=0)
    policy.learn("a", [1.0, 2.0], [3.0], 1.0)
    policy.choose([[1.0, 2.0]], [[3.0]], [("page", 3)])
    path = tmp_path / "news.npz"
    policy.save(path)
    return path


def rewrite(path: Path, change: Any) -> None:
    """Change the file's header (a dict) or arrays, as a corruption that keeps the container whole."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    header = json.loads(arrays["header"].tobytes())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(saved: Path, keep: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(FileError, match=r"news\.npz is truncated, corrupt or not a file written by hybandits"):
        HyLinUCB.load(saved)


@pytest.mark.slow
def test_every_flipped_byte_is_noticed_or_harmless(saved: Path) -> None:
    content = saved.read_bytes()
    original = HyLinUCB.load(saved)
    for position in range(0, len(content), 7):
        spoiled = bytearray(content)
        spoiled[position] ^= 0xFF
        saved.write_bytes(bytes(spoiled))
        try:
            loaded = HyLinUCB.load(saved)
        except FileError:
            continue
        assert (loaded.theta == original.theta).all(), f"byte {position} changed the policy and nobody noticed"


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"\x80\x04K\x01.", pickle.dumps({"header": 1}), b"PK\x03\x04 not really"],
    ids=["empty", "text", "pickle", "pickled dict", "zip start"],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"foreign\.npz is"):
        hybandits.load(path)


def test_somebody_elses_npz_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(FileError, match="not a file written by hybandits"):
        hybandits.load(tmp_path / "other.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(FileError, match="not a file written by"):
        hybandits.load(tmp_path / "one.npy")
    np.savez(tmp_path / "objects.npz", header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(FileError, match="truncated, corrupt or not a file"):
        hybandits.load(tmp_path / "objects.npz")


def test_missing_files_and_folders(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        hybandits.load(tmp_path / "nowhere.npz")
    policy = hybandits.load(saved)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        policy.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        policy.save(tmp_path / "no" / "such" / "p.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=99), "format version 99"),
        (lambda h, a: h.update({"class": []}), "has not been imported"),
        (lambda h, a: h["parts"]["estimator"].update(d1=10**7), "corrupt"),
        (lambda h, a: h["parts"]["estimator"].update(rounds=10**30), "corrupt"),
        (lambda h, a: h["random"].update(key=2**63), "corrupt"),
        (lambda h, a: h["parts"]["estimator"].update(arms="ab"), "expected a list"),
        (lambda h, a: a["estimator.pulls"].__setitem__(0, -1), "do not match"),
        (lambda h, a: a["estimator.shared_factor"].__setitem__(0, -1.0), "positive definite"),
        (lambda h, a: h.update(format="other"), "not a file written by hybandits"),
        (lambda h, a: h.update({"class": "Nobody"}), "class 'Nobody', which has not been imported"),
        (lambda h, a: h.pop("config"), "corrupt"),
        (lambda h, a: h["config"].update(surprise=1), "corrupt"),
        (lambda h, a: h["config"]["exploration"].update(kind="Other"), "exploration needs a kind"),
        (lambda h, a: h["config"].update(d1=3), "corrupt"),
        (lambda h, a: h.pop("random"), "corrupt"),
        (lambda h, a: h["random"].update(decisions=-3), "corrupt"),
        (lambda h, a: h["parts"]["estimator"].update(arms=["a"]), "corrupt"),
        (lambda h, a: h["parts"]["estimator"].update(arms=["a", 2.5]), "corrupt"),
        (lambda h, a: a.pop("estimator.pulls"), "corrupt"),
        (lambda h, a: a["estimator.arm_factor"].__setitem__(0, np.nan), "not finite"),
        (lambda h, a: a.update({"estimator.arm_factor": a["estimator.arm_factor"][1:]}), "corrupt"),
        (lambda h, a: a.update({"estimator.shared_score": a["estimator.shared_score"].astype("f4")}), "corrupt"),
        (lambda h, a: a.update({"estimator.slots": np.array([5, 0])}), "do not match"),
    ],
)
def test_parts_that_do_not_fit_are_refused(saved: Path, change: Any, message: str) -> None:
    rewrite(saved, change)
    with pytest.raises(FileError, match=message):
        HyLinUCB.load(saved)


def test_sums_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    policy = HyRan(d1=2, d2=1, seed=0)
    policy.learn("a", [1.0, 2.0], [3.0], 1.0)
    for change in (
        lambda h, a: a.update({"sums.shared": np.ones((3, 3))}),
        lambda h, a: a["sums.own"].__setitem__((0, 0), np.inf),
        lambda h, a: h["parts"]["sums"].update(arms=["a", "b"]),
        lambda h, a: h["parts"]["sums"].update(free=[0]),
        lambda h, a: a.pop("sums.own"),
    ):
        policy.save(tmp_path / "p.npz")
        rewrite(tmp_path / "p.npz", change)
        with pytest.raises(FileError, match="corrupt"):
            HyRan.load(tmp_path / "p.npz")


def test_saved_files_have_no_pickle(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as content:
        for name in content.files:
            assert content[name].dtype.kind in "fiu"


def test_compressed_members_are_refused(saved: Path) -> None:
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as container:
        container.writestr("bomb.npy", b"0" * 10_000_000)
    with pytest.raises(FileError, match="not a file written by hybandits"):
        hybandits.load(saved)


def test_numpy_numbers_as_settings_can_be_saved(tmp_path: Path) -> None:
    for policy in (
        HyLinUCB(d1=np.int64(2), d2=1, ridge=np.float32(0.5), noise=np.float64(0.1)),  # type: ignore[arg-type]
        HyLinUCB(d1=2, d2=1, exploration=AsWritten(horizon=np.int64(9), arms=np.int32(3))),  # type: ignore[arg-type]
        HyLinUCB(d1=2, d2=1, exploration=SelfNormalised(bound=[1.0, 2.0])),  # type: ignore[arg-type]
        HyRan(d1=2, d2=1, arm_count=np.int64(4)),  # type: ignore[arg-type]
    ):
        policy.save(tmp_path / "p.npz")
        policy.merge(hybandits.load(tmp_path / "p.npz"))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="cannot be merged with itself"):
            policy.merge(policy)  # type: ignore[arg-type]


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "arm",
    ["a", "", "ü", 0, -5, 2**80, (), ("a", 1), (("a",), (1, (2, "b"))), np.int64(4), np.str_("n"), True, 2.0,
     np.float32(3), Colour.RED],
)  # fmt: skip
def test_ids_survive(arm: Any) -> None:
    loaded = policy_file.arm_id(json.loads(json.dumps(checks.plain_id(arm))))
    assert {loaded: "found"}[arm] == "found"


@pytest.mark.parametrize("arm", [None, 2.5, math.inf, b"a", UUID(int=7), frozenset(), ("a", 1.5), ("a", None)])
def test_other_ids_are_refused(arm: Any) -> None:
    with pytest.raises(TypeError, match="cannot be saved: use str, int or tuples"):
        checks.plain_id(arm)


def test_exploration_of_the_users_own_cannot_be_saved_but_works(tmp_path: Path) -> None:
    class Mine(Exploration):
        def coefficients(self, reduction: Any, d1: int, d2: int, arms: int, ridge: float) -> Any:
            return (0.5, 0.0, 0.0, 0.0, 0.0)

    policy = HyLinUCB(d1=1, d2=1, exploration=Mine())
    assert policy.radius == 0.5
    with pytest.raises(TypeError, match="type Mine cannot be saved"):
        policy.save(tmp_path / "p.npz")


def test_a_file_names_the_module_of_its_class_and_imports_nothing(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_softmax(own_folder)
    kind: Any = import_class("softmax:Softmax")
    policy = kind(d1=2, d2=1, temperature=0.3, seed=1)
    around = EpsilonGreedy(kind(d1=2, d2=1, seed=1), seed=1)
    policy.save("softmax.npz")
    around.save("around.npz")
    assert repr(hybandits.load("softmax.npz")) == repr(policy)
    monkeypatch.setattr(Policy, "_registry", {"EpsilonGreedy": EpsilonGreedy})
    del sys.modules["softmax"]
    for file in ("softmax.npz", "around.npz"):
        with pytest.raises(
            FileError,
            match=r"class 'softmax:Softmax', which has not been imported: if you trust .* --import softmax",
        ):
            hybandits.load(file)
    assert "softmax" not in sys.modules
    importlib.import_module("softmax")
    assert repr(hybandits.load("softmax.npz")) == repr(policy)


def test_a_class_of_a_script_is_loaded_by_the_class_itself(own_folder: Path) -> None:
    write_softmax(own_folder)
    (own_folder / "script.py").write_text((own_folder / "softmax.py").read_text().replace("Softmax", "Scripted"))
    kind: Any = import_class("script:Scripted")
    kind.__module__ = "__main__"
    kind(d1=1, d2=1).save("policy.npz")
    kind.__module__ = "script"
    with pytest.raises(FileError, match="class '__main__:Scripted', which has not been imported"):
        hybandits.load("policy.npz")
    assert type(kind.load("policy.npz")) is kind


SHADOW = """
import hybandits


class HyLinUCB(hybandits.HyLinUCB):
    def _bonus(self, *arguments):
        raise RuntimeError("not the policy that was saved")


class Greedy(hybandits.Greedy):
    def __init__(self, *, d1, d2, boldness=1.0):
        super().__init__(d1=d1, d2=d2)
        self.boldness = boldness
"""


def test_a_class_of_ones_own_never_stands_in_for_a_built_in_of_its_name(own_folder: Path) -> None:
    (own_folder / "shadow.py").write_text(SHADOW)
    shadow: Any = importlib.import_module("shadow")
    built_in = HyLinUCB(d1=1, d2=1, noise=0.1)
    around = EpsilonGreedy(built_in, seed=1)
    built_in.save("built-in.npz")
    around.save("around.npz")
    assert type(hybandits.load("built-in.npz")) is HyLinUCB is type(built_in.copy())
    inside = hybandits.load("around.npz")
    assert isinstance(inside, EpsilonGreedy)
    assert type(inside.policy) is HyLinUCB
    own = shadow.Greedy(d1=1, d2=1, boldness=2.0)
    own.save("own.npz")
    assert type(hybandits.load("own.npz")) is shadow.Greedy is type(Greedy.load("own.npz")) is type(own.copy())
    with pytest.raises(FileError, match=r"holds a HyLinUCB, not a shadow:HyLinUCB: use hybandits.load"):
        shadow.HyLinUCB.load("built-in.npz")
