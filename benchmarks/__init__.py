"""Benchmarks: `make bench` runs them all, prints tables and writes everything as JSON; parts can be run by name."""
