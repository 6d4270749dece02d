"""Results in order, their names in words, and how much was run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybandits import paper
from hybandits.experiments.results import Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.judging import join_names

REPRODUCED = ("HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED)
"""The curves of the published figure."""
ASIDE = ("HyRan", "SupLinUCB")
"""Baselines that the published figure does not show."""
BEST = "HyLinUCB"
"""The policy that regret on a click log is relative to."""
SYNTHETIC = "synthetic log, not Yahoo's data"

_NAMES = {
    "setting-1": "Setting 1",
    "setting-1-fresh": "Setting 1, fresh environments",
    "setting-2": "Setting 2",
    "setting-2-fresh": "Setting 2, fresh environments",
    "setting-3": "Setting 3",
    "setting-3-fresh": "Setting 3, fresh environments",
    "diversity": "Diversity",
    "diversity-updated": "Diversity, every algorithm updated",
    "diversity-small": "Diversity, small problem",
    **{
        member: f"{family.capitalize()}, {words}"
        for family, each in paper.FAMILIES.items()
        for member, words in each.members.items()
    },
    "yahoo": "Yahoo",
    "yahoo-positions": "Yahoo, positions as arms",
}
"""The paper's experiments and those beyond it, in the order of the page."""


# ------------------------------------------------------------------ selection


def in_order(results: Results) -> list[Outcome]:
    """All outcomes, protocol by protocol, in the paper's order, each setting followed by its fresh environments."""
    places = {name: place for place, name in enumerate(_NAMES)}

    def place(outcome: Outcome) -> tuple[int, int, str]:
        e = outcome.experiment
        known = places if e.protocol != "own" else {}
        return results.protocols.index(e.protocol), known.get(e.name, len(places)), e.name

    return sorted(results.outcomes.values(), key=place)


def on_logs(results: Results) -> list[Outcome]:
    """The outcomes of experiments on a click log."""
    return [outcome for outcome in in_order(results) if outcome.experiment.log is not None]


def of_the_paper(results: Results) -> bool:
    """True if any of the paper's experiments is among the results."""
    return any(protocol != "own" for protocol in results.protocols)


def present_in(outcome: Outcome, names: Sequence[str]) -> list[str]:
    """Those of the policies that were run."""
    return [name for name in names if name in outcome.policies]


def rivals(outcome: Outcome) -> list[str]:
    """The paper's algorithms to be compared with HyLinUCB on a click log; none if that was not run."""
    return present_in(outcome, (*REPRODUCED[1:], "HyRan")) if BEST in outcome.policies else []


def is_synthetic(outcome: Outcome) -> bool:
    """True if the experiment is on a synthetic log."""
    return paper.synthetic_log(outcome.experiment) is not None


def many_arms(outcome: Outcome) -> bool:
    """True if the experiment has several numbers of arms."""
    return len(outcome.experiment.arms) > 1


def has_several_runs(outcome: Outcome) -> bool:
    """True if there is more than one run, so that bands can be drawn."""
    return len(outcome.experiment.seeds) * outcome.experiment.trials > 1


def environment_means(outcome: Outcome, policy: str, arms: int, regret: FloatArray | None = None) -> FloatArray:
    """The mean of every environment over its trials, by default of the regret at T."""
    values = outcome.final(policy, arms) if regret is None else regret
    environments = outcome.environments(policy, arms)
    return np.array([values[environments == e].mean(axis=0) for e in np.unique(environments)])


# ------------------------------------------------------------------ names


def name_of(experiment: str) -> str:
    """An experiment's name for headings."""
    return _NAMES.get(experiment, experiment)


def under(protocol: str) -> str:
    """A protocol for headings."""
    return "own experiment" if protocol == "own" else f"{protocol} protocol"


def under_and_log(outcome: Outcome) -> str:
    """The protocol, and that the log is synthetic if it is, for headings."""
    return under(outcome.experiment.protocol) + (f" ({SYNTHETIC})" if is_synthetic(outcome) else "")


