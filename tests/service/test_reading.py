"""Bodies of requests: what is refused, and that the answer names the field, the value and the remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybandits.service.commands import GiveReward
from hybandits.service.problems import Refused
from hybandits.service.reading import READ_ARM, READ_DECISION, READ_PROMOTE, READ_REWARD, Reader

DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("reader", "body", "status", "field", "value", "words"),
    [
        (READ_REWARD, b"", 400, "body", "", "The body is empty. Send JSON."),
        (READ_REWARD, b"{", 400, "body", "{", "it ends too early, near '{'"),
        (READ_REWARD, b'{"event_id": "e",}', 400, "body", '{"event_id": "e",}', "trailing comma in object at byte 17"),
        (READ_REWARD, b'{"event_id": "e", "reward": NaN}', 400, "reward", "NaN", "does not have. Send a number."),
        (READ_REWARD, b'{"event_id": "e", "reward": 1e400}', 422, "reward", "1e400", "is '1e400', which is too large"),
        (READ_REWARD, b'{"event_id": "\\ud800", "reward": 1}', 400, "event_id", "\\ud800", "half of a pair"),
        (READ_REWARD, b'{"event_id": "\xff", "reward": 1}', 400, "body", "0xff", "its byte 14 is 0xff"),
        (READ_REWARD, b'{"event_id": "e", "reward": "1"}', 422, "reward", "1", "reward must be a number, got '1'."),
        (READ_REWARD, b'{"event_id": "e", "reward": true}', 422, "reward", True, "must be a number, got true."),
        (READ_REWARD, b'{"event_id": "e", "rewrad": 2}', 422, "rewrad", 2, "(did you mean reward?)"),
        (READ_REWARD, b'{"event_id": "", "reward": 1}', 422, "event_id", "", "a text of 1 to 200 characters, got ''"),
        (READ_REWARD, b'{"reward": 1}', 422, "event_id", None, "event_id is missing"),
        (READ_REWARD, b"[1]", 422, "body", [1], "must be an object with event_id, reward, got [1]"),
        (READ_REWARD, b'{"event_id": "e", "reward": 1, "reward": 0}', 400, "reward", [1, 0], "is there 2 times"),
        (
            READ_REWARD,
            b'{"event_id": "a:b", "rew\\u0061rd": 1, "reward" : 0}',
            400,
            "reward",
            [1, 0],
            "Send it once.",
        ),
        (READ_DECISION, DEEP, 400, "body", None, "nested too deep"),
        (READ_DECISION, b'{"user":' * 100_000, 400, "body", None, "nested too deep"),
        (READ_DECISION, b'{"user": {"age": 1e400}}', 422, "user.age", "1e400", "user.age is '1e400'"),
        (
            READ_DECISION,
            b'{"user": {"age": 1, "country": "' + b"x" * 201 + b'"}}',
            422,
            "user.country",
            "x" * 199 + "…",
            "each a text of at most 200 characters, a number, true, false or null, got user.country = 'xxx",
        ),
        (READ_ARM, b'{"features": {"a": "' + b"x" * 201 + b'"}}', 422, "features.a", "x" * 199 + "…", "at most 200"),
        (READ_DECISION, b'{"user": {"age": []}}', 422, "user.age", [], "got user.age = []."),
        (READ_DECISION, b'{"user": {"age": {"a": null}}}', 422, "user.age", {"a": None}, 'user.age = {"a": null}.'),
        (READ_DECISION, b'{"user": {"age": NaN}}', 400, "user.age", "NaN", "Send a number, or null if it is missing."),
        (READ_DECISION, b'{"event_id": NaN}', 400, "event_id", "NaN", "Send a text of 1 to 200 characters."),
        (READ_DECISION, b'{"user": {"age": 1, "age": 2}}', 400, "user.age", [1, 2], "The key 'age' is there 2 times"),
        (READ_DECISION, b'{"event_id": "e", "event_id": null}', 400, "event_id", ["e", None], "is there 2 times"),
        (READ_DECISION, b'{"user": 3}', 422, "user", 3, "user must be an object of features"),
        (READ_ARM, b'{"feature": {}}', 422, "feature", {}, "(did you mean features?)"),
        (READ_PROMOTE, b'{"policy": null}', 422, "policy", None, "policy must be the name of a policy, got null."),
    ],
)
def test_what_cannot_be_used(reader: Reader, body: bytes, status: int, field: str, value: Any, words: str) -> None:
    with pytest.raises(Refused) as refused:
        reader.one(body)
    problem = json.loads(refused.value.document())
    assert (problem["status"], problem.get("field"), problem.get("value")) == (status, field, value)
    assert words in problem["detail"]
    assert "codec" not in problem["detail"]
    assert "recursion" not in problem["detail"]


def test_numbers_with_very_many_digits() -> None:
    for digits in (400, 5_000):
        with pytest.raises(Refused) as refused:
            READ_REWARD.one(b'{"event_id": "e", "reward": ' + b"1" * digits + b"}")
        assert (refused.value.status, refused.value.field) == (422, "reward")
        assert len(refused.value.document()) < 600


def test_names_of_any_length_are_not_repeated_in_full() -> None:
    name = b"x" * 1_000_000
    for body in (b'{"' + name + b'": 1}', b'{"user": {"' + name + b'": []}}', b'{"%b": 1, "%b": 1}' % (name, name)):
        with pytest.raises(Refused) as refused:
            READ_DECISION.one(body)
        assert len(refused.value.document()) < 3_000
        assert json.loads(refused.value.document())["detail"].endswith(".")


def test_long_lists_and_objects_are_shown_by_their_beginning() -> None:
    with pytest.raises(Refused) as refused:
        READ_DECISION.one(json.dumps({"users": [None] * 1_000}).encode())
    value = json.loads(refused.value.document())["value"]
    assert value.startswith("[null, null, ")
    assert len(value) == 200
    with pytest.raises(Refused) as refused:
        READ_DECISION.one(b'{"users": [' + b"1" * 5_000 + b"]}")
    assert len(refused.value.document()) < 600


def test_items_of_a_batch_are_judged_one_by_one() -> None:
    good = '{"event_id": "a:b", "reward": 1}'
    items = READ_REWARD.many(f'[{good}, {{"event_id": 1}}, {{"reward": 1, "reward": 2}}, 7]'.encode())
    assert items[0] == GiveReward("a:b", 1.0)
    assert [(item.status, item.field) for item in items[1:]] == [(422, "reward"), (422, "event_id"), (422, "body")]
    (item,) = READ_REWARD.many(b'[{"event_id": "e", "reward": 1, "reward": 2}]')
    assert (item.status, item.field) == (400, "reward")
    (item,) = READ_REWARD.many(b'["\xff"]')
    assert (item.status, item.value) == (400, "0xff")


VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=200)


@given(st.dictionaries(st.text(), VALUES), st.none() | st.text(min_size=1, max_size=200), st.sampled_from([None, 1]))
def test_whatever_has_every_key_once_is_read(user: dict[str, Any], event: str | None, indent: int | None) -> None:
    """Also where texts hold colons and quotes."""
    body = json.dumps({"user": user, "event_id": event, "candidates": None}, indent=indent)
    assert READ_DECISION.one(body.encode()).user == user


@given(st.text(), st.sampled_from([":", " :", "\t: "]), st.text(min_size=1, max_size=200))
def test_a_key_that_is_there_twice_is_always_noticed(name: str, colon: str, event: str) -> None:
    key = json.dumps(name)
    body = f'{{"event_id": {json.dumps(event)}, "user": {{{key}{colon}1, {key}: 2}}}}'
    with pytest.raises(Refused, match="is there 2 times"):
        READ_DECISION.one(body.encode())
