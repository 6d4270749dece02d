"""Commands accepted by the service, how they are decoded from JSON, and how they are answered or refused."""

import json
import re
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import msgspec

from hybandits.service.log import ALL, Candidates, Value
from hybandits.service.rules import Controls

MOST = 1_000
"""Items of a batch, and candidates of a decision."""

LONGEST = 200
"""Characters of an id, and of a text that is a feature."""

LONGEST_DETAIL = 2_000
"""Characters of a problem's detail, which may repeat texts of the request."""

Given = Annotated[str, msgspec.Meta(max_length=LONGEST)] | int | float | bool | None
"""The values of features in a request. Recent decisions are kept in memory, so texts have a limit."""

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
Ids = Annotated[list[Id], msgspec.Meta(min_length=1, max_length=MOST)]


class Candidate(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A candidate that a request describes: features of the arm, and of the user and the arm together."""

    arm: Id
    features: dict[str, Given] | None = None
    pair: dict[str, Given] | None = None


Named = Annotated[list[Id | Candidate], msgspec.Meta(min_length=1, max_length=MOST)]


def _inline(schema: Any) -> Any:
    """Return the JSON schema of candidates, which are decoded only if the same list has not been seen before."""
    items = {"anyOf": [msgspec.json.schema(Id), msgspec.json.schema(Candidate)["$defs"]["Candidate"]]}
    return {**msgspec.json.schema(schema), "type": ["array", "null"], "items": items}


NAMED_CANDIDATES = {key: value for key, value in _inline(Named).items() if key != "$defs"}


class Decide(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Make a decision."""

    user: dict[str, Given] = {}
    candidates: Annotated[Candidates, msgspec.Meta(extra_json_schema=NAMED_CANDIDATES)] = msgspec.field(
        default_factory=lambda: ALL
    )
    event_id: Id | None = None
    user_key: Id | None = None
    places: Annotated[int, msgspec.Meta(ge=1)] = 1


class GiveReward(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Record the reward of a decision, or of a place of a ranking."""

    event_id: Id
    reward: float
    place: Annotated[int, msgspec.Meta(ge=1)] = 1


class Correct(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Correct the reward of a decision or a place, or withdraw it (null)."""

    event_id: Id
    reward: float | None
    place: Annotated[int, msgspec.Meta(ge=1)] = 1
    correction_id: Id | None = None


class EraseUser(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Erase all events of a user."""

    user_key: Id


class Erase(msgspec.Struct, frozen=True):
    """Erase all events of a user, whose decisions up to the row `upto` are in these rows."""

    user_key: str
    decisions: list[int]
    upto: int


Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class ArmFeatures(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"start": "from", "end": "until"}):
    """The features of an arm, and when it is a candidate: from `from` on, before `until`."""

    features: dict[str, Given] = {}
    start: Moment | None = None
    end: Moment | None = None


class PutArm(ArmFeatures, frozen=True, kw_only=True):
    """Add an arm, or replace its features and times."""

    arm: Id


class PutArms(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Add or replace arms: all of them, or none if one cannot be used."""

    arms: Annotated[list[PutArm], msgspec.Meta(min_length=1, max_length=MOST)]


class Retire(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Retire arms: all of them, or none if one is unknown."""

    arms: Ids


class Control(msgspec.Struct, frozen=True):
    """Let these guard rails hold from now on, and no others."""

    controls: Controls


class Promote(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Let another policy decide."""

    policy: str


Command = Decide | GiveReward | PutArms | Retire | Promote | Control | Correct | Erase


class Placed(msgspec.Struct):
    """A place of a ranking: its arm, and its probability given the places before."""

    arm: str
    propensity: float


class Decided(msgspec.Struct, omit_defaults=True):
    """A decision: its arm, the probability with which it was drawn, and the version of the model that decided.

    A ranking has all its `places`; the arm is that of the first.
    """

    event_id: str
    arm: str
    propensity: float
    version: int
    places: list[Placed] | None = None


class Rewarded(msgspec.Struct):
    """A reward that is on disk, and whether the model learns it."""

    event_id: str
    reward: float
    learned: bool


class Corrections(msgspec.Struct):
    """A correction that is on disk. `learned`: what was learned will be changed; otherwise the decision is open."""

    correction_id: str
    event_id: str
    reward: float | None
    learned: bool


class ErasedUser(msgspec.Struct):
    """Number of decisions of a user that are about to be erased; 0 if there are none."""

    decisions: int


class ArmState(msgspec.Struct, omit_defaults=True, rename={"start": "from", "end": "until"}):
    """An arm as it is now; the version is the row that described it."""

    arm: str
    active: bool
    features: dict[str, Value] | None = None
    version: int | None = None
    start: datetime | None = None
    end: datetime | None = None


class Promoted(msgspec.Struct):
    """The policy that decides now."""

    live: str


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A status and the body of an answer."""

    status: int
    body: Any


class Refused(Exception):  # noqa: N818 (an answer rather than an error)
    """A refusal, answered with a problem document (RFC 9457) that names the field, its value and the remedy."""

    def __init__(self, status: int, detail: str, *, field: str | None = None, value: Any = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.value = status, detail, field, value

    def document(self) -> dict[str, Any]:
        """Return the problem document."""
        detail = self.detail
        if len(detail) > LONGEST_DETAIL:  # what to do stands at the end
            detail = f"{detail[: LONGEST_DETAIL // 2]} … {detail[-LONGEST_DETAIL // 2 :]}"
        document: dict[str, Any] = {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": detail}
        if self.field is not None:
            document |= {"field": _shortened(self.field), "value": _shortened(self.value)}
        return document


Outcome = Answer | Refused


def _shortened(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def unusable_features(field: str, features: dict[str, Value], problem: Exception) -> Refused:
    """Return the refusal of features of a user or an arm, from the error that they raised."""
    detail = f"{str(problem)[:1].upper()}{str(problem)[1:]}."
    name = re.search(r"feature '(.+?)'", detail)
    if name is None:
        return Refused(422, detail, field=field, value=features)
    return Refused(422, detail, field=f"{field}.{name[1]}", value=features.get(name[1]))


UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of bodies that are not JSON of the expected form."""

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Return the command in a body; raise `Refused`."""
    try:
        return decoder.decode(body)
    except UNREADABLE as problem:
        raise unreadable(bytes(body), problem) from None


def decode_batch(decoder: msgspec.json.Decoder[T], body: bytes) -> list[T | Refused]:
    """Return the commands of a batch; those that cannot be used are `Refused`."""
    commands: list[T | Refused] = []
    for item in decode(_items, body):
        try:
            commands.append(decode(decoder, item))
        except Refused as refused:
            commands.append(refused)
    return commands


_items = msgspec.json.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MOST)])


def unreadable(body: bytes, problem: Exception) -> Refused:
    """Return the refusal of a body that could not be decoded, with the field and the value that msgspec names."""
    if isinstance(problem, RecursionError):
        return Refused(400, "The body is nested too deeply. Send JSON as /openapi.json describes it.", field="body")
    if not isinstance(problem, msgspec.ValidationError):
        return Refused(400, f"The body is not valid JSON: {problem}. Send JSON in UTF-8.", field="body")
    detail = f"{problem}. Send JSON as /openapi.json describes it."
    place = re.search(r"field `(.+?)`", str(problem)) or re.search(r"at `\$\.([^`\[]+)", str(problem))
    try:
        content = msgspec.json.decode(body)
    except UNREADABLE:
        content = None
    if place is None:
        return Refused(422, detail, field="body", value=content)
    return Refused(422, detail, field=place[1], value=content.get(place[1]) if isinstance(content, dict) else None)
