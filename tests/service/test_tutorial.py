"""docs/tutorial-service.md, run as it is written: from nothing to a page with a curve."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path

import pytest

from hybandits.service.export import export
from hybandits.service.serving import compile_policies
from hybandits.service.settings import read_bandit
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import served

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial-service.md").read_text()


@pytest.mark.slow
def test_the_tutorial_works(tmp_path: Path) -> None:
    (toml,) = re.findall(r"^```toml\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
    (program,) = re.findall(r"^```python\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
    requests = re.findall(r"^    curl (?:-X (\w+) )?localhost:8000(\S+)(?: -d '(.*?)')? +#", TUTORIAL, re.MULTILINE)
    bandit = read_bandit(tomllib.loads(toml))
    compile_policies(bandit)  # as servers do before they answer
    store = SqliteStore(tmp_path / "teasers.db")
    with served(Writer(store, bandit)) as web:
        assert 'class="line live"' not in web.get("/").text
        exec(program.replace("http://127.0.0.1:8000", str(web.base_url).rstrip("/")), {})
        end = time.monotonic() + 60
        while (view := web.get("/v1/view").json())["open"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        page = web.get("/").text
        assert 'class="line live" d="M' in page
        assert "The bandit is better." in page
        assert view["decisions"] == 1500
        assert view["uniform"]["difference"]["high"] < 0
        assert view["holdout"]["others"]["mean"] > view["holdout"]["held"]["mean"]
        assert [each["value"] for each in view["segments"]] == ["desktop", "phone"]
        assert len(requests) == 4
        for method, path, body in requests:
            assert web.request(method or "GET", path, content=body).status_code == 200
    assert verify(store).different == 0
    assert export(store, tmp_path / "log")[0].rounds == 1500
