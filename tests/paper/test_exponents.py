"""The shapes for exponents of regret: one factor varies at a time, on environments of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybandits import paper
from hybandits.paper.exponents import BASE, BASE_ARMS, records


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("protocol", ["released", "written"])
def test_one_factor_varies_at_a_time(protocol: paper.Protocol, scale: paper.Scale) -> None:
    base, *others = records(protocol, scale=scale)
    assert (base.name, base.d1, base.d2) == (BASE, 5, 5)
    assert BASE_ARMS in base.arms
    for record in others:
        assert replace(record, name=base.name, d1=5, d2=5, arms=base.arms) == base
        assert (record.d1 == 5) != (record.d2 == 5)
        assert record.arms == (BASE_ARMS,)
    assert not {*paper.experiment("setting-3").seeds} & {*base.seeds}
    assert base.policies == tuple(paper.entry(name, protocol) for name in (*paper.PAPER_POLICIES, "HyIDS"))
