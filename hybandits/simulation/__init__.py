"""Simulation: worlds, the rounds they give, and policies playing them."""
