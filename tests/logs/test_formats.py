"""Raw logs: their format is recognised, their reader is found, and nothing is left behind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.formats import detect_format, reader_of
from hybandits.logs.openbandit import OpenBanditReader
from hybandits.logs.report import ReadReport
from hybandits.logs.store import LogError, convert
from hybandits.logs.yahoo import YahooReader
from tests.support.campaigns import campaign

YAHOO = (
    "1241160900 100123 0 |user 2:0.101000 3:0.202000 4:0.050000 5:0.047000 6:0.600000 1:1.000000 "
    "|100120 2:0.300000 3:0.000500 4:0.080000 5:0.230000 6:0.389500 1:1.000000 "
    "|100123 2:0.300000 3:0.000500 4:0.080000 5:0.230000 6:0.389500 1:1.000000\n"
)
R6B = "1317513291 id-560620 0 |user 1 9 11 13 |id-552077 |id-560620\n"

CSV = "item,click\na,1\nb,0\nc,\n"
MAPPING = Mapping(arm="item", reward="click")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    path.write_text(CSV)
    return path


@pytest.mark.parametrize("line", [YAHOO, R6B])
@pytest.mark.parametrize("name", ["ydata-fp-td-clicks-v1_0.20090501.gz", "day1", "odd.csv"])
def test_yahoo_is_recognised_by_its_lines(tmp_path: Path, line: str, name: str) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    data = (line * 3).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert detect_format(folder / name) == detect_format([str(folder / name)]) == detect_format(folder) == "yahoo"
    assert isinstance(reader_of(folder / name), YahooReader)


def test_openbandit_is_recognised_by_the_file_beside(tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    assert detect_format(folder) == detect_format(folder / "men.csv") == "openbandit"
    assert isinstance(reader_of(folder), OpenBanditReader)
    with pytest.raises(ValueError, match="a campaign is one folder, got"):
        reader_of([folder, folder])
    mapping = Mapping(arm="item_id", reward="click")
    assert type(reader_of(folder / "men.csv", mapping=mapping)) is ColumnsReader  # a mapping says what it is


def test_columns_are_recognised_by_name_or_content(tmp_path: Path, raw: Path) -> None:
    pq.write_table(pa.table({"item": ["a"], "click": [1]}), tmp_path / "parquet-without-a-name")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    for name in ("x.csv", "x.csv.gz", "parquet-without-a-name"):
        assert detect_format(tmp_path / name) == "columns"
        assert type(reader_of(tmp_path / name, mapping=MAPPING)) is ColumnsReader


def test_files_that_are_not_recognised(tmp_path: Path, raw: Path) -> None:
    strange = tmp_path / "strange.log"
    strange.write_text("hello world\n")
    with pytest.raises(
        LogError, match=r"strange.log is not recognised .it begins with b'hello world.*--format FORMAT, one of yahoo, "
    ):
        detect_format(strange)
    strange.write_bytes(gzip.compress(b"hello")[:-12])
    with pytest.raises(LogError, match=r"damaged or cut short|not recognised"):
        detect_format(strange)
    strange.write_bytes(b"")
    with pytest.raises(LogError, match="is empty"):
        detect_format(strange)
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises(LogError, match="has no file to read"):
        detect_format(tmp_path / "folder")


def test_formats_and_mappings_that_do_not_fit(raw: Path) -> None:
    with pytest.raises(ValueError, match=r"format must be one of .*got 'yaho' \(did you mean yahoo\?\)"):
        reader_of(raw, format="yaho")
    with pytest.raises(ValueError, match=r"needs a mapping of its columns, which are item, click: convert it"):
        reader_of(raw)
    with pytest.raises(ValueError, match="only the format columns takes a mapping, got format 'yahoo'"):
        reader_of(raw, format="yahoo", mapping=MAPPING)
    with pytest.raises(LogError, match="is not a campaign"):
        reader_of(raw, format="openbandit")


def test_a_converted_log_is_no_raw_log(tmp_path: Path, raw: Path) -> None:
    convert(reader_of(raw, mapping=MAPPING), tmp_path / "out", ReadReport())
    with pytest.raises(LogError, match="converted log already"):
        detect_format(tmp_path / "out")
