"""The compiled walk against the plain parser: on ordinary lines, on changed bytes, and number by number."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybandits.logs.yahoo.known_pools import KnownPools
from hybandits.logs.yahoo.lines import R6A, R6B
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import compiled, known_pools
from tests.support.yahoo_logs import check, in_plain_python


@pytest.mark.slow
@given(
    text=st.from_regex(r"[0-9]{1,16}(\.[0-9]{1,17})?", fullmatch=True) | st.from_regex(r"0\.[0-9]{6}", fullmatch=True)
)
@settings(max_examples=300, deadline=None)
def test_numbers_are_those_of_python_to_the_bit(text: str) -> None:
    buf = np.frombuffer(f" 3:{text} |\n".encode(), np.uint8)
    for parse in (compiled.parse_memberships, compiled.parse_memberships.py_func):
        user = np.zeros(6)
        bar = parse(buf, 0, user)
        if sum(letter.isdigit() for letter in text) <= 15:
            assert bar == len(buf) - 2
            assert user[2].hex() == float(text).hex()
        else:
            assert bar == -1


numbers = st.floats(0, 1).map(lambda x: f"{x:.6f}") | st.sampled_from(
    ["1", "0.5", "1e-3", ".5", "-0.25", "nan", "7" * 20]
)

spaces = st.sampled_from([" "] * 12 + ["  ", "\t"])


@st.composite
def articles(draw: Any, kind: str) -> str:
    name = draw(st.sampled_from(["11", "12", "13", "id-1", "id-2", "much-longer-than-most"]))
    return name if kind == R6B else name + draw(features())


@st.composite
def features(draw: Any) -> str:
    keys = draw(st.sampled_from(["234561", "1", "", "123456", "21"]) | st.text("01234567", max_size=7))
    return "".join(f" {key}:{draw(numbers)}" for key in keys)


@st.composite
def logs(draw: Any, kind: str) -> bytes:
    """Lines that share a few pools, most of them well-formed; some bytes of them changed."""
    listed = st.lists(articles(kind), min_size=1, max_size=4, unique_by=lambda text: text.split()[0])
    pools = draw(st.lists(listed.map(" |".join), min_size=1, max_size=3))
    user = features() if kind == R6A else st.lists(st.integers(0, 137), max_size=4).map(
        lambda ids: "".join(f" {one}" for one in ids)
    )  # fmt: skip
    users = draw(st.lists(user, min_size=1, max_size=3))
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        pool = draw(st.sampled_from(pools))
        shown = draw(st.sampled_from([part.split()[0] for part in pool.split(" |")] * 4 + ["99"]))
        parts = [str(draw(st.integers(0, 5_000_000_000))), shown, draw(st.sampled_from("0001"))]
        lines.append(draw(spaces).join(parts) + f" |user{draw(st.sampled_from(users))} |{pool}")
    text = bytearray(draw(st.sampled_from(["\n"] * 3 + ["\r\n"])).join(lines).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text) - 1))
        do = draw(st.sampled_from("cid"))
        byte = draw(st.sampled_from(b"\n\n\r |:.0123456789u\x00\xff\t") | st.integers(0, 255))
        if do == "c":
            text[at] = byte
        elif do == "i":
            text.insert(at, byte)
        elif len(text) > 1:
            del text[at]
    return bytes(text) + draw(st.sampled_from([b"", b"\n", b"\n\n"]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [R6A, R6B])
@given(data=st.data())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_walk_agrees_with_the_plain_parser(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    text = data.draw(logs(kind))
    chunk = data.draw(st.sampled_from([1, 7, 64, 100, 1000, 1 << 18]))
    rows = data.draw(st.sampled_from([1, 3, 65536]))
    check(tmp_path / "log", text, kind, chunk_bytes=chunk, batch_rows=rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [R6A, R6B])
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_walk_in_python_agrees_with_the_plain_parser(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    text = data.draw(logs(kind))
    with in_plain_python(), pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            for module in (known_pools, compiled):
                patch.setattr(module, "hash_bytes", lambda buf, at, n: 7)
        patch.setattr(KnownPools, "POOLS", 2)
        patch.setattr(KnownPools, "BYTES", 150)
        patch.setattr(KnownPools, "IDS", 5)
        check(tmp_path / "log", text, kind, chunk_bytes=data.draw(st.sampled_from([5, 1000])))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [R6A, R6B])
def test_mutations_of_a_synthetic_log(kind: str, tmp_path: Path) -> None:
    """Thousands of changed bytes: never a crash, and every line accounted for as the plain parser says."""
    (path,) = SyntheticLog(rounds=400, seed=3, kind=kind, pool=5, change_every=40).write(tmp_path / "synthetic")
    text = gzip.decompress(path.read_bytes())
    some = random.Random(5)
    for _ in range(15):
        data = bytearray(text)
        for _ in range(some.choice([1, 20, 300])):
            at = some.randrange(len(data))
            data[at : at + some.choice([0, 1, 1, 2])] = bytes(
                some.choices(b"\n |:.019\r\x00\xffu", k=some.choice([0, 1, 1]))
            )
        check(tmp_path / "log", bytes(data), kind, chunk_bytes=some.choice([100, 5000, 1 << 18]))