def shape_of(outcome: Outcome) -> str:
    """The experiment's name and size, for titles."""
    e = outcome.experiment
    rest = f"T = {e.horizon:,}" if many_arms(outcome) else f"K = {outcome.arms[0]}"
    return f"{name_of(e.name)}: d₁ = {e.d1}, d₂ = {e.d2}, {rest}"


def count(number: int, word: str) -> str:
    """A number of things.

    >>> count(1, "trial"), count(2, "trial")
    ('1 trial', '2 trials')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"


def runs_in_words(outcome: Outcome) -> str:
    """The number of runs, for captions."""
    e = outcome.experiment
    if e.log is not None:
        return f"{count(e.trials, 'trial')} on one {'synthetic log' if is_synthetic(outcome) else 'log'}"
    environments = len(e.seeds)
    runs = count(environments * e.trials, "run")
    return f"{runs} ({count(environments, 'environment')}, {count(e.trials, 'trial')} each)"


# ------------------------------------------------------------------ how much was run


def shortened(results: Results) -> list[str]:
    """Lengths that fall short of the paper's, one phrase per experiment."""
    phrases = []
    for outcome in in_order(results):
        e, family = outcome.experiment, paper.family_of(outcome.experiment.name)
        lengths: tuple[tuple[int, int, str], ...] = ()
        if e.log is not None:
            fitted = (int(e.log["train"]), paper.YAHOO_TRAIN, "rounds to fit on")
            lengths = ((e.horizon, paper.YAHOO_ROUNDS, "rounds"), fitted)[: 1 if "model_file" in e.log else 2]
        elif e.protocol != "own" and (family or paper.setting_of(e.name)):
            known = paper.records_of([family or e.name.removesuffix("-fresh")], [e.protocol])
            whole = next(each for each in known if each.name == e.name.removesuffix("-fresh"))
            lengths = (
                (e.horizon, whole.horizon, "rounds"),
                (e.trials, whole.trials, "trials per environment"),
                (len(e.seeds), len(whole.seeds), "environments"),
            )[: 3 if e.name == whole.name else 1]  # of fresh environments there are as many as were asked for
        parts = [f"{have:,} of {full:,} {what}" for have, full, what in lengths if have < full]
        if parts:
            phrases.append(f"{family.capitalize() if family else name_of(e.name)}: {', '.join(parts)}")
    return list(dict.fromkeys(phrases))


def unfinished(results: Results) -> list[str]:
    """Cases of the manifest without complete results."""
    phrases = []
    for record in results.manifest.get("experiments", []):
        outcome = results.outcome(record["name"], record["protocol"])
        lacking = [arms for arms in record["arms"] if outcome is None or arms not in outcome.arms]
        if lacking:
            arms = "" if record.get("log") else f", K = {', '.join(str(arms) for arms in lacking)}"
            phrases.append(f"{name_of(record['name'])}, {record['protocol']} protocol{arms}")
    return phrases


def stopped(results: Results) -> str:
    """A sentence on policies that play fewer rounds than others of the same experiment; empty if there are none."""
    stops: dict[str, list[str]] = {}
    for outcome in on_logs(results):
        for entry in outcome.experiment.policies:
            names = stops.setdefault(f"{entry.rounds or 0:,} of {outcome.experiment.horizon:,}", [])
            if entry.rounds is not None and entry.name not in names:
                names.append(entry.name)
    clauses = [f"the first {rounds} rounds by {join_names(names)}" for rounds, names in stops.items() if names]
    return f"Because some policies are slow, only {'; '.join(clauses)} were played." if clauses else ""


def synthetic_note(results: Results) -> str:
    """A warning where a synthetic log stands in for Yahoo's, else nothing."""
    if not any(is_synthetic(outcome) for outcome in results.outcomes.values()):
        return ""
    return (
        "The Yahoo experiment was played on a synthetic log in the format of Yahoo's, not on Yahoo's data: it shows "
        "that everything runs and says nothing about the paper's result. To use Yahoo's data, give --data DIR."
        f"{f' {rest}' if (rest := stopped(results)) else ''}"
    )
