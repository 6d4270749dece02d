"""The hybrid ridge estimator and what belongs to it: arms, inputs, running sums, exploration, features, files."""
