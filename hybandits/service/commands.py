"""What the service is asked to do: requests after their JSON has been checked."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hybandits.service.log.rows import ALL, Candidates

MOST = 1_000
"""Items of a batch, and candidates of a decision."""

LONGEST = 200
"""Characters of an id, and of a text that is a feature."""

Given = Annotated[str, msgspec.Meta(max_length=LONGEST)] | int | float | bool | None
"""What a feature may be in a request. Recent decisions are kept in memory, so their features have a limit."""

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
Ids = Annotated[list[Id], msgspec.Meta(min_length=1, max_length=MOST)]


class Decide(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Make a decision."""

    user: dict[str, Given] = {}
    candidates: Candidates = ALL
    event_id: Id | None = None

    @property
    def keys(self) -> int:
        """Keys that its JSON has at least; as many, unless it says in full what could be left out."""
        user = len(self.user)
        return user + (user > 0) + (self.candidates is not ALL) + (self.event_id is not None)

    @property
    def colons(self) -> int:
        """Colons in its ids."""
        return (self.event_id or "").count(":") + bytes(self.candidates).count(b":")


class GiveReward(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Give the reward of a decision."""

    event_id: Id
    reward: float

    @property
    def keys(self) -> int:
        """Keys that its JSON has."""
        return 2

    @property
    def colons(self) -> int:
        """Colons in its ids."""
        return self.event_id.count(":")


class PutArm(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Make an arm a candidate, or describe it anew."""

    features: dict[str, Given] = {}

    @property
    def keys(self) -> int:
        """Keys that its JSON has at least."""
        return len(self.features) + bool(self.features)

    colons = 0


class Retire(msgspec.Struct, frozen=True):
    """Let an arm be no longer a candidate."""


class Promote(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Let another policy decide."""

    policy: str

    @property
    def keys(self) -> int:
        """Keys that its JSON has."""
        return 1

    colons = 0


class OfArm(msgspec.Struct, frozen=True):
    """A command on an arm."""

    arm: str
    command: PutArm | Retire


Command = Decide | GiveReward | OfArm | Promote


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A status and what is answered with it."""

    status: int
    body: Any
