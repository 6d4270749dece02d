"""The worlds without diversity: what fails in each, beside the same draws in the diverse one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits.paper import structured


@pytest.mark.parametrize("protocol", ["released", "written"])
def test_worlds_differ_in_z_alone(protocol: structured.Protocol) -> None:
    worlds = {r.name: r.world(25, r.seeds[0]) for r in structured.records(protocol)}
    blocks = {name: next(world.rounds(50)).rounds for name, world in worlds.items()}
    for block in blocks.values():
        assert_array_equal(block.x, blocks[structured.DIVERSE].x)
    z = {name.removeprefix("structured-"): block.z for name, block in blocks.items()}
    assert (z["fixed"] == z["diverse"][0]).all()
    assert_array_equal(np.sort(z["one-hot"], axis=2)[..., -2:], np.broadcast_to([0.0, 1.0], (50, 25, 2)))
    assert_array_equal(z["duplicated"], blocks[structured.DIVERSE].x)


def test_environments_are_fresh_and_the_short_version_begins_with_them() -> None:
    full, short = structured.records("written"), structured.records("written", scale="quick")
    assert {len(set(record.seeds)) for record in full} == {20}
    assert {record.seeds for record in short} == {full[0].seeds[:2]}
