"""How much was run: of the paper or one's own, at which lengths, what is missing, and on which log."""

from __future__ import annotations

from typing import NamedTuple

from hybandits import paper
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Results
from hybandits.experiments.worlds import split_settings
from hybandits.report.figures.outcomes import is_synthetic, name_of
from hybandits.report.numbers import in_order, on_logs


def of_the_paper(results: Results) -> bool:
    """Whether any of the paper's experiments is among them."""
    return any(protocol != "own" for protocol in results.protocols)


def shortened(results: Results) -> list[str]:
    """How what was run falls short of the paper's lengths, one phrase per experiment."""
    phrases = []
    for outcome in in_order(results):
        e, setting = outcome.experiment, paper.setting_of(outcome.experiment.name)
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
            if e.name != setting.name:  # fresh environments have one trial, and as many as were asked for
                lengths = lengths[:1]
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
    """In or on what kind of world policies played."""
    run: str
    """What a run is."""


_OWN = "whose parameters are the arm's own"
_PARTS = "a part x·θ, whose parameters all arms share,"
_TRIAL = (
    "played once with a draw of the noise of its own (a trial). All policies meet the same environments and the same "
    "noise."
)
_RUN = f"one environment (its parameters and all its contexts) {_TRIAL}"
_SEEDED = f"one environment (everything that its seed decides) {_TRIAL}"

LINEAR_WORDS = WorldWords(f"{_PARTS} a part z·β, {_OWN}, and noise", "in a synthetic world", _RUN)

KIND_WORDS = {
    "linear": LINEAR_WORDS,
    "churn": LINEAR_WORDS,
    "clicks": WorldWords(
        f"1 for a click and 0 for none. The log odds of a click are a base rate, {_PARTS} and a part z·β, {_OWN}",
        "in a synthetic world of clicks",
        _RUN,
    ),
    "classification": WorldWords(
        "1 if it is the class of the row that the round shows and 0 if not. The arms are the classes, and z are the "
        "features of the row",
        "on a data set for classification",
        "the rows in an order of their own (an environment). All policies see the same rows in the same order, and "
        "there is no noise.",
    ),
}
KIND_WORDS["products"] = KIND_WORDS["clicks"]


def world_words(results: Results) -> WorldWords:
    """What to say of the worlds of these results, be they of one kind or of several."""
    records = [outcome.experiment for outcome in in_order(results)]
    kinds = {split_settings(record.world_settings)[0] for record in records}
    if len(kinds) > 1:
        return WorldWords(
            "what the world of the experiment gives, see “What was run”", "in worlds of several kinds", _SEEDED
        )
    kind = kinds.pop()
    words = KIND_WORDS.get(
        kind, WorldWords(f"what the world {kind} gives, a class of one's own", f"in the world {kind}", _SEEDED)
    )
    if len(records) > 1:
        return words
    return words._replace(rewards=". ".join([words.rewards, *_peculiarities(records[0])]))


def _peculiarities(record: Experiment) -> list[str]:
    """What is special about the world of a record, a phrase each."""
    _, own, relayed = split_settings(record.world_settings)
    settings = own | relayed
    phrases = {
        "jumps": "All parameters are drawn anew after every {:.0%} of the rounds".format(1 / (own.get("jumps", 0) + 1)),
        "walk": f"Parameters walk, and have forgotten where they were after about {own.get('walk', 0):,g} rounds",
        "every": f"A tenth of the arms is replaced after every {own.get('every', 0):,} rounds",
        "factor": f"Rewards are multiplied by {relayed.get('factor', 1):g}",
        "offset": f"All rewards have {relayed.get('offset', 0):g} added",
        "delay": f"A reward is learned {relayed.get('delay', 0):,} rounds after its choice",
    }
    return [phrase for name, phrase in phrases.items() if name in settings]


def synthetic_note(results: Results) -> str:
    """A warning where a synthetic log stands in for Yahoo's, else nothing."""
    if not any(is_synthetic(outcome) for outcome in on_logs(results)):
        return ""
    return (
        "The Yahoo experiment was played on a synthetic log in the format of Yahoo's, not on Yahoo's data: it shows "
        "that everything runs and says nothing about the paper's result. To use Yahoo's data, give --data DIR."
    )
