"""The decision service: decisions and rewards over HTTP, a log of everything, and the model learned from the log."""
