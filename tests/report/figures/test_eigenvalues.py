"""Pictures of eigenvalues: which are drawn, and what their words say."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest

from hybandits.report.figures.eigenvalues import draw_eigenvalues
from hybandits.report.figures.looks import LOOK
from tests.support.fabricated_results import fabricate, small_setting


@pytest.mark.slow
def test_blocks_coupling_and_growth(tmp_path: Path) -> None:
    record = small_setting("diversity", policies=("HyLinUCB", "DisLinUCB"))
    outcome = fabricate(tmp_path, record).outcomes["diversity", "released"]
    with matplotlib.rc_context(LOOK):
        drawn = {
            figure.name.removeprefix("released-diversity-"): figure for figure in draw_eigenvalues(outcome, tmp_path)
        }
    assert list(drawn) == ["HyLinUCB", "DisLinUCB", "coupling", "regret"]
    assert {figure.section for figure in drawn.values()} == {"diversity"}
    # At 5,000 rounds: 1 + 0.01 t for the shared block; the six arms have 714, 1,428, ... pulls, and 1 + pulls / 20.
    assert "smallest eigenvalue of the shared block 51.0, of the arms' blocks 126.0" in drawn["HyLinUCB"].alt
    assert "the median over arms is 126.0" in drawn["DisLinUCB"].alt
    assert f"HyLinUCB {1 / np.sqrt(51):.2f}; the proofs use 0.5" in drawn["coupling"].alt
    assert "DisLinUCB" not in drawn["coupling"].alt, "it shares nothing that could be coupled"
