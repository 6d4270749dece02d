"""The build backend: hatchling's, and machine code in wheels.

A wheel is built for one platform and one version of Python, with the machine code of the kernels, compiled while the
wheel is built. An editable installation and the sdist have none. Compiled kernels are kept in the checkout, so a second
wheel of the same sources is built in seconds. HYBANDITS_COMPILE=never builds a wheel without machine code, for any
platform.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling import build
from hatchling.build import *  # noqa: F403
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent

COMPILE = "import hybandits; hybandits.warm_up()"
EXPORT = "import sys; from hybandits.cli.warm_up import export_machine_code; export_machine_code(sys.argv[1])"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what hatchling needs, and what the package needs when it runs: kernels are compiled by using them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*build.get_requires_for_build_wheel(config_settings), *project["dependencies"]]


class MachineCode(BuildHookInterface):
    """Puts the folder hybandits/machine_code into a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        from hybandits.foundation.machine_code import PROCESSORS, may_compile, wheel_processor

        processor = wheel_processor()
        if not may_compile() or processor is None:
            why = "this processor lacks AVX2 or FMA" if may_compile() else "HYBANDITS_COMPILE=never"
            self.app.display_warning(f"hybandits: a wheel without machine code ({why})")
            return
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in PROCESSORS[processor]),
            "HYBANDITS_QUIET": "1",
        }
        self._folder = tempfile.TemporaryDirectory(prefix="hybandits-")
        folder = Path(self._folder.name, "machine_code")
        subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True)
        environment["HYBANDITS_COMPILE"] = "never"
        subprocess.run([sys.executable, "-c", EXPORT, str(folder)], env=environment, check=True)
        build_data["force_include"][str(folder)] = "hybandits/machine_code"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
