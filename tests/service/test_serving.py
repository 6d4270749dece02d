"""Running the service: tokens, who may listen where, and what is compiled."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hybandits.service import serving
from hybandits.service.access import Tokens
from hybandits.service.serving import Serving, make_application, read_tokens, serve

ROOT = Path(__file__).parents[2]


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    assert read_tokens(None) == Tokens()
    file.write_text("a-token-of-some-length\n")
    assert read_tokens(str(file)) == Tokens("a-token-of-some-length")
    file.write_text("a-token-of-some-length\n\nanother-for-the-arms\n")
    assert read_tokens(str(file)) == Tokens("a-token-of-some-length", "another-for-the-arms")
    for text, words in (("", "has 0 lines"), ("a\nb\nc", "has 3 lines"), ("short", "token of 5 characters")):
        file.write_text(text)
        with pytest.raises(ValueError, match=words):
            read_tokens(str(file))
    file.write_bytes("a-token-of-some-length".encode("utf-16"))
    with pytest.raises(ValueError, match=r"tokens is not UTF-8 \(invalid start byte\): write the token as plain text"):
        read_tokens(str(file))


def test_other_machines_are_let_in_with_a_token_only() -> None:
    with pytest.raises(ValueError, match="a token is needed"):
        serve(Serving(bandits=["bandit.toml"], store="log.db", host="0.0.0.0"))


@pytest.mark.parametrize(
    ("content", "tokens", "words"),
    [
        ("name = 7", None, "^name: Expected `str`, got `int`$"),
        (
            'name = "page"\nrewards = "explicit"',
            "no-such-file",
            r"^no-such-file cannot be read \(No such file .*\): give a file with a token$",
        ),
    ],
)
def test_no_log_begins_where_a_file_cannot_be_used(
    tmp_path: Path, content: str, tokens: str | None, words: str
) -> None:
    file, log = tmp_path / "bandit.toml", tmp_path / "log.db"
    file.write_text(content)
    with pytest.raises(ValueError, match=words):
        make_application(Serving(bandits=[str(file)], store=str(log), tokens=tokens))
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
def test_a_server_that_stops_leaves_the_whole_log_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "bandit.toml").write_text('name = "page"\nrewards = "explicit"')
    app = make_application(Serving(bandits=[str(tmp_path / "bandit.toml")], store=str(tmp_path / "log.db")))

    async def start_and_stop() -> None:
        async with app.router.lifespan_context(app):
            assert (tmp_path / "log.db-wal").exists()

    asyncio.run(start_and_stop())
    assert not (tmp_path / "log.db-wal").exists()


def test_an_address_is_one_that_a_browser_takes() -> None:
    with serving.bind("localhost", 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ValueError, match=r"cannot listen at 192\.0\.2\.1, port 80"):
        serving.bind("192.0.2.1", 80)


@pytest.mark.slow
def test_nothing_is_compiled_when_requests_come(tmp_path: Path) -> None:
    """In a process of its own: a server that tries its policies out has called every kernel that requests need."""
    code = f"""
from pathlib import Path
from hybandits.service.serving import compile_policies
from tests.support.bandits import FILE, bandit, decide, put, reward, writer
from tests.support.everything import kernels

names = {{"bold": "HyThompson", "fading": "HyIDS:memory=auto", "told": "HyLinUCB"}}
content = {{**FILE, "challengers": [{{"name": name, "policy": policy}} for name, policy in names.items()]}}
compile_policies(bandit(content))
known = kernels()
before = {{name: list(kernel.signatures) for name, kernel in known.items()}}
service = writer(Path({str(tmp_path)!r}), content)
put(service, "a", "b", "c")
for i in range(300):
    decide(service, f"e{{i}}")
    reward(service, f"e{{i}}", float(i % 3 == 0))
print([name for name, kernel in known.items() if list(kernel.signatures) != before[name]])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
