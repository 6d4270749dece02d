"""Machine code for the tests is kept by the content of all sources; numba looks only at the file a kernel is in."""

import hashlib
import os
import tempfile
from pathlib import Path

import pytest

_sources = sorted((Path(__file__).parent / "hybandits").rglob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"hybandits-numba-{_digest}"))


@pytest.fixture(autouse=True)
def _documentation_writes_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples in the documentation may write files: let them do so in a folder of their own."""
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(tmp_path)
