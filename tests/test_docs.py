"""Statements of the documentation about the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import hybandits
from hybandits.service.api import ENDPOINTS, EXAMPLES
from hybandits.service.serving import compile_policies
from hybandits.service.settings import read_bandit
from hybandits.service.sqlite import SqliteStore
from hybandits.service.writer import Writer
from tests.support.bandits import served

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "results" / "README.md"])


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    without_code = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target, fragment in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", page.read_text()):
        if "://" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), f"{named(page)} links to {target}"
        if fragment:
            assert fragment[1:] in anchors(linked), f"{named(page)} links to {target}{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"`make ([a-z-]+)|^    make ([a-z-]+)", page.read_text(), re.MULTILINE):
        assert (target[0] or target[1]) in targets


def test_architecture_names_every_module() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "hybandits").rglob("*.py"):
        if not path.name.startswith("__"):
            assert f"`{path.stem}`" in text, f"docs/architecture.md does not mention {path.stem}"


def test_changelog_has_this_version() -> None:
    assert f"## {hybandits.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_public_names_are_what_they_say() -> None:
    for name in hybandits.__all__:
        assert getattr(hybandits, name) is not None
    assert dir(hybandits) == hybandits.__all__
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        _ = hybandits.Nobody


def test_readme_lists_every_policy() -> None:
    text = (ROOT / "README.md").read_text()
    for name in hybandits.__all__:
        value = getattr(hybandits, name)
        if isinstance(value, type) and issubclass(value, hybandits.Policy) and value is not hybandits.Policy:
            assert f"`{name}" in text, f"README does not mention {name}"


def test_ci_runs_the_readmes_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_names_of_requests_in_metrics_are_documented() -> None:
    names = {each.name for each in ENDPOINTS} | {"unknown"}
    (said,) = re.findall(
        r"The label `request` is one of (.*?)\.\s", (ROOT / "docs" / "service.md").read_text(), re.DOTALL
    )
    assert set(re.findall(r"`(\w+)`", said)) == names


@pytest.mark.slow
def test_every_request_with_a_body_has_an_example_that_is_answered(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    bandit = read_bandit(tomllib.loads(re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]))
    endpoints = {each.name: each for each in ENDPOINTS if each.body is not None}
    assert EXAMPLES.keys() == endpoints.keys()
    compile_policies(bandit)
    with served(Writer(SqliteStore(tmp_path / "log.db"), bandit)) as web:
        for name, example in EXAMPLES.items():
            each = endpoints[name]
            answer = web.request(each.method, each.path.replace("{id}", "c9"), json=example)
            assert answer.status_code in each.answers, (name, answer.text)
            if each.batch:
                assert {item["status"] for item in answer.json()} <= {200, 201}, name


@pytest.mark.slow
def test_the_requests_of_the_service_are_answered(tmp_path: Path) -> None:
    """Those of the README and of docs/service.md, each with its own bandit.toml."""
    for i, page in enumerate(("README.md", "docs/service.md")):
        text = (ROOT / page).read_text()
        bandit = read_bandit(tomllib.loads(re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]))
        requests = re.findall(r"^    curl (?:-X (\w+) )?localhost:8000(\S+)(?: -d '(.*)')?$", text, re.MULTILINE)
        assert len(requests) >= 3
        compile_policies(bandit)  # as servers do before they answer
        with served(Writer(SqliteStore(tmp_path / f"{i}.db"), bandit)) as web:
            for method, path, body in requests:
                answer = web.request(method or ("POST" if body else "GET"), path, content=body)
                assert answer.status_code in (200, 201), answer.text
