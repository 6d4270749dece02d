"""Tables of regret as texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hybandits.report.numbers import read_out_rows, regret_rows
from hybandits.report.tables import (
    NUMBERS,
    agreement,
    beyond_section,
    columns_used,
    read_out_table,
    regret_matrix,
    regret_section,
    regret_table,
    row_numbers,
    runs_of,
)
from tests.support.fabricated_results import fabricate, fresh_setting, small_setting


def test_a_row_beside_the_published_number(tmp_path: Path) -> None:
    (row,) = regret_rows(fabricate(tmp_path, small_setting("setting-1", policies=("LinUCB",))))
    assert row_numbers(row) == ["243.0", "182.6 to 303.4", "217.5", "268.5", "243", "1.000", "yes"]
    assert runs_of(row) == "6 runs, interval over environments"


def test_only_columns_with_something_in_them(tmp_path: Path) -> None:
    published = regret_rows(fabricate(tmp_path, small_setting("setting-1", policies=("LinUCB",))))
    assert columns_used(published) == len(NUMBERS)
    several = regret_rows(fabricate(tmp_path, small_setting("setting-2", policies=("Greedy",))))
    assert columns_used(several) == NUMBERS.index("published")
    single = replace(several[0], runs=1, low=None, high=None)
    assert columns_used([single]) == 1
    assert runs_of(single) == "1 run"


def test_several_numbers_of_arms_make_a_matrix(tmp_path: Path) -> None:
    records = [
        small_setting("setting-3", protocol, policies=("HyLinUCB", "LinUCB")) for protocol in ("released", "written")
    ]
    rows = regret_rows(fabricate(tmp_path, *records))
    released, written = regret_section(rows, [])["tables"][0][1]
    assert released.arms == [10, 50]
    assert [(policy, [round(cell.mean, 9) for cell in cells]) for policy, cells in released.rows] == [
        ("HyLinUCB", [190.0, 230.0]), ("LinUCB", [170.0, 917.0]),
    ]  # fmt: skip
    assert released.caption.startswith(
        "Setting 3, released protocol: regret after 30,000 rounds by number of arms K; 6 runs"
    )
    assert released.has_published
    assert not written.has_published, "the published figure is of the released protocol"
    table = regret_table([row for row in rows if row.arms == 50 and row.protocol == "released"])
    assert table.head == ["policy", *NUMBERS]
    assert "rounds, K = 50; 6 runs" in table.caption
    alone = regret_matrix([row for row in rows if (row.policy, row.arms) != ("LinUCB", 10)])
    assert alone.rows[1][1][0] is None, "a case that was not run"


def test_the_read_out_that_is_furthest_off(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1", policies=("HyLinUCB", "LinUCB")))
    read_outs = read_out_rows(results)
    section = regret_section(regret_rows(results), read_outs)
    assert section["has_published"]
    assert section["read_out_count"] == len(read_outs) == sum(len(group) for group in section["read_outs"].groups)
    compared = agreement(read_outs)
    assert compared is not None
    assert compared["compared"] == len(read_outs)
    assert compared["matched"] == sum(bool(row.within) for row in read_outs)
    assert compared["furthest"] in read_outs
    assert agreement([]) is None
    assert read_out_table(read_outs).groups[0][0][:3] == ["Setting 1, K = 25", "HyLinUCB", "1,000"]


def test_policies_beyond_the_paper_beside_the_best_of_it(tmp_path: Path) -> None:
    policies = ("HyLinUCB", "LinUCB", "SupLinUCB", "HyThompson", "HyIDS")
    records = [small_setting(name, policies=policies) for name in ("setting-1", "setting-3")]
    rows = regret_rows(fabricate(tmp_path, *records))
    beyond = beyond_section(rows)
    assert beyond is not None
    assert beyond.table.head == ["policy", "Setting 1, released", "Setting 3, released"]
    means = {(row.experiment, row.arms, row.policy): row.mean for row in rows}
    ratios = [
        means[case, arms, "HyIDS"] / min(means[case, arms, name] for name in ("HyLinUCB", "LinUCB"))
        for case, arms in (("setting-1", 25), ("setting-3", 10), ("setting-3", 50))
    ]
    lowest, highest = f"{min(ratios[1:]):.2f}", f"{max(ratios[1:]):.2f}"
    (body,) = beyond.table.groups
    assert body[1] == ["HyIDS", f"{ratios[0]:.2f}", f"{lowest} to {highest}"]
    assert [row[0] for row in body] == [policy for policy, _ in beyond.spans] == ["HyThompson", "HyIDS"]
    assert beyond.spans[1][1] == f"{min(ratios):.2f} to {max(ratios):.2f}"
    assert "with as many arms; where there are several" in beyond.table.caption


def test_without_the_papers_policies_there_is_nothing_to_be_beyond(tmp_path: Path) -> None:
    rows = regret_rows(fabricate(tmp_path, small_setting("setting-1", policies=("HyIDS", "Greedy"))))
    assert beyond_section(rows) is None
    rows = regret_rows(fabricate(tmp_path / "paper", small_setting("setting-1", policies=("HyLinUCB", "LinUCB"))))
    assert beyond_section(rows) is None
    both = regret_rows(fabricate(tmp_path / "own", small_setting("setting-1", policies=("HyLinUCB", "HyIDS"))))
    assert beyond_section([replace(row, protocol="own") for row in both]) is None


def test_fresh_environments_have_a_table_of_their_own_and_no_column_beyond_the_paper(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"), fresh_setting("setting-1"))
    rows, read_outs = regret_rows(results), read_out_rows(results)
    tables = [table for _, of_experiment in regret_section(rows, read_outs)["tables"] for table in of_experiment]
    assert [table.caption.partition(",")[0] for table in tables] == ["Setting 1", "Setting 1"]
    assert "fresh environments" in tables[1].caption
    assert [table.head[-1] for table in tables] == ["within", "highest"]
    beyond = beyond_section(rows)
    assert beyond is not None
    assert beyond.table.head == ["policy", "Setting 1, released"]
