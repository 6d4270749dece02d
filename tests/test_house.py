"""The house is in order: tests stand on their own, every module has one, and project files agree with each other."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import hybandits

ROOT = Path(__file__).parent.parent
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MODULES = sorted(path for path in (ROOT / "hybandits").rglob("*.py") if not path.name.startswith("__"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def imported(path: Path) -> set[str]:
    """The modules that a file imports, and the names it imports from them as if they were modules too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_test_files_do_not_import_each_other(path: Path) -> None:
    """What several of them need is in tests/support or a conftest.py."""
    assert [name for name in imported(path) if re.match(r"tests(\.\w+)*\.test_", name)] == []


@pytest.mark.xdist_group("one worker")
def test_tests_of_a_group_share_a_worker(request: pytest.FixtureRequest) -> None:
    """They do if pytest-xdist gets to see their group, which it appends to their names."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("there are no groups without --dist loadgroup")
    assert request.node.nodeid.endswith("@one worker"), "install other versions of pytest and pytest-xdist"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_has_a_test_file(path: Path) -> None:
    """One that is named after it, or one of its room that imports it."""
    package, room, *rest = path.relative_to(ROOT).with_suffix("").parts
    module = ".".join((package, room, *rest))
    tests = [test for test in TESTS if not rest or room in test.relative_to(ROOT).parts]
    assert any(test.stem == f"test_{path.stem}" or module in imported(test) for test in tests), (
        f"no test in tests/{room} of {module}"
    )


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_documentation_states_goals_and_results(path: Path) -> None:
    assert "asked for" not in path.read_text()


def test_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {hybandits.__version__}\n" in citation
    assert "Linear Contextual Bandits with Hybrid Payoff: Revisited" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation


def test_the_workflow_tests_the_versions_that_the_classifiers_claim() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    listed = re.findall(r'"(3\.\d+)"', workflow)
    claimed = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c) for c in PROJECT["project"]["classifiers"]
    ]
    assert listed == [match[1] for match in claimed if match]
    assert "run: .ci/run" in workflow
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_hooks_run_what_make_lint_runs() -> None:
    assert "entry: make lint" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_the_source_distribution_has_every_file_of_the_project() -> None:
    included = {name.strip("/") for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    generated = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
                 "__pycache__", "dist", "build", "out", "out-paper", "out-library-benchmark", "simulation",
                 "bench.json"}  # fmt: skip
    always = {"pyproject.toml", "LICENSE", ".gitignore"}  # the build adds these itself
    assert {path.name for path in ROOT.iterdir()} - generated - always <= included
