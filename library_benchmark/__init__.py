"""Benchmark of libraries: rewards without tuning, all on the same streams (`make benchmark-libraries`)."""
