"""What a bandit is: `bandit.toml`, checked, and as the plain values that the log's first row holds."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hybandits.estimators.random_stream import key_of_seed, stream_of
from hybandits.features import Category, Feature, Features, Number
from hybandits.foundation import checks
from hybandits.foundation.checks import nearest
from hybandits.kernels.arrow import LIMIT
from hybandits.policies.base import Policy
from hybandits.policies.by_name import all_settings, make_policy, parse_policy
from hybandits.policies.hyran import HyRan
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.service.commands import LONGEST

LIVE = "live"
"""The name of the policy that decides at first; challengers have names of their own."""

POLICY = "HyIDS"
"""The policy of a bandit that names none: it learns its settings."""

FLOOR = 0.05
"""The share of decisions that is spread evenly over all candidates, unless the file says otherwise."""

LEAST_FLOOR = 1e-6
"""The smallest floor: rewards may count with weights of n / floor among n candidates, and estimates with larger ones
would say nothing."""

CHANGEABLE = ("name", "window", "no_reward", "floor", "challengers")
"""What may change in the course of a log, by a row of its own."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, kw_only=True)
class Bandit:
    """A bandit as its file describes it.

    Attributes
    ----------
    name : str
        What people call it.
    user, arm : dict
        The features, as `Features` takes them.
    policy : str
        The policy that decides, as the command line writes it: a name, or a name, a colon and settings.
    challengers : dict
        Further policies by name, which learn the same log and decide nothing.
    window : float or None
        Seconds until a decision closes. None: it never does, and rewards are learned as they come.
    no_reward : float or None
        What is learned if no reward has come by then.
    rewards : (float, float) or None
        The lowest and the highest reward that are accepted.
    floor : float
        The share of decisions that is spread evenly over all candidates.
    seed : int or None
        What all draws depend on. None: one is drawn when the log begins, and kept in it.
    """

    name: str
    user: dict[str, Feature] = field(default_factory=dict)
    arm: dict[str, Feature] = field(default_factory=dict)
    policy: str = POLICY
    challengers: dict[str, str] = field(default_factory=dict)
    window: float | None = None
    no_reward: float | None = None
    rewards: tuple[float, float] | None = None
    floor: float = FLOOR
    seed: int | None = None

    @property
    def features(self) -> Features:
        """Users and arms as vectors."""
        return Features(user=self.user, arm=self.arm)

    @property
    def policies(self) -> dict[str, str]:
        """All policies by name, the one of the file first."""
        return {LIVE: self.policy, **self.challengers}

    def plain(self) -> dict[str, Any]:
        """The bandit as JSON can hold it."""
        features = self.features.to_dict()
        return {
            "name": self.name, "features": features, "policy": self.policy, "challengers": dict(self.challengers),
            "window": self.window, "no_reward": self.no_reward,
            "rewards": None if self.rewards is None else list(self.rewards), "floor": self.floor, "seed": self.seed,
        }  # fmt: skip

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Bandit:
        """The bandit that `plain` was called on."""
        values = dict(plain)
        features = Features.from_dict(values.pop("features"))
        user = {name: feature for name, feature in features.user.items() if feature is not None}
        arm = {name: feature for name, feature in features.arm.items() if feature is not None}
        if values["rewards"] is not None:
            values["rewards"] = tuple(values["rewards"])
        return cls(user=user, arm=arm, **values)

    def with_seed(self) -> Bandit:
        """The bandit as its log begins: with a seed, if the file has none."""
        return self if self.seed is not None else replace(self, seed=secrets.randbits(62))

    def changed(self, values: Mapping[str, Any]) -> Bandit:
        """The bandit after a row that changes what may change. Early rows have no name, which could not change then."""
        return replace(self, **{name: values[name] for name in CHANGEABLE if name in values})

    def contradiction(self, log: Bandit) -> str | None:
        """What this bandit, of a file, has otherwise than that of a log though it may not change; None if nothing."""
        mine, its = self.plain(), log.plain()
        for name in mine:
            drawn = name == "seed" and mine[name] is None
            if mine[name] != its[name] and name not in CHANGEABLE and not drawn:
                if name == "features":
                    return _other_features(mine[name], its[name])
                return f"{name} is {_given(mine[name])} in the file but {_given(its[name])} in the log"
        return None

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
        That names the key, the value and the remedy; an unknown key with the nearest known one.

    Examples
    --------
    >>> bandit = read_bandit({"name": "page", "window": "30m", "no_reward": 0, "user": {"numeric": ["age"]}})
    >>> bandit.window, bandit.policy, bandit.features.names_z
    (1800.0, 'HyIDS', ['constant', 'user.age'])
    """
    known = ("name", "policy", "window", "no_reward", "rewards", "floor", "seed", "user", "arm", "challengers")
    _check_keys("", values, known)
    if "name" not in values:
        raise ValueError('name is missing: give the bandit one, e.g. name = "front-page"')
    window, no_reward = values.get("window"), values.get("no_reward")
    if (window is None) != (no_reward is None):
        there, lacking = ("window", "no_reward") if no_reward is None else ("no_reward", "window")
        raise ValueError(
            f"{there} is given without {lacking}: give both (how long a reward may take, and what counts when none "
            "comes), or neither"
        )
    bandit = Bandit(
        name=_text("name", values["name"]),
        user=_features("user", values.get("user", {})),
        arm=_features("arm", values.get("arm", {})),
        policy=_text("policy", values.get("policy", POLICY)),
        challengers=_challengers(values.get("challengers", [])),
        window=None if window is None else seconds("window", window),
        no_reward=None if no_reward is None else _reward("no_reward", no_reward),
        rewards=None if "rewards" not in values else _range(values["rewards"]),
        floor=checks.share("floor", values.get("floor", FLOOR), "it is the share of decisions spread evenly"),
        seed=None
        if "seed" not in values
        else checks.count("seed", values["seed"], least=0, why="all draws depend on it; leave it out"),
    )
    if bandit.floor < LEAST_FLOOR:
        raise ValueError(
            f"floor must be at least {LEAST_FLOOR:g}, got {bandit.floor:g}: every candidate needs a chance, so that "
            f"logs tell something. The usual floor is {FLOOR:g}"
        )
    if bandit.rewards is not None and no_reward is not None:
        low, high = bandit.rewards
        if not low <= float(no_reward) <= high:
            raise ValueError(f"no_reward is {no_reward}, beyond rewards = [{low}, {high}]: widen the range")
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


def _made(spec: str, features: Features, seed: int) -> Policy:
    """A policy whose state depends on nothing but what it has learned and the arms there are."""
    kind, settings = parse_policy(spec)
    for each in all_settings(settings):
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


def _features(side: str, table: Any) -> dict[str, Feature]:
    if not isinstance(table, Mapping):
        raise TypeError(f"{side} must be a table with numeric and categorical, got {checks.short(table)}")
    _check_keys(f"{side}.", table, ("numeric", "categorical"))
    numeric, categorical = table.get("numeric", []), table.get("categorical", {})
    features: dict[str, Feature] = {}
    if isinstance(numeric, str) or not isinstance(numeric, list | Mapping):
        raise TypeError(f'{side}.numeric must be a list of names, got {checks.short(numeric)}: e.g. ["age"]')
    for name in numeric:
        if _text(f"{side}.numeric", name) in features:
            raise ValueError(f"{side}.numeric names {name!r} twice: name it once")
        rule = numeric[name] if isinstance(numeric, Mapping) else {}
        features[name] = _declared(f"{side}.numeric.{name}", Number, rule)
    if not isinstance(categorical, Mapping):
        raise TypeError(
            f"{side}.categorical must be a table of names and values, got {checks.short(categorical)}: e.g. "
            'categorical = { country = ["de", "fr"] }'
        )
    for name, rule in categorical.items():
        if name in features:
            raise ValueError(f"{side} names {name!r} among numeric and categorical: leave one out")
        rule = {"values": rule} if isinstance(rule, list) else rule
        if not isinstance(rule, Mapping) or "values" not in rule:
            raise ValueError(f'{side}.categorical.{name} needs its values, got {checks.short(rule)}: e.g. ["de", "fr"]')
        features[name] = category = _declared(f"{side}.categorical.{name}", Category, rule)
        if long := [value for value in category.values if isinstance(value, str) and len(value) > LONGEST]:
            raise ValueError(
                f"{side}.categorical.{name} has a value of {len(long[0])} characters, {checks.short(long[0])}, and "
                f"requests may have {LONGEST}: choose a shorter one"
            )
    return features


def _declared(where: str, kind: Any, rule: Any) -> Any:
    if not isinstance(rule, Mapping):
        raise TypeError(f'{where} must be a table, got {checks.short(rule)}: e.g. {{ missing = "column" }}')
    known = ("missing",) if kind is Number else ("values", "missing", "unknown")
    _check_keys(f"{where}.", rule, known)
    try:
        feature = kind(**rule)
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"{where}: {problem}") from None
    if not feature.fitted:
        raise ValueError(f"{where} is left to be found in data, which a service does not have: give the values")
    return feature


def _other_features(file: Mapping[str, Any], log: Mapping[str, Any]) -> str:
    """The first difference between features, as `Features.to_dict` gives them, in words."""
    for side in ("user", "arm"):
        mine, its = ({feature["name"]: feature for feature in each[side]} for each in (file, log))
        if different := _in_one_only(f"the {side} feature", mine, its):
            return different
        for name, feature in mine.items():
            for part, value in feature.items():
                what, there = f"the {side} feature {name!r}", its[name].get(part)
                if part == "values" and there and (different := _in_one_only(f"in {what} the value", value, there)):
                    return different
                if value != there:
                    return f"{what} has {part} {checks.short(value)} in the file but {checks.short(there)} in the log"
        if list(mine) != list(its):
            order = f"{', '.join(mine)} in the file but {', '.join(its)} in the log"
            return f"the {side} features have the order {order}"
    return "the features have other settings in the file than in the log"


def _in_one_only(what: str, file: Collection[Any], log: Collection[Any]) -> str | None:
    for each in file:
        if each not in log:
            return f"the file has {what} {each!r}, which the log does not have"
    for each in log:
        if each not in file:
            return f"the file does not have {what} {each!r}, which the log has"
    return None


def _given(value: Any) -> str:
    return "not given" if value is None else repr(value)


def _challengers(given: Any) -> dict[str, str]:
    if not isinstance(given, list):
        raise TypeError(f"challengers must be a list of tables, got {checks.short(given)}: write [[challengers]]")
    found: dict[str, str] = {}
    for table in given:
        if not isinstance(table, Mapping):
            raise TypeError(f"challengers must hold tables, got {checks.short(table)}: write [[challengers]]")
        _check_keys("challengers.", table, ("name", "policy"))
        if missing := [key for key in ("name", "policy") if key not in table]:
            raise ValueError(f"a challenger has no {missing[0]}, got {checks.short(dict(table))}: give name and policy")
        name = _text("challengers.name", table["name"])
        if name == LIVE or name in found:
            raise ValueError(f"a challenger is called {name!r}, which another policy is called: rename it")
        found[name] = _text("challengers.policy", table["policy"])
    return found


def _range(given: Any) -> tuple[float, float]:
    if not isinstance(given, list) or len(given) != 2:
        raise ValueError(f"rewards must be [lowest, highest], got {checks.short(given)}")
    low, high = (_reward("rewards", end) for end in given)
    if not low < high:
        raise ValueError(f"rewards must be [lowest, highest], got [{low}, {high}]")
    return low, high


def _reward(name: str, value: object) -> float:
    """A reward that policies can learn."""
    number = checks.real(name, value)
    if abs(number) > LIMIT:
        raise ValueError(
            f"{name} has {number:g}, beyond {LIMIT:g} in absolute value, which no policy learns: use another unit"
        )
    return number


def _check_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"unknown key {where}{key}{nearest(key, known)}: the keys are {', '.join(known)}")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} must be a text that is not empty, got {checks.short(value)}")
    return value
