"""The version is one number in one place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import hybandits
from hybandits import foundation

ROOT = Path(__file__).parents[2]


def test_the_package_and_the_build_take_it_from_here() -> None:
    assert hybandits.__version__ == foundation.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", foundation.__version__)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]
    assert ROOT / build["path"] == Path(str(foundation.__file__)).resolve()
