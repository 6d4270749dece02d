"""The page's section on a click log."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from hybandits.experiments.record import Entry
from hybandits.experiments.results import Outcome, Results
from hybandits.report.figures.outcomes import (
    BEST,
    MADE,
    Figure,
    chance_regret,
    change,
    is_made,
    name_of,
    twins,
    under,
    under_and_made,
)
from hybandits.report.numbers import Excess, Row, excess_rows, on_logs, regret_rows
from hybandits.report.pictures import gallery_of
from hybandits.report.tables import html_table, interval_text, number, row_numbers, runs_of
from hybandits.report.words import made_note

_CLICKS = """A reward model x·θ + z·β is fitted to the clicks of the first rounds of a log of visits to Yahoo's front
page. Then the policies play the visits that follow: users, articles and pools are the log's, the choice of what to show
is the policy's, and the reward of a candidate is the fitted mean plus noise. So regret is measured against the fitted
model, not against clicks."""

_POSITIONS = """An arm is a position in the line's list of candidates, as in the released code, not an article as in the
paper's text: its own parameters belong to whatever article stands there."""

_DEFECT = """In the released code an algorithm learns from the reward of the candidate whose place in the line's list is
the algorithm's own place among the algorithms, not of the arm it chose; regret is computed for the arm it chose. The
published curves were made so. Beside each algorithm the same is run here with this defect."""


_CHANCE = """Choosing evenly among the candidates of every round, whoever the user is, loses this much in expectation. A
policy that has lost nearly as much is still exploring: its regret says little yet about how well it exploits. One that
has lost much more has settled on wrong arms."""


def click_log_title(results: Results) -> str:
    made = any(is_made(outcome) for outcome in on_logs(results))
    return "The experiment on Yahoo's click log" + (", on a made log" if made else "")


def click_log(results: Results, drawn: Sequence[Figure]) -> str:
    """The experiment on a click log: the log and the fit, what the defect does, regret, figures."""
    logged = on_logs(results)
    if not logged:
        return ""
    parts = [f"<p>{escape(_CLICKS)}</p>"]
    if note := made_note(results):
        parts.append(f'<p class="note">{escape(note)}</p>')
    if any((outcome.experiment.log or {})["arms"] != "articles" for outcome in logged):
        parts.append(f'<p class="note"><strong>Positions as arms.</strong> {escape(_POSITIONS)}</p>')
    parts.append(_log_tables(logged))
    if changes := [_defect_words(outcome) for outcome in logged if twins(outcome)]:
        listed = "".join(f"<li>{escape(change)}</li>" for change in changes)
        parts.append(f"<h3>What the defect does</h3>\n<p>{escape(_DEFECT)}</p>\n<ul>{listed}</ul>")
    rows, excesses = regret_rows(results), excess_rows(results)
    parts.append("<h3>Regret at T</h3>")
    if shares := [_shares_of_chance(outcome) for outcome in logged if chance_regret(outcome)]:
        listed = "".join(f"<li>{escape(share)}</li>" for share in shares)
        parts.append(f"<p>{escape(_CHANCE)}</p>\n<ul>{listed}</ul>")
    parts += [_clicks_table(outcome, rows, excesses) for outcome in logged]
    return "\n".join([*parts, gallery_of(drawn, "yahoo")])


def _defect_words(outcome: Outcome) -> str:
    changes = [change(outcome, name, twin, number) for name, twin in twins(outcome).items()]
    name = name_of(outcome.experiment.name)
    return f"{name}, {under_and_made(outcome)}, mean regret at T: {', '.join(changes)}."


def _shares_of_chance(outcome: Outcome) -> str:
    e, chance = outcome.experiment, chance_regret(outcome) or 0.0
    shares = [f"{name} {_share(float(outcome.final(name).mean()) / chance)}" for name in outcome.policies]
    return (
        f"{name_of(e.name)}, {under_and_made(outcome)}: even choice loses {number(chance)} in {e.horizon:,} rounds; of "
        f"that, {', '.join(shares)}."
    )


def _share(share: float) -> str:
    """A share in per cent, with a digit more where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def _log_tables(logged: Sequence[Outcome]) -> str:
    """What the log and the fit are, one table per experiment, and every protocol's parameters."""
    tables = []
    for name, found in groupby(sorted(logged, key=lambda o: o.experiment.name), key=lambda o: o.experiment.name):
        outcomes = list(found)
        facts: dict[str, str] = {}
        for outcome in outcomes:
            facts |= log_facts(outcome)
        made = f"; {MADE}" if is_made(outcomes[0]) else ""
        tables.append(
            html_table(("what", "value"), [list(facts.items())], caption=f"{name_of(name)}: log and fit{made}")
        )
    return "\n".join(tables)


