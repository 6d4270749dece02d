"""Worlds, the rounds they give, and the loops that play policies on rounds."""
