"""Experiments as records, running them, and reading their results back."""
