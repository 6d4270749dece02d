"""The decision service: decide, reward and look. The log is the truth, and the model is a fold over it."""