def log_facts(outcome: Outcome) -> dict[str, str]:
    """The log, the fit and the parameters in words."""
    e, log = outcome.experiment, outcome.experiment.log or {}
    what, played = str(log["arms"]), outcome.arms[0]
    fitted, rank, parameters = int(log["trained_arms"]), int(log["rank"]), int(log["parameters"])
    made = log["made"]
    source = f"{log['kind']}, the user's copy of Yahoo's data"
    if made is not None:
        source = f"made: {made['rounds']:,} rounds from a known model, seed {made['seed']}; written like {log['kind']}"
    unfitted = log.get("unfitted_arms")
    new = f"{unfitted:,}" if unfitted is not None else f"at least {max(0, played - fitted):,}"
    unique = "" if rank == parameters else "; many fit alike, the one of smallest norm is taken"
    return {
        "log": source,
        "rounds fitted": f"{log['train']:,}, from the first on",
        "rounds played": f"{log['rounds']:,}, from round {log['start'] + 1:,} on",
        "features": f"d1 = {e.d1} shared, d2 = {e.d2} of each arm's own ({_FEATURES.get(log['features'], 'own map')})",
        "arms played": f"{played:,} {what}",
        "arms in the fit": f"{fitted:,} {what}; {new} of those played are not among them and have beta = 0",
        "rank of the fit": f"{rank:,} of {parameters:,} parameters{unique}",
        "residual of the fit": f"standard deviation {log['residual']:.4g}",
        "left out of the fit": f"{log['left_out']:,} of {log['train']:,} rounds: what was shown is not a candidate",
        f"parameters, {under(e.protocol)}": f"noise {e.noise:g}; {_tunings(e.policies)}",
    }


_FEATURES = {"das": "x: user times article, z: article", "li": "x: user times article, z: user"}


def _tunings(entries: Sequence[Entry]) -> str:
    """Exploration and ridge of the confidence-bound algorithms."""
    said = []
    for entry in entries:
        kind = (entry.settings.get("exploration") or {}).get("kind")
        if kind and entry.learns_from is None:
            ridge = entry.settings.get("ridge")
            ridged = "the ridge of the theorem" if ridge is None else f"ridge {ridge:,.0f}"
            said.append(f"{entry.name} {kind}, {ridged}")
    return "; ".join(said) or "no algorithm with a confidence bound"


def _clicks_table(outcome: Outcome, rows: Sequence[Row], excesses: Sequence[Excess]) -> str:
    """Regret at T, and beyond HyLinUCB's; intervals where there are several trials."""
    e = outcome.experiment
    mine = [row for row in rows if (row.experiment, row.protocol) == (e.name, e.protocol)]
    beyond = {x.policy: x for x in excesses if (x.experiment, x.protocol) == (e.name, e.protocol)}
    several, known = mine[0].runs > 1, any(x.published is not None for x in beyond.values())
    head = ["policy", "mean", *(["95 % interval"] if several else []), BEYOND_BEST]
    head += [*(["its 95 % interval"] if several else []), *(["published beyond it"] if known else [])]
    body = []
    for row in mine:
        found = beyond.get(row.policy)
        cells = [row.policy, *row_numbers(row)[: 2 if several else 1], excess_text(row.policy, found)]
        cells += [interval_text(found.low, found.high) if found else "-"] if several else []
        cells += [number(found.published) if found else "-"] if known else []
        body.append(cells)
    if (chance := chance_regret(outcome)) is not None:
        lost = [EVEN_CHOICE, number(chance), *(["-"] if several else []), chance_beyond(outcome)]
        body.append([*lost, *["-"] * (len(head) - len(lost))])
    made = f"; {MADE}" if is_made(outcome) else ""
    caption = f"{name_of(e.name)}, {under(e.protocol)}: regret after {e.horizon:,} rounds; {runs_of(mine[0])}{made}"
    return html_table(head, [body], numeric=range(1, len(head)), caption=caption)


def chance_beyond(outcome: Outcome) -> str:
    """What even choice loses beyond HyLinUCB, as `excess_text` has it."""
    chance = chance_regret(outcome)
    if chance is None or BEST not in outcome.policies:
        return "-"
    return _signed(chance - float(outcome.final(BEST).mean()))


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"


def excess_text(policy: str, found: Excess | None) -> str:
    if found is None:
        return "0" if policy == BEST else "-"
    return _signed(found.mean)


BEYOND_BEST = f"beyond {BEST}"
EVEN_CHOICE = "even choice (expected)"
"""The policy that chooses evenly among candidates; it is not run, as its expected regret is known."""
