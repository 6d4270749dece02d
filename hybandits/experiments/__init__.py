"""Experiments as records; running them, and their results as files."""
