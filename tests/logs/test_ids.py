"""Ids of arms: which texts are whole numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybandits.logs.store import id_of, without_point


@pytest.mark.parametrize("text", ["007", "+7", "-0", "1e3", "1.0", " 7", "7 ", "", "id-7", "1_000", "٣", str(2**63)])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert id_of(text) == text


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_integers_are_integers(number: int) -> None:
    assert id_of(str(number)) == number
    assert without_point(f"{number}.0") == str(number)


@given(text=st.text())
def test_an_id_reads_as_before(text: str) -> None:
    assert str(id_of(text)) == text
