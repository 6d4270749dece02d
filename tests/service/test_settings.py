"""The content of a bandit.toml, and the refusals of wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from hybandits.service.settings import Bandit, read_bandit
from tests.support.bandits import CLICKS, FILE, bandit


def test_only_the_name_and_the_meaning_of_rewards_are_needed() -> None:
    read = read_bandit({"name": "page", "rewards": "explicit"})
    assert (read.policy, read.floor, read.window, read.challengers) == ("HyIDS", 0.05, None, [])
    assert read.features.names_z == ["constant"]


def test_what_a_missing_reward_means_has_no_default() -> None:
    with pytest.raises(ValueError, match=r'^rewards is missing: write rewards = "clicks" and a window if'):
        read_bandit({"name": "page"})


def test_a_file_without_a_seed_gets_one_of_its_own() -> None:
    read = read_bandit({key: value for key, value in FILE.items() if key != "seed"})
    assert read.seed is None
    assert read.with_seed().seed != read.with_seed().seed
    assert bandit().with_seed() == bandit()


def test_plain_values_give_the_same_bandit_again() -> None:
    one = bandit(CLICKS, challengers=[{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}])
    again = Bandit.from_plain(one.plain())
    assert again == one
    assert again.features.names_x == one.features.names_x
    assert again.make("bold").to_bytes() == one.make("bold").to_bytes()


def test_policies_of_one_bandit_draw_different_numbers() -> None:
    one = bandit(policy="HyThompson", challengers=[{"name": "twin", "policy": "HyThompson"}])
    assert one.make("live").to_bytes() == one.make("live").to_bytes() != one.make("twin").to_bytes()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nmae": "x"}, r"^unknown key nmae \(did you mean name\?\)$"),
        ({"window": "30m"}, 'window is given with rewards = "explicit"'),
        ({"rewards": "clicks"}, 'rewards = "clicks" needs a window'),
        ({"rewards": "none"}, "rewards is 'none': write rewards = \"clicks\" and a window if"),
        ({"rewards": [0, 1]}, r"rewards is \[0, 1\]: .*; the key range has their \[lowest, highest\]"),
        ({"rewards": "clicks", "window": "half an hour"}, "window must be a length of time, got 'half an hour'"),
        ({"rewards": "clicks", "window": -1}, "window must be positive"),
        ({"range": [1, 0]}, r"range must be \[lowest, highest\], got \[1.0, 0.0\]"),
        ({"rewards": "clicks", "window": 5, "range": [1, 2]}, "no reward is 0: include 0"),
        ({"range": [0, 1e60]}, r"^range\[1\]: Expected `float` <= 1e\+50$"),
        ({"floor": 0}, "^floor: Expected `float` >= 1e-06$"),
        ({"floor": float("nan")}, "^floor: "),
        ({"user": {"numerics": []}}, r"^user: unknown key numerics \(did you mean numeric\?\)$"),
        ({"user": {"categorical": {"country": []}}}, "country: values is empty: give at least one category"),
        ({"user": {"categorical": {"country": ["de", "de"]}}}, "country: values holds 'de' twice"),
        ({"user": {"numeric": ["a", "b", "a"]}}, "the feature 'a' is named twice: name it once"),
        ({"user": {"numeric": ["a"], "categorical": {"a": ["b"]}}}, "the feature 'a' is named twice"),
        ({"user": {"categorical": {"country": ["de", "x" * 201]}}}, "Expected `str` of length <= 200"),
        ({"user": {"numeric": {"age": {"missing": "mean"}}}}, "Invalid enum value 'mean'"),
        ({"policy": "HyLinUBC"}, r"policy 'live' \(HyLinUBC\): unknown policy 'HyLinUBC' \(did you mean HyLinUCB"),
        ({"policy": "HyRan"}, "HyRan cannot serve, because it learns from its own choices only"),
        ({"policy": 'EpsilonGreedy:policy="HyRan",epsilon=0.1'}, "HyRan cannot serve"),
        ({"policy": 'LinUCB:exploration={kind="AsWritten",arms=5}'}, "AsWritten cannot serve"),
        (
            {"policy": """EpsilonGreedy:epsilon=0.1,policy="HyLinUCB:exploration={kind='AsWritten',horizon=9}\""""},
            "AsWritten cannot serve",
        ),
        ({"challengers": [{"name": "a"}]}, r"^challengers\[0\]: Object missing required field `policy`$"),
        ({"challengers": [{"name": "live", "policy": "HyIDS"}]}, "a challenger is called 'live', as another policy is"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        bandit(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arm": {"numeric": ["price", "size"]}},
         "arm is {'numeric': ['price', 'size'], 'categorical': {}} in the file but "
         "{'numeric': ['price'], 'categorical': {}} in the log"),
        ({"range": [0, 1]}, "range is (0.0, 1.0) in the file but None in the log"),
        ({"name": "other", "floor": 0.5}, None),
    ],
)  # fmt: skip
def test_what_a_file_may_not_change_is_said_in_a_line(changes: dict[str, Any], words: str | None) -> None:
    assert bandit(**changes).contradiction(bandit()) == words


def test_the_order_of_features_may_not_change() -> None:
    one, other = (bandit(user={"categorical": {name: ["x"] for name in names}}) for names in ("ab", "ba"))
    assert (one.contradiction(other) or "").startswith("user is ")
