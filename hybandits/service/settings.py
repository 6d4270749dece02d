"""The settings of a bandit: `bandit.toml`, and the same values in the log's first row."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hybandits.estimators.random_stream import key_of_seed, stream_of
from hybandits.features import Category, Feature, Features, Number
from hybandits.foundation import checks
from hybandits.foundation.checks import nearest
from hybandits.kernels.arrow import LIMIT
from hybandits.policies.base import Policy
from hybandits.policies.by_name import make_policy, nested_policies, parse_policy
from hybandits.policies.hyran import HyRan
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.service.commands import LONGEST

LIVE = "live"
"""The name of the policy that decides at first; challengers have names of their own."""

LEAST_FLOOR = 1e-6
"""The smallest floor: rewards may count with weights of n / floor among n candidates, and estimates with larger ones
would say nothing."""

CHANGEABLE = ("name", "window", "no_reward", "floor", "challengers")
"""Settings that may change in the course of a log, by a row of its own."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

Text = Annotated[str, Meta(min_length=1)]
Reward = Annotated[float, Meta(ge=-LIMIT, le=LIMIT)]
Value = Annotated[str, Meta(max_length=LONGEST)] | int
Seconds = Annotated[float, Meta(gt=0)]


class NumberRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A numeric feature, and what becomes of a missing value."""

    missing: Literal["error", "column"] | float = "error"


class CategoryRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A categorical feature with its values, and what becomes of others."""

    values: Annotated[list[Value], Meta(min_length=1)]
    missing: Literal["error", "column", "zero"] = "error"
    unknown: Literal["error", "column", "zero"] = "column"


class Side(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The features of users or of arms. Lists stand for features without further rules."""

    numeric: list[Text] | dict[Text, NumberRule] = {}
    categorical: dict[Text, list[Value] | CategoryRule] = {}

    def __post_init__(self) -> None:
        numeric, names = self.numeric, [*self.numeric, *self.categorical]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"the feature {twice[0]!r} is named twice: name it once")
        if isinstance(numeric, list):
            numeric = {name: NumberRule() for name in numeric}
        categorical = {
            name: CategoryRule(rule) if isinstance(rule, list) else rule for name, rule in self.categorical.items()
        }
        msgspec.structs.force_setattr(self, "numeric", numeric)
        msgspec.structs.force_setattr(self, "categorical", categorical)
        self.features()

    def features(self) -> dict[str, Feature]:
        """The features, as `Features` takes them."""
        features: dict[str, Feature] = {}
        for name, rule in [*dict(self.numeric).items(), *self.categorical.items()]:  # type: ignore[arg-type]
            kind: Any = Number if isinstance(rule, NumberRule) else Category
            try:
                features[name] = kind(**msgspec.to_builtins(rule))
            except (TypeError, ValueError) as problem:
                raise ValueError(f"{name}: {problem}") from None
        return features


class Challenger(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A further policy."""

    name: Text
    policy: Text


class Bandit(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A bandit as its file describes it.

    Attributes
    ----------
    name : str
        What people call it.
    user, arm : Side
        The features.
    policy : str
        The policy that decides, as the command line writes it: a name, or a name, a colon and settings.
    challengers : list of Challenger
        Further policies, which learn the same log and decide nothing.
    window : float or None
        Seconds until a decision closes. None: it never does, and rewards are learned as they come.
    no_reward : float or None
        What is learned if no reward has come by then.
    rewards : (float, float) or None
        The lowest and the highest reward that are accepted.
    floor : float
        The share of decisions that is spread evenly over all candidates.
    seed : int or None
        What all draws depend on. None: one is drawn when the log begins, and stored in it.
    """

    name: Text
    user: Side = Side()
    arm: Side = Side()
    policy: Text = "HyIDS"
    challengers: list[Challenger] = []
    window: Seconds | None = None
    no_reward: Reward | None = None
    rewards: tuple[Reward, Reward] | None = None
    floor: Annotated[float, Meta(ge=LEAST_FLOOR, le=1)] = 0.05
    seed: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if (self.window is None) != (self.no_reward is None):
            there, lacking = ("window", "no_reward") if self.no_reward is None else ("no_reward", "window")
            raise ValueError(
                f"{there} is given without {lacking}: give both (how long a reward may take, and what counts when none "
                "comes), or neither"
            )
        low, high = self.rewards or (-LIMIT, LIMIT)
        if not low < high:
            raise ValueError(f"rewards must be [lowest, highest], got [{low}, {high}]")
        if self.no_reward is not None and not low <= self.no_reward <= high:
            raise ValueError(f"no_reward is {self.no_reward:g}, beyond rewards = [{low}, {high}]: widen the range")
        names = [LIVE, *(each.name for each in self.challengers)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"a challenger is called {twice[0]!r}, as another policy is: rename it")

    @property
    def features(self) -> Features:
        """Users and arms as vectors."""
        return Features(user=self.user.features(), arm=self.arm.features())

    @property
    def policies(self) -> dict[str, str]:
        """All policies by name, the one of the file first."""
        return {LIVE: self.policy, **{each.name: each.policy for each in self.challengers}}

    def plain(self) -> dict[str, Any]:
        """The bandit as JSON can hold it."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Bandit:
        """The bandit of these values; raises `ValueError` with the path of the first that cannot be used."""
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as problem:
            unknown = re.fullmatch(r"Object contains unknown field `(.*?)`(.*)", str(problem), re.DOTALL)
            if unknown is None:
                raise ValueError(f"{problem}{_given(str(problem), plain)}") from None
            known = {
                name for kind in (cls, Side, Challenger, NumberRule, CategoryRule) for name in kind.__struct_fields__
            }
            raise ValueError(f"unknown key {unknown[1]}{nearest(unknown[1], sorted(known))}{unknown[2]}") from None

    def with_seed(self) -> Bandit:
        """The bandit as its log begins: with a seed, if the file has none."""
        return self if self.seed is not None else msgspec.structs.replace(self, seed=secrets.randbits(62))

    def changed(self, values: Mapping[str, Any]) -> Bandit:
        """The bandit after a row that changes what may change."""
        return self.from_plain({**self.plain(), **values})

    def contradiction(self, log: Bandit) -> str | None:
        """The first setting of this file that differs from a log's though it may not change; None if there is none."""
        ignored = {*CHANGEABLE, *(["seed"] if self.seed is None else [])}
        file, logged = ({k: v for k, v in each.plain().items() if k not in ignored} for each in (self, log))
        return _difference("", file, logged)

    def make(self, name: str) -> Policy:
        """One of the policies, new."""
        features = self.features
        policy = _made(self.policies[name], features, key_of_seed(self.seed, stream_of(name)) >> 1)
        features.attach(policy)
        return policy


def read_bandit(values: Mapping[str, Any]) -> Bandit:
    """Check the content of a `bandit.toml`.

    Parameters
    ----------
    values : mapping
        What the TOML file holds.

    Returns
    -------
    Bandit
        Its policies have been constructed once, so that wrong settings are noticed here.

    Raises
    ------
    ValueError, TypeError
        With the path of the value and what is wrong; an unknown key with the nearest known one.

    Examples
    --------
    >>> bandit = read_bandit({"name": "page", "window": "30m", "no_reward": 0, "user": {"numeric": ["age"]}})
    >>> bandit.window, bandit.policy, bandit.features.names_z
    (1800.0, 'HyIDS', ['constant', 'user.age'])
    """
    window = {"window": seconds("window", values["window"])} if values.get("window") is not None else {}
    bandit = Bandit.from_plain({**values, **window})
    for name in bandit.policies:
        try:
            bandit.make(name)
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"policy {name!r} ({bandit.policies[name]}): {problem}") from None
    return bandit


def seconds(name: str, value: object) -> float:
    """A length of time: seconds, or a number with a unit.

    >>> seconds("window", "30m"), seconds("window", 0.5)
    (1800.0, 0.5)
    """
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", value)):
        value = float(match[1]) * _UNITS[match[2]]
    if isinstance(value, str):
        raise ValueError(f'{name} must be a length of time, got {value!r}: write "90s", "30m", "12h" or "7d"')
    return checks.positive(name, value, 'it is a length of time: write "90s", "30m", "12h" or "7d"')


def in_words(name: str, value: Any) -> str:
    """The value of a setting, with its unit if it has one.

    >>> in_words("window", 5400.0), in_words("window", 0.5), in_words("floor", 0.05)
    ('90m', '0.5s', '0.05')
    """
    if name != "window" or value is None:
        return repr(value)
    for unit in ("d", "h", "m", "s"):
        if (count := value / _UNITS[unit]).is_integer():
            return f"{count:.0f}{unit}"
    return f"{value}s"


def _given(problem: str, values: Any) -> str:
    """The value that an error of msgspec is about, if it has a path and does not say it."""
    path = re.search(r" - at `\$(.*)`$", problem)
    if path is None or "got" in problem or "missing" in problem or "[...]" in path[1]:
        return ""
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path[1]):
        values = values[name or int(index)]
    return f", got {checks.short(values)}"


