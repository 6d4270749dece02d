"""The hybrid ridge estimator and what belongs to it: arms, inputs, exploration coefficients, features, policy files."""
