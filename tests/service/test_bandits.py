"""Several bandits in one process: each has its own log, and files may come while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from hybandits.service import api
from hybandits.service.client import Client
from hybandits.service.serving import Serving, make_application, store_of
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, FILE, USER, put, served, writer

pytestmark = pytest.mark.usefixtures("always_new")

TOML = """
name = "{name}"
rewards = "explicit"
policy = "Uniform"
"""


def two(path: Path) -> list[Writer]:
    for name in ("one", "other page"):
        (path / name).mkdir()
    return [writer(path / "one", FILE, name="one"), writer(path / "other page", CLICKS, name="other page")]


@pytest.mark.slow
def test_every_bandit_has_its_paths_and_its_log(tmp_path: Path) -> None:
    one, other = two(tmp_path)
    put(one, "a")
    put(other, "b")
    with served(one, other) as web:
        url = str(web.base_url)
        with Client(url, bandit="other page") as client:
            decided = client.decide(USER, event_id="e")
            assert (decided.arm, client.reward("e", 1.0)) == ("b", True)
        assert web.post("/v1/bandits/one/decisions", json={"event_id": "e", "user": USER}).json()["arm"] == "a"
        assert web.get("/v1/bandits/one/decisions/e").json()["reward"] is None
        assert web.get("/v1/bandits/other%20page/decisions/e").json()["reward"] == 1
        wrong = web.get("/v1/bandits/on/arms").json()
        assert (wrong["status"], wrong["field"], wrong["value"]) == (404, "bandit", "on")
        assert "did you mean one" in wrong["detail"]
        assert "GET /v1/bandits lists them" in web.get("/v1/arms").json()["detail"]
        listed = web.get("/v1/bandits").json()
        assert [(each["name"], each["path"], each["decisions"]) for each in listed] == [
            ("one", "/v1/bandits/one", 1), ("other page", "/v1/bandits/other%20page", 1),
        ]  # fmt: skip
        assert '<a href="/bandits/other%20page"><bdi>other page</bdi></a>' in web.get("/").text
        assert "Reward per decision so far" in web.get("/bandits/other%20page").text
        text = web.get("/metrics").text
        assert text.count("# TYPE hybandits_decisions_total") == 1
        for name in ("one", "other page"):
            assert f'hybandits_decisions_total{{bandit="{name}"}} 1.0' in text
        assert web.get("/readyz").json() == {"status": "ok"}


def test_the_only_bandit_has_short_paths_too(tmp_path: Path) -> None:
    service = writer(tmp_path)
    with served(service) as web:
        assert web.put("/v1/bandits/page/arms/a", json={"features": {"price": 1}}).status_code == 201
        assert [each["arm"] for each in web.get("/v1/arms").json()] == ["a"]


def test_a_file_that_comes_into_a_folder_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LOOKING", 0.01)
    (tmp_path / "a.toml").write_text(TOML.format(name="first"))

    async def work() -> None:
        app = make_application(Serving(bandits=[str(tmp_path)]))
        web = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
        async with app.router.lifespan_context(app), web:
            assert (await web.put("/v1/arms/x")).status_code == 201
            (tmp_path / "b.toml").write_text("name = 3")
            (tmp_path / "c.toml").write_text(TOML.format(name="first"))
            (tmp_path / "d.toml").write_text(TOML.format(name="second"))
            while len((await web.get("/v1/bandits")).json()) < 2:
                await asyncio.sleep(0.01)
            assert (await web.put("/v1/bandits/second/arms/y")).status_code == 201
            assert [each["name"] for each in (await web.get("/v1/bandits")).json()] == ["first", "second"]

    asyncio.run(work())
    assert {path.name for path in tmp_path.glob("*.db")} >= {"a.db", "d.db"}


def test_bandits_that_cannot_be_told_apart_are_refused_before_a_log_begins(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(TOML.format(name="same"))
    with pytest.raises(ValueError, match="two bandits are called 'same': rename one"):
        make_application(Serving(bandits=[str(tmp_path)]))
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.slow
def test_a_slash_in_a_name_is_no_matter_for_the_only_bandit(tmp_path: Path) -> None:
    one, other = two(tmp_path)
    (tmp_path / "slash").mkdir()
    slash = writer(tmp_path / "slash", FILE, name="news/page")
    with served(slash) as web:
        assert web.get("/v1/arms").json() == []
    with pytest.raises(ValueError, match="'news/page' has a slash"):
        api.application(one, slash)
    other.store.close()


def test_stores_of_several(tmp_path: Path) -> None:
    files = [str(tmp_path / "a.toml"), str(tmp_path / "b.toml")]
    assert store_of(Serving(bandits=files), Path(files[1])) == str(tmp_path / "b.db")
    assert store_of(Serving(bandits=files[:1], store="x.db"), Path(files[0])) == "x.db"
    assert store_of(Serving(bandits=files, store=str(tmp_path)), Path(files[0])) == str(tmp_path / "a.db")
    address = "postgresql://host/database"
    assert store_of(Serving(bandits=files, store=address), Path(files[0])) == f"{address}?bandit=a"
    for store, words in (("x.db", "is no folder"), (f"{address}?bandit=c", "leave bandit= out")):
        with pytest.raises(ValueError, match=words):
            store_of(Serving(bandits=files, store=store), Path(files[0]))
