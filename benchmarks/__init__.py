"""Benchmarks: `make bench` runs them all, prints a table and writes it as JSON."""
