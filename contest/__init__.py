"""The contest: what bandit libraries earn without tuning, all on the same streams: `make contest`."""
