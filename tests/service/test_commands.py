"""Bodies of requests: refusals name the field, the value and the remedy; and the queue between loop and writer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import Decoder

from hybandits.service.commands import ArmFeatures, Decide, GiveReward, Refused, decode, decode_batch

DECISION, REWARD, ARM = map(Decoder, (Decide, GiveReward, ArmFeatures))


@pytest.mark.parametrize(
    ("decoder", "body", "status", "field", "value", "words"),
    [
        (REWARD, b"", 400, "body", None, "not valid JSON"),
        (REWARD, b'{"event_id": "e", "reward": NaN}', 400, "body", None, "invalid character (byte 28)"),
        (REWARD, b'{"event_id": "e", "reward": 1e400}', 422, "reward", None, "out of range"),
        (REWARD, b'{"event_id": "\\ud800", "reward": 1}', 400, "body", None, "not valid JSON"),
        (REWARD, b'{"event_id": "\xff", "reward": 1}', 400, "body", None, "Send JSON in UTF-8"),
        (REWARD, b'{"event_id": "e", "reward": "1"}', 422, "reward", "1", "Expected `float`, got `str`"),
        (REWARD, b'{"event_id": "e", "rewrad": 2}', 422, "rewrad", 2, "unknown field `rewrad`"),
        (REWARD, b'{"event_id": "", "reward": 1}', 422, "event_id", "", "length >= 1"),
        (REWARD, b"[1]", 422, "body", [1], "Expected `object`, got `array`"),
        (DECISION, b'{"user":' * 100_000, 422, "user", None, "/openapi.json"),
        (DECISION, b'{"user": {"age": 1e400}}', 422, "user", None, "out of range"),
        (DECISION, b'{"user": {"age": []}}', 422, "user", {"age": []}, "got `array`"),
        (ARM, b'{"features": {"a": "' + b"x" * 201 + b'"}}', 422, "features", None, "length <= 200"),
    ],
)
def test_unusable_bodies_are_refused(
    decoder: Decoder[Any], body: bytes, status: int, field: str, value: Any, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        decode(decoder, body)
    problem = json.loads(json.dumps(refused.value.document()))
    assert (problem["status"], problem["field"]) == (status, field)
    assert problem["value"] == value or problem["value"].endswith("…")
    assert words in problem["detail"]


@pytest.mark.parametrize("body", [b'{"reward": ' + b"1" * 5_000 + b"}", b'{"' + b"x" * 1_000_000 + b'": 1}'])
def test_long_requests_are_not_repeated_in_full(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        decode(DECISION, body)
    assert len(json.dumps(refused.value.document())) < 3_000


def test_items_of_a_batch_are_refused_one_by_one() -> None:
    items = decode_batch(REWARD, b'[{"event_id": "a:b", "reward": 1}, {"event_id": 1}, 7]')
    assert items[0] == GiveReward("a:b", 1.0)
    assert [(item.status, item.field) for item in items[1:]] == [(422, "event_id"), (422, "body")]  # type: ignore[union-attr]
    for body, field in ((b"[]", "body"), (b"[" + b"0," * 1_000 + b"0]", "body"), (b"{}", "body")):
        with pytest.raises(Refused) as refused:
            decode_batch(REWARD, body)
        assert (refused.value.status, refused.value.field) == (422, field)


VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=200)


@given(st.dictionaries(st.text(), VALUES), st.none() | st.text(min_size=1, max_size=200))
def test_every_text_is_read(user: dict[str, Any], event: str | None) -> None:
    body = json.dumps({"user": user, "event_id": event, "candidates": None})
    assert decode(DECISION, body.encode()).user == user
