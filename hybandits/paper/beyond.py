"""Topics that the paper leaves open and these results settle, each with its sentences; the page adds the figures.

A topic appears once any of its experiments has results; a topic without experiments is computed, not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hybandits.experiments.results import Results


class Topic(NamedTuple):
    """A question beyond the paper: the experiments that answer it, and the answer in about two sentences."""

    key: str
    title: str
    experiments: tuple[str, ...]
    """Names of experiments in `hybandits.paper.settings`; any of them is enough. Empty if nothing has to be run."""
    sentences: Callable[[Results], str]
    """The answer; all of its numbers come from the results. Greek letters and roots may be written as names."""
    figure: str
    """The beginning of the names of its figures, of which there may be one per protocol."""


TOPICS: list[Topic] = []


def topics_of(results: Results) -> list[Topic]:
    """The topics that these results can answer."""
    names = {name for name, protocol in results.outcomes if protocol != "own"}
    return [topic for topic in TOPICS if names and (not topic.experiments or names & set(topic.experiments))]
