"""Families of experiments beyond the paper's: one name runs all members, and one table and topic show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hybandits.experiments.record import Experiment, Protocol
from hybandits.paper import exponents, sensitivity, structured
from hybandits.paper.settings import RELEASED_SEED, SETTINGS, Scale, experiments

__all__ = ["FAMILIES", "Family", "family_of", "records_of"]


class Family(NamedTuple):
    """Experiments that belong together: what they are about, their records, and every member's name in words."""

    about: str
    records: Callable[..., list[Experiment]]
    """Called with a protocol, and a scale and a seed by keyword."""
    members: Mapping[str, str]
    """Words for the names of the members' experiments."""
    has_table: bool = True
    """True if regrets are shown in a table; variants of a few policies are too many for one."""

    @property
    def size(self) -> str:
        """Shape, length and number of its experiments in words."""
        records = self.records("released")
        e = records[0]
        values = {
            "d1": {r.d1 for r in records}, "d2": {r.d2 for r in records}, "K": {k for r in records for k in r.arms}
        }  # fmt: skip
        shapes = "; ".join(f"{name}={', '.join(map(str, sorted(each)))}" for name, each in values.items())
        rounds = ", ".join(f"{horizon:,}" for horizon in sorted({r.horizon for r in records}))
        runs = f"experiments: {len(records)}, environments: {len(e.seeds)}, trials: {e.trials}"
        return f"{shapes}; T={rounds}; {runs}"


FAMILIES = {
    **{
        name: Family(module.ABOUT, module.records, module.IN_WORDS)
        for name, module in {"structured": structured, "exponents": exponents}.items()
    },
    "sensitivity": Family(
        sensitivity.ABOUT_SENSITIVITY, sensitivity.sensitivity, sensitivity.IN_WORDS["sensitivity"], False
    ),
    "factorial": Family(sensitivity.ABOUT_FACTORIAL, sensitivity.factorial, sensitivity.IN_WORDS["factorial"], False),
}
"""By the name on the command line."""


def family_of(experiment: str) -> str | None:
    """Name of the family that an experiment belongs to; None if it belongs to none.

    >>> family_of("structured-fixed"), family_of("setting-1")
    ('structured', None)
    """
    return next((name for name, family in FAMILIES.items() if experiment in family.members), None)


def records_of(
    names: Sequence[str], protocols: Sequence[Protocol], *, scale: Scale = "paper", seed: int = RELEASED_SEED
) -> list[Experiment]:
    """Records of settings and families, each under several protocols; see `hybandits.paper.settings.experiment`."""
    records = experiments([name for name in names if name in SETTINGS], protocols, scale=scale, seed=seed)
    families = [FAMILIES[name] for name in names if name in FAMILIES]
    return records + [r for p in protocols for each in families for r in each.records(p, scale=scale, seed=seed)]
