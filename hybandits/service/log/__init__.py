"""The log: what its rows are, and the two stores that keep it."""
