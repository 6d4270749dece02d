"""What the columns of a user's own log mean."""

from __future__ import annotations

import collections.abc
import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hybandits.foundation.checks import nearest, short

ARM = "{arm}"
"""Stands for the id of an arm in the names of columns."""


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """What the columns of a log mean.

    Parameters
    ----------
    arm, reward : str
        The columns with the arm that was shown and with its reward.
    time : str, optional
        Seconds since 1970, or ISO timestamps, which are in UTC unless they say otherwise. An empty cell means that the
        time is not known.
    propensity : str, optional
        The probability with which the arm was chosen. See `uniform`.
    place : str, optional
        Where on the page the arm was shown, 0 to 127. An empty cell means that the place is not known.
    candidates : str, optional
        The arms that could have been shown: a list column of Parquet, or text that holds a JSON list, or names with
        `separator` or else with spaces between them. If it is left out, the candidates are all arms of `arms_file`, or
        all arms of the log.
    separator : str
        The text between two candidates.
    user : list of str
        Columns with the user's features, which are numbers.
    categorical : list of str
        Columns with further features of the user, or some of those in `user`, whose values are categories. Every
        category becomes a column of 0 and 1.
    pair : mapping of str to str
        Features of a user and a candidate together, which are numbers: the name of each, and where it is. That is a
        pattern such as "affinity_{arm}", for a column per arm, or the name of a column that holds a list with one
        number per candidate, in their order: a list column of Parquet, or text as for `candidates`.
    arms_file : path, optional
        A CSV or Parquet file with the arms' features, one row per arm.
    arm_id : str, optional
        The column of `arms_file` with the arm's name; the first column unless given.
    arm_features : list of str, optional
        The columns of `arms_file` with features, which are numbers; unless given, all other columns that have a name.
    constant : bool
        Put a feature that is always 1 before the user's and before the arm's features.
    uniform : bool
        The arm was chosen uniformly: its propensity is 1 / number of candidates.

    Examples
    --------
    >>> Mapping(arm="item", reward="click", user=["age", "country"], categorical=["country"]).features
    ('age', 'country')
    """

    arm: str
    reward: str
    time: str | None = None
    propensity: str | None = None
    place: str | None = None
    candidates: str | None = None
    separator: str = "|"
    user: Sequence[str] = ()
    categorical: Sequence[str] = ()
    pair: collections.abc.Mapping[str, str] = field(default_factory=dict)
    arms_file: Path | str | None = None
    arm_id: str | None = None
    arm_features: Sequence[str] | None = None
    constant: bool = True
    uniform: bool = False

    def __post_init__(self) -> None:
        for key in ("arm", "reward", "time", "propensity", "place", "candidates", "arm_id"):
            value = getattr(self, key)
            if value is None and key not in ("arm", "reward"):
                continue
            if not isinstance(value, str) or not value:
                raise ValueError(f"{key} must be the name of a column, got {short(value)}")
        for key in ("constant", "uniform"):
            if not isinstance(getattr(self, key), bool):
                raise ValueError(f"{key} must be true or false, got {short(getattr(self, key))}")
        if not isinstance(self.arms_file, str | Path | None):
            raise ValueError(f"arms_file must be the name of a file, got {short(self.arms_file)}")
        for key in ("user", "categorical", "arm_features"):
            value = getattr(self, key)
            if value is None and key == "arm_features":
                continue
            if (
                not isinstance(value, Sequence)
                or isinstance(value, str)
                or not all(isinstance(name, str) and name for name in value)
            ):
                raise ValueError(f"{key} must be a list of column names, got {short(value)}")
            object.__setattr__(self, key, tuple(value))
            twice = [name for name, n in Counter(value).items() if n > 1]
            if twice:
                raise ValueError(f"{key} names the column {twice[0]!r} twice: name it once")
        self._check_pair()
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(f"separator must be the text between two candidates, got {short(self.separator)}")
        if self.uniform and self.propensity:
            raise ValueError(f"propensity ({self.propensity!r}) and uniform are both given: leave out one of them")
        if self.arms_file is None and (self.arm_id is not None or self.arm_features is not None):
            raise ValueError("arm_id and arm_features name columns of arms_file, but arms_file is missing: give it too")
        if self.arm == self.reward:
            raise ValueError(f"arm and reward are both the column {self.arm!r}: name two different columns")
        for what, column in (("reward", self.reward), ("arm", self.arm), ("place", self.place)):
            if column in self.features:
                raise ValueError(f"user names the {what} {column!r}: a feature must be known before the arm is shown")
        if self.constant and "constant" in (*self.features, *(self.arm_features or ())):
            raise ValueError("a column is called 'constant': leave it out, or pass constant=False")
        if not self.features and not self.constant:
            raise ValueError("there are no user features: name columns in user, or leave constant at True")

    def _check_pair(self) -> None:
        if not isinstance(self.pair, collections.abc.Mapping) or not all(
            isinstance(text, str) and text for item in self.pair.items() for text in item
        ):
            raise ValueError(
                f"pair must name features and their columns, such as {{ price = 'prices' }}, got {short(self.pair)}"
            )
        object.__setattr__(self, "pair", dict(self.pair))
        for name, column in self.pair.items():
            if column.count(ARM) > 1:
                raise ValueError(f"pair gives {name!r} as {column!r}: {ARM} may stand there once")
            for what in ("arm", "reward", "time", "propensity", "place", "candidates"):
                if column == getattr(self, what):
                    raise ValueError(f"pair gives {name!r} as the column {column!r}, which is the {what}: name another")
        if self.pair_lists and self.candidates is None and self.arms_file is None:
            raise ValueError(
                f"pair gives {next(iter(self.pair_lists))!r} as lists in the order of the candidates, and nothing says "
                f"which order that is: name the column of candidates, give arms_file, or use a column per arm ({ARM})"
            )

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Self:
        """Build a mapping from plain settings, such as a TOML table.

        >>> Mapping.of({"arm": "item"})
        Traceback (most recent call last):
        ValueError: the mapping does not say which column is the reward: give reward
        """
        keys = [field.name for field in dataclasses.fields(cls)]
        for key in settings:
            if key not in keys:
                raise ValueError(f"a mapping has no setting {key!r}{nearest(key, keys)}: it may have {', '.join(keys)}")
        for key in ("arm", "reward"):
            if key not in settings:
                raise ValueError(f"the mapping does not say which column is the {key}: give {key}")
        return cls(**settings)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that the user's features come from, categorical ones included."""
        return (*self.user, *(name for name in self.categorical if name not in self.user))

    @property
    def pair_lists(self) -> dict[str, str]:
        """The pair features that are columns of lists."""
        return {name: column for name, column in self.pair.items() if ARM not in column}

    @property
    def pair_patterns(self) -> dict[str, str]:
        """The pair features that have a column per arm."""
        return {name: column for name, column in self.pair.items() if ARM in column}

    @property
    def columns(self) -> list[str]:
        """All columns of the log that are used, each once, but for those of `pair_patterns`."""
        named = (self.arm, self.reward, self.time, self.propensity, self.place, self.candidates)
        used = [*(name for name in named if name is not None), *self.features, *self.pair_lists.values()]
        return list(dict.fromkeys(used))
