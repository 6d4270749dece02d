"""Repository consistency checks: independent tests, a test per module, and project files that agree."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import hybandits
from hybandits.foundation.machine_code import PACKAGE, kernel_sources

ROOT = Path(__file__).parent.parent
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MODULES = sorted(path for path in (ROOT / "hybandits").rglob("*.py") if not path.name.startswith("__"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, and the names imported from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.slow
def test_test_files_do_not_import_each_other() -> None:
    """Shared helpers belong in tests/support or a conftest.py."""
    importing = {str(path): imported(path) for path in TESTS}
    assert {
        path for path, names in importing.items() if any(re.match(r"tests(\.\w+)*\.test_", n) for n in names)
    } == set()


@pytest.mark.xdist_group("one worker")
def test_tests_of_a_group_share_a_worker(request: pytest.FixtureRequest) -> None:
    """They do if pytest-xdist gets to see their group, which it appends to their names."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("there are no groups without --dist loadgroup")
    assert request.node.nodeid.endswith("@one worker"), "install other versions of pytest and pytest-xdist"


def test_every_module_has_a_test_file() -> None:
    """The file is named after the module, or imports it and lies in the tests of the same folder."""
    untested = []
    for path in MODULES:
        package, folder, *rest = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join((package, folder, *rest))
        tests = [test for test in TESTS if not rest or folder in test.relative_to(ROOT).parts]
        if not any(test.stem == f"test_{path.stem}" or module in imported(test) for test in tests):
            untested.append(module)
    assert untested == []


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


def test_the_workflow_keys_machine_code_by_all_files_with_kernels() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    keyed = {path for pattern in re.findall(r"'(hybandits/\S+)'", workflow) for path in ROOT.glob(pattern)}
    assert set(kernel_sources(PACKAGE)) <= keyed


def test_hooks_run_what_make_lint_runs() -> None:
    assert "entry: make lint" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_the_source_distribution_has_every_file_of_the_project() -> None:
    included = {name.strip("/") for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    generated = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
                 "__pycache__", "dist", "build", "out", "out-paper", "out-library-benchmark", "simulation",
                 "bench.json"}  # fmt: skip
    always = {"pyproject.toml", "LICENSE", ".gitignore"}  # the build adds these itself
    assert {path.name for path in ROOT.iterdir()} - generated - always <= included
