"""Modules and machine code that restarted servers load in advance."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hybandits.service.postgres
import hybandits.service.serving  # noqa: F401
from hybandits.foundation.files import read_toml
from hybandits.service.commands import Decide, GiveReward, PutArm, PutArms
from hybandits.service.settings import read_bandit
from hybandits.service.sqlite import SqliteStore
from hybandits.service.writer import Writer

CLICKS = """rewards = "clicks"
window = "1s"
"""

BANDIT = f"""
name = "killed"
seed = 1
places = 2
{CLICKS}
[user]
numeric = ["age"]
[arm]
numeric = ["price"]
[[challengers]]
name = "bold"
policy = "HyThompson:scale=1,noise=0.5"
"""
"""The bandit of servers that are killed."""


def load() -> None:
    """Decide and learn once, so that the machine code is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bandit.toml"
        file.write_text(BANDIT)
        store = SqliteStore(file.with_suffix(".db"))
        now = 0
        writer = Writer(store, read_bandit(read_toml(file)), clock=lambda: now)
        writer.serve([PutArms([PutArm(arm=arm, features={"price": 1.0}) for arm in "ab"])])
        for i in range(40):
            writer.serve([Decide({"age": float(i % 7)}, event_id=str(i))])
            writer.serve([GiveReward(str(i), float(i % 3))])
            now += 1_100_000
        store.close()


load()
