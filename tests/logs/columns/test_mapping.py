"""A mapping says what columns mean; one that makes no sense is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hybandits.logs.columns import Mapping
from tests.support.own_logs import SIMPLE


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arm": "item"}, "does not say which column is the reward"),
        ({"arm": "item", "rewards": "click"}, r"no setting 'rewards' \(did you mean reward\?\)"),
        ({"arm": "", "reward": "r"}, "arm must be the name of a column, got ''"),
        ({"arm": "r", "reward": "r"}, "arm and reward are both the column 'r'"),
        ({**SIMPLE, "user": "age"}, "user must be a list of column names, got 'age'"),
        ({**SIMPLE, "user": ["age", "age"]}, "names the column 'age' twice"),
        ({**SIMPLE, "user": ["click"]}, "names the reward 'click'"),
        ({**SIMPLE, "user": ["constant"]}, "a column is called 'constant'"),
        ({**SIMPLE, "constant": False}, "there are no user features"),
        ({**SIMPLE, "uniform": True, "propensity": "p"}, "both given"),
        ({**SIMPLE, "arm_id": "name"}, "arms_file is missing"),
        ({**SIMPLE, "separator": ""}, "separator must be"),
        ({**SIMPLE, "time": 3}, "time must be the name of a column, got 3"),
    ],
)
def test_bad_mappings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mapping.of(settings)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"user": ["item"]}, "known before the arm is shown"),
        ({"arms_file": 5}, "name of a file"),
        ({"categorical": 5}, "list of column names"),
        ({"constant": "no"}, "true or false"),
        ({"uniform": "yes"}, "true or false"),
        ({"pair": ["prices"]}, r"pair must name features and their columns, such as .*, got \['prices'\]"),
        ({"pair": {"price": 5}}, "pair must name features and their columns"),
        ({"pair": {"near": "{arm}_{arm}"}}, r"'\{arm\}_\{arm\}': \{arm\} may stand there once"),
        ({"pair": {"price": "click"}, "candidates": "shown"}, "the column 'click', which is the reward: name another"),
        ({"pair": {"price": "prices"}}, "gives 'price' as lists .* name the column of candidates, give arms_file, or"),
    ],
)
def test_mappings_that_make_no_sense(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mapping.of({"arm": "item", "reward": "click", **wrong})
