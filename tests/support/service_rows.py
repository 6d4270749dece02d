"""Decisions of a service as they stand in its log, drawn from known distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybandits.service.log import Decision


def decision(**fields: Any) -> Decision:
    """A decision among two arms, unless told otherwise."""
    usual: dict[str, Any] = {
        "event": "e", "user": {}, "candidates": None, "version": 1, "n": 2, "arm": "a", "arm_version": 1, "chance": 0.5,
        "floor": 0.05, "distribution": [], "policy": "live", "fingerprint": "", "shadows": {},
    }  # fmt: skip
    return Decision(**{**usual, **fields})


class KnownArms:
    """Arms with known mean rewards, a live policy that learns to prefer some, and a challenger `bold`."""

    def __init__(self, seed: int, *, arms: int = 5, floor: float = 0.1) -> None:
        self.random = np.random.default_rng(seed)
        self.floor = floor
        self.means = self.random.uniform(0.1, 0.5, arms)
        self.bold = self._mixed(self.random.dirichlet(np.full(arms, 0.5)))
        self.round = 0

    def _mixed(self, own: np.ndarray) -> np.ndarray:
        return (1 - self.floor) * own + self.floor / len(own)

    def draw(self) -> tuple[Decision, float, dict[str, float]]:
        """A decision, its reward of 0 or 1, and what live, bold and uniform choice could expect."""
        self.round += 1
        n = len(self.means)
        means = np.clip(self.means + 0.1 * np.sin(self.round / 50 + np.arange(n)), 0, 1)
        own = np.exp(self.round / 200 * self.means)
        live = self._mixed(own / own.sum())
        arm = int(self.random.choice(n, p=live))
        shadows = {"bold": float(self.bold[arm])}
        drawn = decision(
            event=str(self.round), n=n, arm=str(arm), chance=float(live[arm]), floor=self.floor, shadows=shadows
        )
        expected = {"live": live @ means, "bold": self.bold @ means, "uniform": means.mean()}
        return drawn, float(self.random.random() < means[arm]), expected
