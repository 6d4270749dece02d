"""What holds for all tests."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite("hybandits.testing")


@pytest.fixture(autouse=True)
def _documentation_writes_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples in the documentation may write files: let them do so in a folder of their own."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
