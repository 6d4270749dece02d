"""Bodies of requests: strict JSON of the expected form. What cannot be used is refused with field, value and remedy."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hybandits.foundation.checks import nearest, short
from hybandits.service.commands import LONGEST, MOST, Decide, Given, GiveReward, Ids, Promote, PutArm
from hybandits.service.problems import Refused, said

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises where a body is not JSON of the expected form."""

_FEATURES = f"an object of features, each a text of at most {LONGEST} characters, a number, true, false or null"

EXPECTED = {
    "event_id": f"a text of 1 to {LONGEST} characters",
    "user": _FEATURES,
    "candidates": f"a list of 1 to {MOST:,} ids of arms, texts of 1 to {LONGEST} characters",
    "reward": "a number",
    "features": _FEATURES,
    "policy": "the name of a policy",
}
"""What the fields of requests must be, in words."""

_FORMS: dict[str, Any] = {"candidates": Ids | None}
"""What fields must be that the structs leave as JSON."""


class Reader:
    """Reads bodies of one kind of request."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._one = msgspec.json.Decoder(kind)
        self._many = msgspec.json.Decoder(list[kind])

    def one(self, body: bytes) -> Any:
        """The request that a body holds; raises `Refused`."""
        try:
            request = self._one.decode(body)
        except UNREADABLE:
            raise _refusal(body, self._kind) from None
        if body.count(b":") != request.keys and _may_have_keys_twice(body, [request]):
            _refuse_keys_twice(body)
        return request

    def many(self, body: bytes) -> list[Any]:
        """The requests of a batch; those that cannot be used are `Refused`."""
        try:
            requests = _counted(self._many.decode(body))
            if not _may_have_keys_twice(body, requests):
                return requests
        except UNREADABLE:
            pass
        return [self._read(bytes(item)) for item in _counted(_raw_items(body))]

    def _read(self, item: bytes) -> Any:
        try:
            return self.one(item)
        except Refused as refused:
            return refused


def _counted(items: list[Any]) -> list[Any]:
    if not 1 <= len(items) <= MOST:
        raise Refused(
            422,
            f"A batch has 1 to {MOST:,} items, got {len(items):,}. "
            + ("Send at least one." if not items else "Send several batches."),
            field="body",
            value=len(items),
        )
    return items


def _raw_items(body: bytes) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except UNREADABLE:
        given = _parsed(body)
    raise Refused(422, f"A batch is a list of requests, got {said(given)}.", field="body", value=given)


# -------------------------------------------------------------- keys that are there twice


def _may_have_keys_twice(body: bytes, requests: Sequence[Any]) -> bool:
    """Whether a body may have more keys than were read from it: whether it has more colons than keys and ids have."""
    more = body.count(b":") - sum([request.keys for request in requests])
    if not more:
        return False
    return b"\\" in body or more != sum([request.colons for request in requests])  # a colon may be written as \\u003a


def _refuse_keys_twice(body: bytes) -> None:
    """Refuse a body with a key that is there twice: readers do not agree on which of them counts."""
    try:
        given = json.loads(
            body.decode(errors="replace"), object_pairs_hook=_Object, parse_int=_whole, parse_float=_number
        )
        _refuse_odd_values("", given)
    except RecursionError:
        raise _too_deep() from None


class _Object(dict[str, Any]):
    """An object as it was written, where it may have a key twice."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def check(self, place: str) -> None:
        """Refuse a key that is there twice."""
        if len(self) < len(self.pairs):
            names = [name for name, _ in self.pairs]
            twice = next(name for name in self if names.count(name) > 1)
            values = [value for name, value in self.pairs if name == twice]
            field = f"{place}.{twice}" if place else twice
            detail = f"The key {twice!r} is there {len(values)} times. Send it once."
            raise Refused(400, detail, field=field, value=values)


# -------------------------------------------------------------- what is wrong


def _refusal(body: bytes, kind: Any) -> Refused:
    """What is wrong with a body that could not be read as a request of this kind."""
    try:
        given = _parsed(body)
    except Refused as refused:
        return refused
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    names = ", ".join(fields)
    if not isinstance(given, dict):
        return Refused(422, f"The body must be an object with {names}, got {said(given)}.", field="body", value=given)
    for name, value in given.items():
        if name not in fields:
            detail = f"There is no field {name!r}{nearest(name, fields)}. The fields are {names}."
            return Refused(422, detail, field=name, value=value)
    for name, field in fields.items():
        if name not in given and field.required:
            return Refused(422, f"{name} is missing. Send {EXPECTED[name]}.", field=name)
    for name, value in given.items():
        if not _fits(value, _FORMS.get(name, fields[name].type)):
            return _misfit(name, value)
    return Refused(400, "The body cannot be read. Send JSON as /openapi.json describes it.", field="body")


