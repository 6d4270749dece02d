"""Looking after the log: recompute it, export it, move old rows out of it."""
