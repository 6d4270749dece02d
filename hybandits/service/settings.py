"""The settings of a bandit: `bandit.toml`, and the same values in the log's first row."""

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta

from hybandits.estimators.random_stream import key_of_seed, stream_of
from hybandits.features import Category, Feature, Features, Number
from hybandits.foundation import checks
from hybandits.foundation.checks import nearest
from hybandits.kernels.arrow import LIMIT
from hybandits.policies.base import Policy
from hybandits.policies.by_name import make_policy, nested_policies, parse_policy, policy_class
from hybandits.policies.hyran import HyRan
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.service.commands import LONGEST
from hybandits.service.rules import Holdout, Share

LIVE = "live"
"""The name of the policy that decides at first; challengers have names of their own."""

HELD = "holdout"
"""The name of what decides for users who are held out."""

MOST_PLACES = 20
"""The most places of a ranking."""

LEAST_FLOOR = 1e-6
"""The smallest floor: rewards may count with weights of n / floor among n candidates, and estimates with larger ones
would say nothing."""

CHANGEABLE = ("name", "window", "floor", "challengers", "strict", "holdout", "segments", "webhook")
"""Settings that may change in the course of a log, by a row of its own."""

REWARDS = (
    'write rewards = "clicks" and a window if a decision without a reward counts as 0, or rewards = "explicit" if only '
    "rewards that are sent count"
)
"""The remedy where the file does not say what a missing reward means."""

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
        names = [*self.numeric, *self.categorical]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"the feature {twice[0]!r} is named twice: name it once")
        self.features()

    def values(self) -> dict[str, set[Value]]:
        """Return the values that the categories list."""
        given = {name: each if isinstance(each, list) else each.values for name, each in self.categorical.items()}
        return {name: set(values) for name, values in given.items()}

    def features(self) -> dict[str, Feature]:
        """Return the features, as `Features` takes them."""
        numeric = dict.fromkeys(self.numeric, NumberRule()) if isinstance(self.numeric, list) else self.numeric
        features: dict[str, Feature] = {name: Number(missing=rule.missing) for name, rule in numeric.items()}
        for name, given in self.categorical.items():
            rule = CategoryRule(given) if isinstance(given, list) else given
            if not rule.values:
                raise ValueError(f"{name}: values is empty: give at least one category")
            try:
                features[name] = Category(**msgspec.to_builtins(rule))
            except (TypeError, ValueError) as problem:
                raise ValueError(f"{name}: {problem}") from None
        return features