def _difference(where: str, file: Any, log: Any) -> str | None:
    """The first difference between two plain values, and where it is."""
    if not (isinstance(file, dict) and isinstance(log, dict)):
        values = ("not given" if each is None else checks.short(each) for each in (file, log))
        return None if file == log else "{} is {} in the file but {} in the log".format(where.lstrip("."), *values)
    for key in {**file, **log}:
        path = f"{where}.{key}"
        if key not in file or key not in log:
            return f"{path[1:]} is given in the {'file' if key in file else 'log'} only"
        if (different := _difference(path, file[key], log[key])) is not None:
            return different
    if list(file) == list(log):
        return None
    return f"{where[1:]} has the order {', '.join(file)} in the file but {', '.join(log)} in the log"


def _made(spec: str, features: Features, seed: int) -> Policy:
    """A policy whose state depends on nothing but what it has learned and the arms there are."""
    kind, settings = parse_policy(spec)
    for _, each in nested_policies(kind, settings):
        table = each.get("exploration")
        as_written = isinstance(table, Mapping) and str(table.get("kind")).lower() == "aswritten"
        if as_written and (lacking := [name for name in ("arms", "horizon") if name not in (table or ())]):
            raise ValueError(
                f"exploration AsWritten needs {' and '.join(lacking)} here: without a number of arms it counts those "
                "that it has met, which depends on who asked, and a service has no last round. Give both, or use HyIDS"
            )
    policy = make_policy(kind, settings, d1=features.d1, d2=features.d2, arms=1, horizon=2, seed=seed)
    inner: Any = policy
    while isinstance(getattr(inner, "policy", None), Policy):
        inner = inner.policy
    if isinstance(inner, HyRan | SupLinUCB):
        raise ValueError(
            f"{type(inner).__name__} cannot serve, because what it learns depends on who asked: it needs all "
            "candidates of the round, or the level at which it chose. Use HyIDS, HyThompson or HyLinUCB"
        )
    return policy
