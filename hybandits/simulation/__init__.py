"""Simulation: worlds, the rounds they give, and policies playing them.

`World` is the protocol that a world of your own keeps (docs/adding-a-world.md).
"""

from hybandits.simulation.play import Player, cumulative_regret, play
from hybandits.simulation.rounds import Block, Rounds
from hybandits.simulation.worlds import Relayed, Synthetic, World, every_arm

__all__ = ["Block", "Player", "Relayed", "Rounds", "Synthetic", "World", "cumulative_regret", "every_arm", "play"]