def _fits(value: Any, form: Any) -> bool:
    try:
        msgspec.convert(value, form)
    except (msgspec.MsgspecError, OverflowError):
        return False
    return True


def wrong_candidates(named: bytes) -> Refused:
    """The answer to candidates, as JSON, that are no list of ids."""
    try:
        return _misfit("candidates", _parsed(named))
    except Refused as refused:
        return refused


def _misfit(name: str, value: Any) -> Refused:
    place, part = _wrong_part(name, value)
    got = said(part) if place == name else f"{place} = {said(part)}"
    return Refused(422, f"{name} must be {EXPECTED[name]}, got {got}.", field=place, value=part)


def _wrong_part(name: str, value: Any) -> tuple[str, Any]:
    """Where in a field the part is that does not fit, and what it is."""
    if isinstance(value, dict):
        for feature, its in value.items():
            if not _fits(its, Given):
                return f"{name}.{feature}", its
    elif isinstance(value, list) and 1 <= len(value) <= MOST:
        for i, its in enumerate(value):
            if not _fits([its], Ids):
                return f"{name}[{i}]", its
    return name, value


def _parsed(body: bytes) -> Any:
    """The JSON of a body, whatever its form; raises `Refused` if it is none."""
    if not body.strip():
        raise Refused(400, "The body is empty. Send JSON.", field="body", value="")
    try:
        body.decode()
    except UnicodeDecodeError as wrong:
        byte = f"0x{body[wrong.start]:02x}"
        raise Refused(
            400,
            f"The body is not UTF-8: its byte {wrong.start} is {byte}. Send JSON in UTF-8.",
            field="body",
            value=byte,
        ) from None
    try:
        try:
            return msgspec.json.decode(body)
        except msgspec.MsgspecError as wrong:
            reason = str(wrong)
            _refuse_odd_values("", json.loads(body, parse_float=_number, parse_int=_whole, parse_constant=_Odd))
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        pass
    found = re.search(r"\(byte (\d+)\)", reason)
    at = len(body) if found is None else int(found[1])
    near = body[max(0, at - 20) : at + 20].decode(errors="replace")
    what = reason.partition(" (byte")[0].partition(" - at")[0].removeprefix("JSON is malformed: ")
    what = "it ends too early" if found is None else f"{what} at byte {at}"
    raise Refused(400, f"The body is not JSON: {what}, near {near!r}. Mend it there.", field="body", value=near)


def _too_deep() -> Refused:
    return Refused(400, "The body is nested too deep. Send JSON as /openapi.json describes it.", field="body")


class _Odd(str):
    """A number that JSON does not have, or that no computer number can hold, as it was written."""


def _number(text: str) -> float | _Odd:
    number = float(text)
    return number if math.isfinite(number) else _Odd(text)


def _whole(text: str) -> int | _Odd:
    return int(text) if len(text) <= 4_000 else _Odd(text)


def _refuse_odd_values(place: str, value: Any) -> None:
    """Refuse, by its place, a value that is JSON by its looks only."""
    if isinstance(value, _Object):
        value.check(place)
    if isinstance(value, dict):
        for name, its in value.items():
            _refuse_odd_values(f"{place}.{name}" if place else name, its)
    elif isinstance(value, list):
        for i, its in enumerate(value):
            _refuse_odd_values(f"{place}[{i}]", its)
    elif isinstance(value, _Odd):
        if value[-1].isdigit():
            detail = f"{place or 'The body'} is {short(str(value))}, which is too large. Send a number below 1e50."
            raise Refused(422, detail, field=place or "body", value=str(value))
        detail = f"{place or 'The body'} is {value}, which JSON does not have. Send {_expected_at(place)}."
        raise Refused(400, detail, field=place or "body", value=str(value))
    elif isinstance(value, str) and not value.isprintable() and any("\ud800" <= c <= "\udfff" for c in value):
        shown = value.encode("ascii", "backslashreplace").decode()
        detail = f"{place or 'The body'} is {shown!r}, half of a pair of surrogates. Send the whole character."
        raise Refused(400, detail, field=place or "body", value=shown)


def _expected_at(place: str) -> str:
    """What a place of a body may hold, in words."""
    if re.search(r"(^|\.)(user|features)\.", place):
        return "a number, or null if it is missing"
    return EXPECTED.get(place.rpartition(".")[2], "a number")


READ_DECISION, READ_REWARD = Reader(Decide), Reader(GiveReward)
READ_ARM, READ_PROMOTE = Reader(PutArm), Reader(Promote)
