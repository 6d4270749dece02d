"""Machine code for the tests is kept by the content of all sources; numba looks only at the file a kernel is in."""

import hashlib
import os
import tempfile
from pathlib import Path

_sources = sorted((Path(__file__).parent / "hybandits").rglob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"hybandits-numba-{_digest}"))
