"""The rows of the log: what happened, in one order. Everything else follows from them.

A row has a number, a time in microseconds since 1970 that never goes back, and a content: one of the classes below,
kept as JSON. Numbers have no gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

SCHEMA = 1
"""The version of the rows and tables. A log of another version is refused."""

Value = str | int | float | bool | None
"""What a feature may be in a row. In requests texts have a limit (`commands.Given`), but every row can be read."""

Candidates = msgspec.Raw
"""The candidates that a request names: a list of ids, as JSON, or `ALL`.

They stay as they came, because most requests name lists that have been read before, and few readers of a row need them.
"""

ALL: Candidates = msgspec.Raw(b"null")
"""No candidates are named: all arms that are active are meant."""


class Opened(msgspec.Struct, tag="bandit", tag_field="is", frozen=True):
    """The first row: the bandit, with everything that decisions depend on."""

    schema: int
    bandit: dict[str, Any]


class Changed(msgspec.Struct, tag="change", tag_field="is", frozen=True):
    """Another name, window or floor, or other challengers from here on: the settings that may change."""

    values: dict[str, Any]


class Promoted(msgspec.Struct, tag="promote", tag_field="is", frozen=True):
    """From here on the policy of this name decides; the one that did becomes a challenger."""

    policy: str


class Arm(msgspec.Struct, tag="arm", tag_field="is", frozen=True):
    """An arm is there, or is there again, with these features. The row's number is the version of the arm."""

    arm: str
    features: dict[str, Value]


class Retired(msgspec.Struct, tag="retire", tag_field="is", frozen=True):
    """An arm is no longer a candidate. Rewards of decisions that were made for it are still learned."""

    arm: str


class Decision(msgspec.Struct, tag="decision", tag_field="is", frozen=True, omit_defaults=True, gc=False):
    """A decision that was made.

    Attributes
    ----------
    event : str
        The id of the event.
    user : dict
        The user's features as the request gave them.
    candidates : JSON
        The candidates that the request named; `ALL` for the arms that were active at the row `version`.
    version : int
        The last row that the model had learned when it decided.
    n : int
        The number of candidates.
    arm, arm_version : str, int
        The arm that was drawn, and the row that described it.
    chance : float
        The probability with which it was drawn.
    floor : float
        The share that was spread evenly over all candidates.
    lot : list of (int, float)
        The places of the candidates that the policy itself may have chosen, and their probabilities in its own lot.
    policy : str
        The name of the policy that decided.
    shadows : dict
        For every challenger the probability with which it would have drawn the same arm.
    fingerprint : str
        Of the machine and the versions that decided; equal fingerprints promise equal bits.
    """

    event: str
    user: dict[str, Value]
    candidates: Candidates
    version: int
    n: int
    arm: str
    arm_version: int
    chance: float
    floor: float
    lot: list[tuple[int, float]]
    policy: str
    fingerprint: str
    shadows: dict[str, float] = {}


class Reward(msgspec.Struct, tag="reward", tag_field="is", frozen=True, omit_defaults=True, gc=False):
    """A reward for a decision. It is learned here, or when the decision closes, or never if it came too late."""

    event: str
    decision: int
    reward: float
    late: bool = False


class Closed(msgspec.Struct, tag="close", tag_field="is", frozen=True):
    """All decisions up to this row are closed: those that were open are learned now, in the order of their rows."""

    last: int


class Ended(msgspec.Struct, tag="end", tag_field="is", frozen=True):
    """The last row of a log that was rotated.

    Attributes
    ----------
    next : str
        The log that continues this one.
    fingerprint, digest : str
        Fingerprint and SHA-256 of the snapshot of the model at the row before.
    """

    next: str
    fingerprint: str
    digest: str


class Continued(msgspec.Struct, tag="continue", tag_field="is", frozen=True):
    """The row with which a log continues another one. Rows before it were copied from there.

    Attributes
    ----------
    previous : str
        The log that this one continues.
    fingerprint, model : str, bytes
        Fingerprint and content of the snapshot with which the log begins.
    digest : str
        SHA-256 of the model.
    """

    previous: str
    fingerprint: str
    digest: str
    model: bytes


Content = Opened | Changed | Promoted | Arm | Retired | Decision | Reward | Closed | Ended | Continued

KINDS: dict[type, int] = {
    kind: i
    for i, kind in enumerate((Opened, Changed, Promoted, Arm, Retired, Decision, Reward, Closed, Ended, Continued))
}
"""The numbers that tables have for the kinds of rows."""

DECISION, REWARD, CONTINUED = KINDS[Decision], KINDS[Reward], KINDS[Continued]

ARMS = KINDS[Arm], KINDS[Retired]
"""Kinds of rows that say which arms there are."""

EVENTLESS = tuple(number for kind, number in KINDS.items() if kind not in (Decision, Reward))
"""Kinds of rows that belong to no event."""

FEW = tuple(KINDS[kind] for kind in (Opened, Changed, Promoted, Arm, Retired))
"""Kinds of rows that say what there is. A log has few of them."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of the log."""

    number: int
    time: int
    content: Content

    @property
    def event(self) -> str | None:
        """The event that the row belongs to, if any."""
        return getattr(self.content, "event", None)


_encoder = msgspec.json.Encoder()


def encode(content: Content) -> bytes:
    """The content as JSON."""
    return _encoder.encode(content)


def encode_ids(ids: Sequence[str] | None) -> Candidates:
    """Candidates that are named, or `ALL` for None, in the form that rows have.

    >>> bytes(encode_ids(["a17", "b4"]))
    b'["a17","b4"]'
    """
    return msgspec.Raw(_encoder.encode(ids))


def decode_ids(candidates: Candidates) -> list[str] | None:
    """The ids of candidates; None for `ALL`."""
    return msgspec.json.decode(candidates, type=list[str] | None)