class Challenger(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A further policy."""

    name: Text
    policy: Text


class Bandit(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A bandit as its file describes it; docs/service.md explains the keys. `window` is in seconds."""

    name: Text
    rewards: Literal["clicks", "explicit"]
    user: Side = Side()
    arm: Side = Side()
    pair: Side = Side()
    policy: Text = "HyIDS"
    challengers: list[Challenger] = []
    window: Seconds | None = None
    range: tuple[Reward, Reward] | None = None
    strict: bool = False
    holdout: Share | Holdout | None = None
    places: Annotated[int, Meta(ge=1, le=MOST_PLACES)] = 1
    segments: list[Text] = []
    webhook: Annotated[str, Meta(pattern="^https?://")] | None = None
    floor: Annotated[float, Meta(ge=LEAST_FLOOR, le=1)] = 0.05
    seed: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.rewards == "clicks" and self.window is None:
            raise ValueError('rewards = "clicks" needs a window: write how long a reward may take, such as "30m"')
        if self.rewards == "explicit" and self.window is not None:
            raise ValueError('window is given with rewards = "explicit", which are learned as they come: leave it out')
        for name in self.segments:
            if name not in self.user.categorical:
                near = nearest(name, self.user.categorical)
                raise ValueError(f"segments names {name!r}, which is no categorical feature of users{near}")
        if taken := self.pair.features().keys() & set(self.place_names):
            raise ValueError(f"the pair feature {min(taken)!r} is called like a place of rankings: rename it")
        low, high = self.range or (-LIMIT, LIMIT)
        if not low < high:
            raise ValueError(f"range must be [lowest, highest], got [{low}, {high}]")
        if self.no_reward is not None and not low <= self.no_reward <= high:
            raise ValueError(f'range is [{low}, {high}], but with rewards = "clicks" no reward is 0: include 0')
        names = [LIVE, HELD, *(each.name for each in self.challengers)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"a challenger is called {twice[0]!r}, as another policy is: rename it")

    @property
    def no_reward(self) -> float | None:
        """The reward of a decision that got none; None if it is not learned."""
        return 0.0 if self.rewards == "clicks" else None

    @property
    def features(self) -> Features:
        """Users and arms as vectors."""
        user, arm = self.user.features(), self.arm.features()
        pair = {**self.pair.features(), **{name: Number() for name in self.place_names}}
        return Features(user=user, arm=arm, pair=pair, map="das" if arm else "li")

    @property
    def place_names(self) -> list[str]:
        """The columns of x that are 1 for one place of a ranking each; the first has none."""
        return [f"place {place}" for place in range(2, self.places + 1)]

    @property
    def held(self) -> Holdout | None:
        """The share of users that is held out."""
        return Holdout(self.holdout) if isinstance(self.holdout, float) else self.holdout

    @property
    def policies(self) -> dict[str, str]:
        """All policies by name, the one of the file first."""
        return {LIVE: self.policy, **{each.name: each.policy for each in self.challengers}}

    def plain(self) -> dict[str, Any]:
        """Return the bandit as JSON can hold it."""
        return dict(msgspec.to_builtins(self))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the bandit of these values; raise `ValueError` with the path of the first that cannot be used."""
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as problem:
            words, _, path = str(problem).partition(" - at `$.")
            at = path and f"{path[:-1]}: "
            if at == "rewards: " or words.endswith("required field `rewards`"):
                wrong = f"rewards is {plain['rewards']!r}" if "rewards" in plain else "rewards is missing"
                raise ValueError(f"{wrong}: {REWARDS}; the key range has their [lowest, highest]") from None
            unknown = re.fullmatch(r"Object contains unknown field `(.*)`", words, re.DOTALL)
            if unknown is None:
                raise ValueError(at + words) from None
            known = {
                name for kind in (cls, Side, Challenger, NumberRule, CategoryRule) for name in kind.__struct_fields__
            }
            raise ValueError(f"{at}unknown key {unknown[1]}{nearest(unknown[1], sorted(known))}") from None

    def with_seed(self) -> Self:
        """Return the bandit as its log begins: with a seed."""
        return self if self.seed is not None else msgspec.structs.replace(self, seed=secrets.randbits(62))

    def contradiction(self, log: Self) -> str | None:
        """Return in words the first difference to a log's bandit that is not allowed; None if there is none."""
        file, logged = self.plain(), log.plain()
        for name in file.keys() - set(CHANGEABLE) - ({"seed"} if self.seed is None else set()):
            if msgspec.json.encode(file[name]) != msgspec.json.encode(logged[name]):  # where the order counts
                return f"{name} is {file[name]!r} in the file but {logged[name]!r} in the log"
        return None

    def make(self, name: str) -> Policy:
        """Return one of the policies, new."""
        features, (kind, settings) = self.features, parse_policy(self.policies[name])
        for inner, each in nested_policies(kind, settings):
            given = each.get("exploration")
            if issubclass(policy_class(inner), HyRan | SupLinUCB):
                wrong = f"{inner} cannot serve, because it learns from its own choices only"
                raise ValueError(f"{wrong}: use HyIDS, HyThompson or HyLinUCB")
            if isinstance(given, Mapping) and given.get("kind") == "AsWritten":
                raise ValueError("exploration AsWritten cannot serve, because it needs the horizon: use SelfNormalised")
        seed = key_of_seed(self.seed, stream_of(name)) >> 1
        policy = make_policy(kind, settings, d1=features.d1, d2=features.d2, arms=1, horizon=2, seed=seed)
        features.attach(policy)
        return policy


def read_bandit(values: Mapping[str, Any]) -> Bandit:
    """Check the content of a `bandit.toml`; raise ValueError or TypeError with the path of what is wrong.

    >>> bandit = read_bandit({"name": "page", "rewards": "clicks", "window": "30m", "user": {"numeric": ["age"]}})
    >>> bandit.window, bandit.policy, bandit.features.names_z
    (1800.0, 'HyIDS', ['constant', 'user.age'])
    """
    window = {"window": seconds("window", values["window"])} if values.get("window") is not None else {}
    bandit = Bandit.from_plain({**values, **window})
    for name in bandit.policies:  # wrong settings are noticed here
        try:
            bandit.make(name)
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"policy {name!r} ({bandit.policies[name]}): {problem}") from None
    return bandit


def seconds(name: str, value: object) -> float:
    """Return a length of time, from seconds or a number with a unit.

    >>> seconds("window", "30m"), seconds("window", 0.5)
    (1800.0, 0.5)
    """
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", value)):
        value = float(match[1]) * _UNITS[match[2]]
    if isinstance(value, str):
        raise ValueError(f'{name} must be a length of time, got {value!r}: write "90s", "30m", "12h" or "7d"')
    return checks.positive(name, value, 'it is a length of time: write "90s", "30m", "12h" or "7d"')
