"""The contract of a policy (docs/contract.md says it in words) and the common part of those with one estimator."""

from __future__ import annotations

import inspect
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.model import policy_file as storage
from hybandits.model.arms import CandidateSet, CheckedCandidates, Slots
from hybandits.model.inputs import id_list, not_finite
from hybandits.model.policy_file import FileError, Packed
from hybandits.model.ridge import HybridRidge, Prediction


class Choice(NamedTuple):
    """What `choose` returns.

    index is the row of the arm among the candidates; mean and width are its estimate before the reward;
    propensity is the probability with which the rule picks this arm here (None: not estimated);
    receipt is what a policy wants back with the feedback (None for most), see `Policy.learn`.
    """

    arm: Hashable
    index: int  # type: ignore[assignment]  # the name users expect, not tuple.index
    mean: float
    width: float
    propensity: float | None
    receipt: Any = None


_new = tuple.__new__
"""Makes a Choice in half the time its own constructor takes."""


class Policy(ABC):
    """A rule for choosing among candidates and learning from rewards.

    Nothing is remembered between `choose` and `learn`: feedback may be late, batched, out of order, or for an arm
    that somebody else chose. A call that raises has changed nothing.
    """

    _registry: ClassVar[dict[str, type[Policy]]] = {}

    d1: int
    d2: int

    notes: dict[str, Any]
    """Anything to be kept with the policy, e.g. how its features are made: JSON-able, saved and loaded with it."""

    receipt_is_of_the_round: ClassVar[bool] = False
    """Whether a receipt holds for any candidate of its round (HyRan), not only for the one chosen."""

    _not_settings: ClassVar[tuple[str, ...]] = ("seed",)
    """Arguments of the constructor that the policy does not keep: the random state stands for the seed."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._registry[cls.__name__] = cls

    def __init__(self, *, d1: int, d2: int, seed: int | None) -> None:
        self.d1, self.d2 = checks.dimensions(d1, d2)
        self.notes = {}
        # A stream of the class's own: the same seed elsewhere (a world, a wrapped policy) draws other numbers.
        key = zlib.crc32(type(self).__name__.encode()), self._depth()
        self._random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(checks.seed(seed), spawn_key=key)))

    def _depth(self) -> int:
        """How many policies this one wraps."""
        return 0

    # -------------------------------------------------------------- the contract

    @abstractmethod
    def choose(self, x: Any = None, z: Any = None, arms: Iterable[Hashable] | CandidateSet | None = None) -> Choice:
        """Pick one of n candidates: x (n, d1), z (n, d2), one row each; arms their ids, 0..n-1 if left out."""

    @abstractmethod
    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        """Take in one reward: the arm played, its own features x (d1,) and z (d2,), and the reward.

        receipt is `choice.receipt`. Without it the row counts as a round in which the arm was the only candidate;
        for all policies but HyRan and SupLinUCB that makes no difference.
        """

    @abstractmethod
    def learn_many(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        """Take in many rewards, equal to `learn` one by one in the same order; all of them or, on error, none.

        Equal to the bit, but where the ridge grows with the arms met (`AsWritten` without `arms`): there to rounding.
        """

    @abstractmethod
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        """Means and widths of candidates without choosing; changes nothing, admits nobody."""

    @abstractmethod
    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """The probability with which `choose` would pick each candidate now; changes nothing."""

    @property
    @abstractmethod
    def theta(self) -> Doubles:
        """The estimate of the shared parameter."""

    @abstractmethod
    def beta(self, arm: Hashable) -> Doubles:
        """The estimate of an arm's own parameter; zeros while it has not learned."""

    @property
    @abstractmethod
    def arms(self) -> list[Hashable]:
        """Every arm met and not forgotten, in the order met."""

    @abstractmethod
    def forget(self, arm: Hashable) -> None:
        """Drop an arm: it costs nothing any more and starts anew if met again. What it taught the shared part stays."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in what another policy of the same kind has learned on other data; it is not changed."""

    @abstractmethod
    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        """Look ids up once, for pools that rarely change; pass the result as `arms`."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rewards have been learned."""

    @abstractmethod
    def _pack_parts(self) -> dict[str, Packed]:
        """Whatever has been learned, by name."""

    @abstractmethod
    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        """The inverse of `_pack_parts`, on a policy made from `_config`."""

    # -------------------------------------------------------------- settings

    @classmethod
    def _setting_names(cls) -> list[str]:
        """The constructor's arguments; one that takes ``**kwargs`` is asked together with the one it extends."""
        names: dict[str, None] = {}
        for kind in cls.__mro__:
            if "__init__" not in kind.__dict__:
                continue
            _, *arguments = inspect.signature(kind.__dict__["__init__"]).parameters.values()
            named = (argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD)
            names.update(dict.fromkeys(named))
            if all(argument.kind is not argument.VAR_KEYWORD for argument in arguments):
                break
        return [name for name in names if name not in cls._not_settings]

    def _settings(self) -> dict[str, Any]:
        """The constructor's arguments as they are now, read from the attributes of the same names."""
        missing = [name for name in self._setting_names() if not hasattr(self, name)]
        if missing:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {missing[0]!r}, so its settings cannot be told or saved: keep "
                f"each argument of the constructor in an attribute of the same name, as in self.{missing[0]} = .."
            )
        return {name: getattr(self, name) for name in self._setting_names()}

    def _config(self) -> dict[str, Any]:
        """The settings as a saved file holds them; a wrapped policy is not among them, it is saved as a part."""
        settings = self._settings().items()
        return {name: self._plain(name, value) for name, value in settings if not isinstance(value, Policy)}

    def _plain(self, name: str, value: Any) -> Any:
        """A setting as JSON holds it, for subclasses with settings that JSON does not know."""
        return value

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        """A new policy with these settings, the inverse of `_config`."""
        return cls(**config)

    @classmethod
    def _restore(cls, config: dict[str, Any], parts: dict[str, Packed]) -> Self:
        made = cls._from_config(config)
        made._unpack_parts(parts)
        return made

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings}): {len(self.arms)} arms known, {self.rounds} rewards learned"

    # -------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, random state included, to one .npz file; the old file stays until the new one is whole."""
        storage.write(path, *self._pack())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy written by `save`; from there on it takes the decisions the saved one would have taken."""
        header, arrays = storage.read(path)
        made = Policy._unpack(header, arrays, cls)
        if not isinstance(made, cls):
            raise FileError(
                f"{path} holds a {type(made).__name__}, not a {cls.__name__}: load it with {type(made).__name__}.load()"
            )
        return made

    def _pack(self) -> Packed:
        parts = self._pack_parts()
        header = {
            "class": type(self).__name__,
            "config": self._config(),
            "random": self._random.bit_generator.state,
            "parts": {name: part for name, (part, _) in parts.items()},
        }
        if self.notes:
            header["notes"] = self.notes
        arrays = {f"{name}.{key}": value for name, (_, part) in parts.items() for key, value in part.items()}
        return header, arrays

    @staticmethod
    def _unpack(header: dict[str, Any], arrays: dict[str, np.ndarray], expected: type[Policy] | None = None) -> Policy:
        name = header.get("class")
        kind = expected if expected and expected.__name__ == name else Policy._registry.get(str(name))
        if kind is None:
            raise FileError(
                f"the file holds a policy of class {header.get('class')!r}, which is not known here: "
                "import the module that defines it first"
            )
        try:
            parts: dict[str, Packed] = {}
            for name, part in header["parts"].items():
                start = name + "."
                parts[name] = part, {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
            made = kind._restore(header["config"], parts)
            made._random.bit_generator.state = header["random"]
            made.notes = dict(header.get("notes", {}))
        except FileError:
            raise
        except Exception as problem:  # whatever constructors and NumPy make of wrong values
            raise FileError(f"the file lacks a part or holds a wrong one ({problem}): it is corrupt") from None
        return made


def load(path: str | os.PathLike[str]) -> Policy:
    """Read any policy written by `Policy.save`."""
    return Policy.load(path)


def check_receipts(receipts: Sequence[Any] | None, n: int) -> Sequence[Any]:
    """One receipt per row, None for those that have none."""
    if receipts is None:
        return [None] * n
    receipts = list(receipts)
    if len(receipts) != n:
        raise ValueError(
            f"receipts has {len(receipts)} entries but there are {n} rows: pass one per row or none at all"
        )
    return receipts


class RidgePolicy(Policy):
    """A policy on one `HybridRidge`; a subclass says how to pick, in `_pick`, and how likely, in `propensities`."""

    _embeds: ClassVar[bool] = False
    """Whether the estimator sees other features than the user gives (`_matrices`, `_vectors`)."""

    def __init__(self, *, d1: int, d2: int, ridge: float, seed: int | None) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self._estimator = self._make_estimator(ridge)
        self._arms_sized = 0

    def _make_estimator(self, ridge: float) -> HybridRidge:
        return HybridRidge(d1=self.d1, d2=self.d2, ridge=ridge)

    @property
    def estimator(self) -> HybridRidge:
        """The estimator behind the policy."""
        return self._estimator

    @property
    def ridge(self) -> float:
        """lambda as it is now."""
        return self._estimator.ridge

    def _matrices(self, x: Any, z: Any) -> tuple[Any, Any]:
        """The estimator's features for the user's; the disjoint reduction puts them together."""
        return x, z

    def _vectors(self, x: Any, z: Any) -> tuple[Any, Any]:
        return x, z

    def _arms_changed(self) -> None:
        """Called when the number of known arms differs from that of the last call."""
        self._arms_sized = self._estimator.known

    def meet(self, arms: Sequence[Hashable]) -> tuple[Slots, Slots]:
        """Admit arms and set blocks aside for them, for a loop outside Python: see `ArmTable.set_aside`."""
        self._estimator.admit(arms)
        self._arms_changed()
        return self._estimator.set_aside(arms)

    @abstractmethod
    def _pick(self, x: Doubles, z: Doubles, slots: Slots) -> tuple[int, float, float, float | None]:
        """index, mean, width, propensity; index -1 if the features are not finite (and nothing has changed)."""

    def choose(self, x: Any = None, z: Any = None, arms: Iterable[Hashable] | CandidateSet | None = None) -> Choice:
        estimator = self._estimator
        if self._embeds:
            x, z = self._matrices(x, z)
        slots = estimator.ready_slots(x, z, arms)
        if slots is None:
            x, z, ids, slots = estimator.checked_candidates(x, z, arms, admit=True)
        else:
            ids = arms.arms if type(arms) is CandidateSet else arms  # type: ignore[assignment]
        if estimator.known != self._arms_sized:
            self._arms_changed()
        picked = self._pick(x, z, slots)
        index = picked[0]
        if index < 0:
            raise not_finite(x, z)
        return _new(Choice, (ids[index], *picked, None))

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        if self._embeds:
            x, z = self._vectors(x, z)
        self._estimator.learn(arm, x, z, reward)
        if self._estimator.known != self._arms_sized:
            self._arms_changed()

    def learn_many(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        if receipts is not None:
            arms = list(id_list(arms))
            check_receipts(receipts, len(arms))
        x, z = self._matrices(x, z)
        self._estimator.learn_many(arms, x, z, rewards)
        self._arms_changed()

    def learn_summary(
        self, arms: Iterable[Hashable], x: Any, z: Any, rewards: Any, *, pulls: Mapping[Hashable, int]
    ) -> None:
        """`learn_many` of rows that stand for more of them (see `fit`): `pulls` says for how many of each arm."""
        for arm, count in pulls.items():
            checks.count(f"pulls of {arm!r}", count, least=0, why="it is a number of rounds")
        estimator = self._estimator
        rounds = estimator.rounds
        before = {arm: estimator.pulls_of(arm) for arm in estimator.learned}
        self.learn_many(arms, x, z, rewards)
        for arm, slot in estimator.learned.items():
            estimator.pulls[slot] = before.get(arm, 0) + pulls.get(arm, 0)
        estimator.rounds = rounds + sum(pulls.values())

    def _rows(self, x: Any, z: Any, arms: Any) -> CheckedCandidates:
        x, z = self._matrices(x, z)
        return self._estimator.checked_candidates(x, z, arms, admit=False)

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        rows = self._rows(x, z, arms)
        return self._estimator.score(rows.x, rows.z, rows.slots)

    @property
    def theta(self) -> Doubles:
        return self._estimator.theta

    def beta(self, arm: Hashable) -> Doubles:
        return self._estimator.beta(arm)

    @property
    def arms(self) -> list[Hashable]:
        return self._estimator.arms

    @property
    def rounds(self) -> int:
        return self._estimator.rounds

    def forget(self, arm: Hashable) -> None:
        self._estimator.forget(arm)
        self._arms_changed()

    def merge(self, other: Self) -> None:
        check_mergeable(self, other)
        self._estimator.merge(other._estimator)
        self._arms_changed()

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        return self._estimator.candidates(arms)

    def _pack_parts(self) -> dict[str, Packed]:
        return {"estimator": self._estimator.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        estimator = HybridRidge.unpack(*parts["estimator"])
        if (estimator.d1, estimator.d2) != (self._estimator.d1, self._estimator.d2):
            raise FileError("the estimator's dimensions do not fit the policy's: the file is corrupt")
        self._estimator = estimator
        self._arms_changed()


def check_mergeable(policy: Policy, other: object) -> None:
    """Same class and same settings, or an error saying what differs."""
    if type(other) is not type(policy):
        raise TypeError(
            f"only another {type(policy).__name__} can be merged, got {type(other).__name__}: make both of one class"
        )
    if other is policy:
        raise ValueError("a policy cannot be merged with itself: that would count everything twice")
    assert isinstance(other, Policy)
    mine, its = policy._config(), other._config()
    for name in mine:
        if mine[name] != its[name]:
            raise ValueError(
                f"cannot merge policies with different {name}: {mine[name]!r} here, {its[name]!r} there; "
                "make both with the same settings"
            )


def one_hot(n: int, index: int) -> Doubles:
    """Propensities of a deterministic rule."""
    p = np.zeros(n)
    p[index] = 1.0
    return p


def score_one(estimator: HybridRidge, rows: CheckedCandidates, index: int) -> tuple[float, float]:
    """Mean and width of one of the candidates."""
    keep = slice(index, index + 1)
    mean, width = estimator.score(rows.x[keep], rows.z[keep], rows.slots[keep])
    return float(mean[0]), float(width[0])
