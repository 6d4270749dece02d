"""Offline evaluation, step by step: policies to terms of rounds, to sums over blocks, to estimates with intervals."""
