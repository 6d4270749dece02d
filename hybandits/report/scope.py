"""How much was run: of the paper or one's own, at which lengths, what is missing, and on which log."""

from __future__ import annotations

from typing import NamedTuple

from hybandits import paper
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Results
from hybandits.foundation.own_classes import is_import_path
from hybandits.report.figures.outcomes import is_synthetic, name_of
from hybandits.report.numbers import in_order, on_logs
from hybandits.simulation.kinds import split_settings


def of_the_paper(results: Results) -> bool:
    """Whether any of the paper's experiments is among them."""
    return any(protocol != "own" for protocol in results.protocols)


def shortened(results: Results) -> list[str]:
    """How what was run falls short of the paper's lengths, one phrase per experiment."""
    phrases = []
    for outcome in in_order(results):
        e, setting = outcome.experiment, paper.SETTINGS.get(outcome.experiment.name)
        lengths: tuple[tuple[int, int, str], ...] = ()
        if e.log is not None:
            fitted = (int(e.log["train"]), paper.YAHOO_TRAIN, "rounds to fit on")
            lengths = ((e.horizon, paper.YAHOO_ROUNDS, "rounds"), fitted)
        elif setting is not None and e.protocol != "own":
            lengths = (
                (e.horizon, setting.horizon, "rounds"),
                (e.trials, setting.trials, "trials per environment"),
                (len(e.seeds), setting.environments, "environments"),
            )
        parts = [f"{have:,} of {full:,} {what}" for have, full, what in lengths if have < full]
        if parts:
            phrases.append(f"{name_of(e.name)}: {', '.join(parts)}")
    return list(dict.fromkeys(phrases))


def unfinished(results: Results) -> list[str]:
    """Cases that the manifest names and that have no complete results."""
    phrases = []
    for record in results.manifest.get("experiments", []):
        outcome = results.outcome(record["name"], record["protocol"])
        lacking = [arms for arms in record["arms"] if outcome is None or arms not in outcome.arms]
        if lacking:
            arms = "" if record.get("log") else f", K = {', '.join(str(arms) for arms in lacking)}"
            phrases.append(f"{name_of(record['name'])}, {record['protocol']} protocol{arms}")
    return phrases


def lengths(results: Results) -> list[tuple[list[str], Experiment]]:
    """The experiments' names, those of equal length together, and one experiment of each length."""
    alike: dict[tuple[int, int, int, bool], tuple[list[str], Experiment]] = {}
    for outcome in in_order(results):
        e = outcome.experiment
        names, _ = alike.setdefault((e.horizon, len(e.seeds), e.trials, e.log is None), ([], e))
        if name_of(e.name) not in names:
            names.append(name_of(e.name))
    return list(alike.values())


class WorldWords(NamedTuple):
    """What the page says of the worlds that were played in."""

    rewards: str
    """How a reward comes about."""
    where: str
    """What kind of world it is."""
    environment: str
    """What an environment is."""


_PARTS = "a part x·θ, whose parameters all arms share, and a part z·β, whose parameters are the arm's own"

LINEAR_WORDS = WorldWords(
    "a part x·θ, whose parameters all arms share, a part z·β, whose parameters are the arm's own, and noise",
    "a synthetic world",
    "its parameters and all its contexts",
)
CLICK_WORDS = WorldWords(
    f"1 for a click and 0 for none. The log odds of a click are a base rate, {_PARTS}",
    "a synthetic world of clicks",
    "its parameters and all its contexts",
)
CLASS_WORDS = WorldWords(
    "1 if it is the class of the row that the round shows and 0 if not. The arms are the classes, and z are the row's "
    "features",
    "a data set for classification",
    "an order of the rows",
)


def world_words(results: Results) -> WorldWords:
    """What to say of the worlds of these results; of the paper's world if there are several kinds."""
    kinds = {split_settings(outcome.experiment.world_settings)[0] for outcome in in_order(results)}
    if len(kinds) > 1:
        return LINEAR_WORDS._replace(
            rewards="what the world of the experiment gives, see “What was run”", where="worlds of several kinds",
            environment="everything that its seed decides",
        )  # fmt: skip
    kind = kinds.pop()
    if is_import_path(kind):
        return WorldWords(
            f"what the world {kind} gives, a class of the user's own",
            f"the world {kind}",
            "everything that its seed decides",
        )
    others = {"clicks": CLICK_WORDS, "products": CLICK_WORDS, "classification": CLASS_WORDS}
    return others.get(kind, LINEAR_WORDS)


def synthetic_note(results: Results) -> str:
    """A warning where a synthetic log stands in for Yahoo's, else nothing."""
    if not any(is_synthetic(outcome) for outcome in on_logs(results)):
        return ""
    return (
        "The Yahoo experiment was played on a synthetic log in the format of Yahoo's, not on Yahoo's data: it shows "
        "that everything runs and says nothing about the paper's result. To use Yahoo's data, give --data DIR."
    )
