"""Deployment files: what they name exists, and they run where their tools are installed."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybandits.__main__ import app
from hybandits.service.api import ENDPOINTS
from tests.support.bandits import CLICKS, put, served, writer

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def test_rules_name_metrics_that_exist(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS)
    put(service, "a", "b")
    with served(service) as web:
        known = set(re.findall(r"^# TYPE (\S+)", web.get("/metrics").text, re.MULTILINE))
    rules = [rule for group in documents("prometheus-rules.yaml")[0]["groups"] for rule in group["rules"]]
    named = {name for rule in rules for name in re.findall(r"hybandits_\w+", rule["expr"])}
    assert len(rules) >= 6
    assert named <= known
    assert all("$labels.bandit" in rule["annotations"]["summary"] for rule in rules)


def test_paths_and_commands_exist() -> None:
    texts = {path.name: path.read_text() for path in DEPLOY.iterdir()}
    paths = {each.path for each in ENDPOINTS}
    probed = {path for text in texts.values() for path in re.findall(r"/(?:healthz|readyz)", text)}
    assert probed == {"/healthz", "/readyz"} <= paths
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}  # type: ignore[union-attr]
    used = {word for text in texts.values() for word in re.findall(r"hybandits[\"', ]+(serve|warmup)\b", text)}
    assert used == {"serve", "warmup"} <= commands
    assert "USER hybandits" in texts["Dockerfile"]
    deployment, service = documents("kubernetes.yaml")
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    unit = configparser.ConfigParser()
    unit.read_string(texts["hybandits.service"])
    assert unit["Service"]["ExecStart"].split()[1] == "serve"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("docker", ["docker", "compose", "-f", "compose.yaml", "config", "--quiet"]),
        ("promtool", ["promtool", "check", "rules", "prometheus-rules.yaml"]),
        ("systemd-analyze", ["systemd-analyze", "verify", "./hybandits.service"]),
    ],
)
def test_tools_accept_the_files(tool: str, command: list[str], tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    if (
        tool == "docker"
        and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("docker has no compose")
    for path in DEPLOY.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    for name in ("token.txt", "password.txt"):
        (tmp_path / name).write_text("a-secret-of-some-length")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = [line for line in done.stderr.splitlines() if "not executable" not in line and "not found" not in line]
    assert done.returncode == 0 or not wrong, done.stderr
