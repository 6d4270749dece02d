"""The fingerprint covers what decisions and snapshots depend on."""

from __future__ import annotations

import numba
import pytest

from hybandits.service import model_state
from hybandits.service.model_state import PARTS, fingerprint


def test_it_changes_with_the_parts_and_with_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = fingerprint()
    fingerprint.cache_clear()
    assert fingerprint() == usual
    for fewer in (PARTS[1:], PARTS[:-1]):
        monkeypatch.setattr(model_state, "PARTS", fewer)
        fingerprint.cache_clear()
        assert fingerprint() != usual
    monkeypatch.undo()
    fingerprint.cache_clear()
    assert fingerprint() == usual


@pytest.mark.parametrize(("name", "value"), [("CPU_NAME", "generic"), ("CPU_FEATURES", "+sse2"), ("DISABLE_JIT", 1)])
def test_it_changes_with_how_numba_compiles(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    usual = fingerprint()
    monkeypatch.setattr(numba.config, name, value)
    fingerprint.cache_clear()
    assert fingerprint() != usual
    monkeypatch.undo()
    fingerprint.cache_clear()
    assert fingerprint() == usual
