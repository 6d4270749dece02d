"""Logged rounds: their one form on disk, and a reader for every format."""
