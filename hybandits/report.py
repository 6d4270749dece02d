"""Results, figures and verdicts to one page, to tables for machines, and to a summary for the terminal.

Runs nothing but the pictures. The page is a single file that needs no network and no scripts; the same results give the
same bytes.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group

from hybandits import claims, figures, listings, paper
from hybandits.checks import Doubles
from hybandits.claims import Verdict
from hybandits.engines import Engine
from hybandits.experiments import Entry, Outcome, Results, read_results, write_atomically
from hybandits.figures import BEST, MADE, Figure, is_made, name_of, twins, under
from hybandits.listings import Listing

CONFIDENCE = 0.95

TOLERANCE = 0.01
"""A mean agrees with a published read-out within this share of it, or within the error of the read-out."""
HYRAN_TOLERANCE = 0.10
"""The same for HyRan, whose own randomness was not seeded when the figure was made."""

LARGEST_SVG = 300_000
"""Figures with more bytes than this are embedded as PNG."""

PROTOCOLS = {
    "released": "what the code published with the paper does: its environments, drawn again from its seeds; noise of "
    "standard deviation 0.01; a ridge of 0.1; exploration scaled by the noise. It made the published figure, so "
    "results can be compared number by number.",
    "written": "what the text of the paper says: features and parameters uniform in unit balls, noise of standard "
    "deviation 0.1 (variance 0.01), ridge and exploration as in the theorems. No published number was made this way; "
    "claims can be compared, numbers cannot.",
}

YAHOO_PROTOCOLS = {
    "released": f"noise of standard deviation {paper.YAHOO_NOISE['released']:g}; ridges of "
    f"{paper.YAHOO_RIDGE['LinUCB']:,.0f} (LinUCB, HyLinUCB) and {paper.YAHOO_RIDGE['DisLinUCB']:,.0f} (DisLinUCB); "
    f"exploration scaled by a noise of {paper.YAHOO_SIGMA:g}, for norms of theta and x up to 2, of beta and z up to 1. "
    "The fit is the text's, least squares, in both protocols; the released code goes over the first 4,096 lines again "
    "and again.",
    "written": f"noise of standard deviation {paper.YAHOO_NOISE['written']:g} (variance 0.0001), ridge and exploration "
    "as in the theorems.",
}
"""The same for the experiment on a click log."""

POLICIES = {
    "HyLinUCB": "the paper's algorithm: estimates shared and own parameters together, explores as if there were "
    "d1 + d2 parameters only",
    "LinUCB": "the same estimate, explores for all d1 + d2 K parameters",
    "DisLinUCB": "every arm learns by itself from (x, z); nothing is shared",
    "HyRan (released)": "the baseline as the paper's code runs it: the blocks that couple shared and own parameters "
    "are never filled in",
    "HyRan": "the baseline (Kim, Paik and Oh 2023) with these blocks",
    "SupLinUCB": "a baseline in levels (Chu et al. 2011); run but not plotted by the paper's code",
    "HyThompson": "draws all parameters from their joint posterior and plays the best arm of that draw (not in the "
    "paper)",
    "Greedy": "plays the highest estimate, never explores on purpose (not in the paper)",
}


# ------------------------------------------------------------------ numbers


@dataclass(frozen=True, kw_only=True)
class Row:
    """Regret of one policy in one case after t rounds, over all runs, and what was published."""

    experiment: str
    protocol: str
    arms: int
    policy: str
    t: int
    runs: int
    environments: int
    mean: float
    sd: float | None
    """Standard deviation of the environments' means; None with one environment."""
    low: float | None
    high: float | None
    """95 % interval of the mean; None where there is nothing to tell it from."""
    lowest: float
    highest: float
    published: float | None = None
    ratio: float | None = None
    """Ours over published."""
    within: bool | None = None
    """Whether the two agree; None where they are not of the same environments."""


class _Series(NamedTuple):
    """All runs of one policy in one case."""

    outcome: Outcome
    policy: str
    arms: int
    regret: Doubles
    environments: NDArray[Any]

    @property
    def units(self) -> NDArray[Any]:
        """What is independent: environments, or trials where there is one environment and each has its own contexts,
        or where one log is all there is."""
        alone = len(np.unique(self.environments)) == 1
        e = self.outcome.experiment
        trials = alone and (e.fresh_contexts or e.log is not None)
        return np.arange(len(self.environments)) if trials else self.environments

    def means(self) -> Doubles:
        """Of the environments (environments, points)."""
        return np.array([self.regret[self.environments == e].mean(axis=0) for e in np.unique(self.environments)])

    def row(self, t: int) -> Row:
        e = self.outcome.experiment
        values = self.regret[:, e.points.index(t)]
        means = self.means()[:, e.points.index(t)]
        found = claims.interval(values, self.units, CONFIDENCE)
        mean = float(values.mean())
        absolute = e.protocol != "own" and e.log is None  # of a log, regret beyond HyLinUCB's is published
        known = paper.published(e.name, self.policy, self.arms).get(t) if absolute else None
        return Row(
            experiment=e.name,
            protocol=e.protocol,
            arms=self.arms,
            policy=self.policy,
            t=t,
            runs=len(values),
            environments=len(means),
            mean=mean,
            sd=float(means.std(ddof=1)) if len(means) > 1 else None,
            low=found.low if found else None,
            high=found.high if found else None,
            lowest=float(values.min()),
            highest=float(values.max()),
            published=known,
            ratio=None if known is None else mean / known,
            within=None if known is None or not _comparable(self.outcome) else agrees(self.policy, mean, known),
        )


def agrees(policy: str, mean: float, published: float) -> bool:
    """Whether a mean is the published one, as far as that is known.

    >>> agrees("LinUCB", 3040.0, 3016.0), agrees("LinUCB", 3050.0, 3016.0), agrees("HyLinUCB", 206.0, 197.0)
    (True, False, True)
    """
    return abs(mean - published) <= tolerance(policy, published)


def tolerance(policy: str, published: float) -> float:
    """How far a mean may be from a published read-out."""
    share = HYRAN_TOLERANCE if policy == "HyRan (released)" else TOLERANCE
    return max(share * published, paper.READ_OUT_ERROR)


def _comparable(outcome: Outcome) -> bool:
    """Whether the published figure is of the same environments."""
    e = outcome.experiment
    known = e.protocol == "released" and e.log is None
    return known and e.seeds == paper.environment_seeds(paper.RELEASED_SEED, len(e.seeds))


def _ordered(results: Results) -> list[Outcome]:
    """By protocol, the paper's experiments in its order."""
    places = {(p, n): i for i, (p, n) in enumerate((p, n) for p in results.protocols for n in paper.SETTINGS)}
    found = sorted(results.outcomes.items(), key=lambda item: (places.get(item[0][::-1], len(places)), item[0]))
    return [outcome for protocol in results.protocols for (_, p), outcome in found if p == protocol]


def _series(results: Results) -> Iterator[_Series]:
    for outcome in _ordered(results):
        for arms in outcome.arms:
            for policy in outcome.policies:
                regret, environments = outcome.regret(policy, arms), outcome.environments(policy, arms)
                yield _Series(outcome, policy, arms, regret, environments)


def regret_rows(results: Results) -> list[Row]:
    """Regret at T of every policy in every case."""
    return [series.row(series.outcome.experiment.horizon) for series in _series(results)]


def read_out_rows(results: Results) -> list[Row]:
    """Regret at every published read-out of the same environments."""
    return [
        series.row(t)
        for series in _series(results)
        if _comparable(series.outcome)
        if series.outcome.experiment.protocol != "own"
        for t in paper.published(series.outcome.experiment.name, series.policy, series.arms)
        if t in series.outcome.experiment.points
    ]


@dataclass(frozen=True, kw_only=True)
class Excess:
    """Regret at T beyond HyLinUCB's in the same trial, of one policy on a click log."""

    experiment: str
    protocol: str
    policy: str
    t: int
    runs: int
    mean: float
    low: float | None
    high: float | None
    """95 % interval of the mean over trials; None with one."""
    lowest: float
    highest: float
    published: float | None
    """Of the figure, which has another fit, positions as arms and a defect; None for a made log."""


def published(experiment: str, policy: str, arms: int | None = None) -> Mapping[int, float]:
    """Read-outs {rounds: regret}; for the click log {rounds: regret beyond HyLinUCB's}, released HyRan being HyRan."""
    if experiment not in claims.YAHOO:
        return paper.published(experiment, policy, arms)
    name = {"HyRan (released)": "HyRan", "HyRan": ""}.get(policy, policy)
    return paper.PUBLISHED_YAHOO.get(name, {})


def _logged(results: Results) -> list[Outcome]:
    """What was run on a click log."""
    return [outcome for outcome in _ordered(results) if outcome.experiment.log is not None]


def _any_synthetic(results: Results) -> bool:
    return any(outcome.experiment.log is None for outcome in results.outcomes.values())


def excess_rows(results: Results) -> list[Excess]:
    """What every other policy lost beyond HyLinUCB on click logs; none where that was not run."""
    rows = []
    for outcome in _logged(results):
        e = outcome.experiment
        for policy in outcome.policies:
            if policy == BEST or BEST not in outcome.policies:
                continue
            values = outcome.final(policy) - outcome.final(BEST)
            found = claims.interval(values, np.arange(len(values)), CONFIDENCE)
            real = e.protocol == "released" and not is_made(outcome)
            rows.append(
                Excess(
                    experiment=e.name, protocol=e.protocol, policy=policy, t=e.horizon, runs=len(values),
                    mean=float(values.mean()), low=found.low if found else None, high=found.high if found else None,
                    lowest=float(values.min()), highest=float(values.max()),
                    published=published(e.name, policy).get(e.horizon) if real else None,
                )
            )  # fmt: skip
    return rows


# ------------------------------------------------------------------ files


def write_report(folder: Path, *, results: Results | None = None, engine: Engine | None = None) -> Path:
    """Write figures/, report/index.html, report/summary.json and report/regret.csv into a results folder.

    Returns the path of the page. ResultsError if the folder holds no results. engine: where to draw the figures; in
    this process if left out.
    """
    results = read_results(folder) if results is None else results
    drawn = figures.draw_all(results, folder / "figures", published, read_out_error=paper.READ_OUT_ERROR, engine=engine)
    verdicts = claims.judge(results, confidence=CONFIDENCE)
    rows, read_outs = regret_rows(results), read_out_rows(results)
    out = folder / "report"
    _write_text(out / "regret.csv", regret_csv(results))
    summary = summary_of(results, verdicts, rows, read_outs)
    _write_text(out / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
    _write_text(out / "index.html", page(results, drawn, verdicts, rows, read_outs))
    return out / "index.html"


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda name: Path(name).write_text(text, encoding="utf-8", newline="\n"))


CSV_COLUMNS = (
    "experiment", "protocol", "arms", "policy", "t", "mean", "sd_over_environments", "lowest", "highest", "runs",
)  # fmt: skip


def regret_csv(results: Results) -> str:
    """All curves, one line per policy, case and round."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for series in _series(results):
        e, means = series.outcome.experiment, series.means()
        several = len(means) > 1
        spread = means.std(axis=0, ddof=1) if several else np.zeros(means.shape[1])
        middle, low, high = series.regret.mean(axis=0), series.regret.min(axis=0), series.regret.max(axis=0)
        for i, t in enumerate(e.points):
            values = f"{middle[i]:.8g}", f"{spread[i]:.6g}" if several else "", f"{low[i]:.8g}", f"{high[i]:.8g}"
            lines.writerow((e.name, e.protocol, series.arms, series.policy, t, *values, len(series.regret)))
    return text.getvalue()


def summary_of(
    results: Results, verdicts: Sequence[Verdict], rows: Sequence[Row], read_outs: Sequence[Row]
) -> dict[str, Any]:
    """What the page says, as JSON-able values."""
    known = ("version", "scale", "seed", "command", "versions")
    return {
        "format": 1,
        **{key: results.manifest[key] for key in known if key in results.manifest},
        "verdicts": [
            {name: getattr(verdict, name) for name in ("claim", "protocol", "title", "verdict", "summary")}
            | {"statement": verdict.statement, "test": verdict.test}
            | {"evidence": [{"what": e.what, "value": e.value, "verdict": e.verdict} for e in verdict.evidence]}
            for verdict in verdicts
        ],
        "regret_at_T": [asdict(row) for row in rows],
        "read_outs": [asdict(row) for row in read_outs],
        **_logs_for_machines(results),
    }


def _logs_for_machines(results: Results) -> dict[str, Any]:
    """What there is to say about click logs, if any; of the model, its size is enough."""
    logged = _logged(results)
    if not logged:
        return {}
    kept = [
        {"experiment": o.experiment.name, "protocol": o.experiment.protocol}
        | {name: value for name, value in (o.experiment.log or {}).items() if name != "model"}
        for o in logged
    ]
    return {"logs": kept, "regret_beyond_HyLinUCB_at_T": [asdict(row) for row in excess_rows(results)]}


# ------------------------------------------------------------------ the page


def page(
    results: Results,
    drawn: Sequence[Figure],
    verdicts: Sequence[Verdict],
    rows: Sequence[Row],
    read_outs: Sequence[Row],
) -> str:
    """The whole page as one HTML document."""
    rows = [row for row in rows if row.experiment not in claims.YAHOO]
    known, again = any(row.published is not None for row in rows), _of_the_paper(results)
    sections = [
        ("verdicts", "Verdicts", _overview(verdicts)),
        ("panels", "The published figure again", _gallery(drawn, "panels")),
        ("regret", "Regret at T" + (" against the published figure" if known else ""), _regret(rows, read_outs)),
        ("settings", "Each setting by itself" if again else "Regret against rounds or arms", _gallery(drawn, "regret")),
        ("yahoo", _clicks_title(results), _clicks(results, drawn)),
        ("claims", "Claims in detail", _claims(verdicts)),
        ("diversity", "The diversity assumption", _with_words(_DIVERSITY, _gallery(drawn, "diversity"))),
        ("hyran", "What the defect in HyRan changes", _with_words(_HYRAN, _gallery(drawn, "hyran"))),
        ("beyond", "Beyond the paper", _with_words(_BEYOND, _gallery(drawn, "beyond"))),
        ("reproduce", "How to reproduce" + (", and limits" if again else ""), _reproduce(results)),
    ]
    sections = [(anchor, title, body) for anchor, title, body in sections if body]
    links = "".join(f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title, _ in sections)
    title = _TITLE if again else _OWN_TITLE
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<header>\n<h1>{title}</h1>\n{_introduction(results)}\n</header>",
            f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>',
            *(_section(anchor, title, body) for anchor, title, body in sections),
            f"</main>\n<footer>Written by hybandits {escape(str(results.manifest.get('version', '')))}.</footer>",
            "</body>\n</html>\n",
        ]
    )


_TITLE = "Hybrid linear bandits: Das &amp; Sinha 2024 run again"
_OWN_TITLE = "Hybrid linear bandits: an experiment"

_MODEL = """In every round a policy is shown K candidates, called arms, chooses one and earns its reward: a part x·θ
whose parameters all arms share, a part z·β that is the arm's own, and noise."""

_AGAIN = """Das and Sinha (<cite>Linear Contextual Bandits with Hybrid Payoff: Revisited</cite>, 2024) propose the
algorithm HyLinUCB for this and compare it with three others. This page is what came out when their {which} run \
again; it says claim by claim whether that agrees with the paper."""

_OWN = "This page shows what the policies lost in a synthetic world."

_DIVERSITY = """The better bounds of the paper rest on an assumption: that whatever the algorithm chooses, the features
it sees point in all directions. Then the smallest eigenvalues of the shared block V and of every arm's block W grow
linearly, the cross blocks B grow like a square root only, and shared and own parameters decouple. These are measured
here while the algorithms run, in every trial with new contexts."""

_HYRAN = """In the code published with the paper, HyRan never fills in the blocks that couple shared and own parameters,
so what was plotted is not a hybrid algorithm. Here it runs both ways: bug for bug (“HyRan (released)”, which is what
published read-outs are compared with) and with the blocks (“HyRan”)."""

_BEYOND = """Two policies that the paper does not have, beside the best of those it has: posterior sampling of all
parameters together, and no exploration at all. They see the same contexts and noise as the others."""


def _section(anchor: str, title: str, body: str) -> str:
    heading = f'<h2 id="{anchor}-title">{escape(title)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n{heading}\n{body}\n</section>'


def _with_words(words: str, body: str) -> str:
    return f"<p>{escape(words)}</p>\n{body}" if body else ""


def _introduction(results: Results) -> str:
    synthetic, logged = _any_synthetic(results), bool(_logged(results))

    def words(usual: str, on_a_log: str) -> str:
        return " ".join([usual] * synthetic + [f"On the click log: {on_a_log}" if synthetic else on_a_log] * logged)

    terms = {
        "Regret": "what a policy has lost by not always choosing the best candidate: the best mean reward of the round "
        "minus the mean reward of its choice, summed over the rounds. Lower is better; a curve that flattens shows "
        "learning.",
        "Run": words(
            "one environment (parameters, and all contexts) played once with its own draw of the noise (a trial). "
            "All policies meet the same environments and the same noise.",
            "the rounds of the log played once with their own draw of the noise (a trial). All policies meet the same "
            "rounds and the same noise.",
        ),
        "Band": "from the lowest to the highest run; the line in it is the mean.",
        "Interval": words(
            "where the mean over all possible environments lies with 95 % confidence (Student's t). It is "
            "taken over environments, not over runs, since the trials of an environment resemble each other.",
            "where the mean over all possible trials on this log lies with 95 % confidence (Student's t). There is one "
            "log, so nothing is said about others.",
        ),
        **{
            f"{name.capitalize()} protocol": words(PROTOCOLS[name], YAHOO_PROTOCOLS[name])
            for name in results.protocols
            if name in PROTOCOLS
        },
    }
    which = "experiment on a click log was" if logged else "synthetic\nexperiments were"
    again = _AGAIN.format(which="experiments were" if logged and synthetic else which)
    return f"""<p class="lead">{_MODEL} {again if _of_the_paper(results) else _OWN}</p>
{_scale(results)}{_terms(terms)}
<details><summary>The policies</summary>
{_terms(_policies(results))}</details>
<details><summary>What was run</summary>
{_run_table(results)}</details>"""


def _of_the_paper(results: Results) -> bool:
    return any(protocol != "own" for protocol in results.protocols)


def _terms(terms: Mapping[str, str]) -> str:
    listed = (f"<div><dt>{escape(term)}</dt><dd>{escape(words)}</dd></div>" for term, words in terms.items())
    return f'<dl class="terms">{"".join(listed)}</dl>'


def _policies(results: Results) -> dict[str, str]:
    if not _of_the_paper(results):
        entries = [entry for outcome in results.outcomes.values() for entry in outcome.experiment.policies]
        return {entry.name: _settings_of(entry) for entry in entries}
    present = {policy for outcome in results.outcomes.values() for policy in outcome.policies}
    described = {name: words for name, words in POLICIES.items() if name in present}
    if any(twins(outcome) for outcome in _logged(results)):
        described["…, defect"] = (
            "on the click log, the same fed as by the released code: with the reward of the candidate in the "
            "algorithm's own place, not of the arm it chose"
        )
    return described


def _settings_of(entry: Entry) -> str:
    """A policy's class and settings in words."""
    settings = ", ".join(f"{name} = {value}" for name, value in entry.settings.items())
    return f"{entry.policy} with {settings or 'its defaults'}"


def _made_by(results: Results) -> str:
    """Command, scale, seed and versions, as far as the manifest knows them."""
    manifest = results.manifest
    facts = {"scale": manifest.get("scale"), "seed": manifest.get("seed"), "hybandits": manifest.get("version")}
    facts |= dict(manifest.get("versions", {}))
    known = [[str(name), str(value)] for name, value in facts.items() if value is not None]
    command = command_of(results)
    made = f"<p>The command is</p>\n<pre>{escape(command)}</pre>\n" if command else ""
    return made + _table(("what", "value"), [known])


def shortened(results: Results) -> list[str]:
    """How what was run falls short of the paper's lengths, one phrase per experiment."""
    phrases = []
    for outcome in _ordered(results):
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
    """Cases that were asked for and have no complete results."""
    phrases = []
    for record in results.manifest.get("experiments", []):
        outcome = results.outcome(record["name"], record["protocol"])
        lacking = [arms for arms in record["arms"] if outcome is None or arms not in outcome.arms]
        if lacking:
            arms = "" if record.get("log") else f", K = {', '.join(str(arms) for arms in lacking)}"
            phrases.append(f"{name_of(record['name'])}, {record['protocol']} protocol{arms}")
    return phrases


def _scale(results: Results) -> str:
    short, lacking = shortened(results), unfinished(results)
    text = ""
    if short:
        text += (
            '<p class="note"><strong>This is the short version.</strong> Everything is run with the paper\'s '
            f"parameters, but not to its full length: {escape('; '.join(short))}. Verdicts and numbers are of these "
            "lengths.</p>\n"
        )
    elif _of_the_paper(results) and not lacking:
        text += "<p>Everything here was run at the paper's full length: all rounds, environments and trials.</p>\n"
    if note := made_note(results):
        text += f'<p class="note"><strong>Made log.</strong> {escape(note)}</p>\n'
    if lacking:
        text += f'<p class="note"><strong>Not finished:</strong> {escape("; ".join(lacking))}.</p>\n'
    scale, command = results.manifest.get("scale"), command_of(results)
    made = f", made by <code>{escape(command)}</code>" if command else ""
    named = f"Scale: {escape(str(scale))}. " if scale else ""
    return f'{text}<p class="soft">{named}{escape(_lengths(results))}{made}.</p>\n'


def made_note(results: Results) -> str:
    """A warning where a made log stands in for Yahoo's, else nothing."""
    if not any(is_made(outcome) for outcome in _logged(results)):
        return ""
    return (
        "The Yahoo experiment was played on a made log in the format of Yahoo's, not on Yahoo's data: it shows how "
        "everything runs and says nothing about the paper's result. With the data: --data DIR."
    )


def command_of(results: Results) -> str:
    """The command that gives these results, if it is known or can be told from the records; else nothing."""
    manifest = results.manifest
    if manifest.get("command"):
        return str(manifest["command"])
    records = manifest.get("experiments", [])
    known = (*paper.SETTINGS, *claims.YAHOO)
    if "scale" not in manifest or any(record["name"] not in known for record in records):
        return ""
    synthetic = [record for record in records if record["name"] in paper.SETTINGS]
    # One command plays the log with articles or with positions as arms: two of them if there are results of both.
    logged = [found for name in claims.YAHOO if (found := [record for record in records if record["name"] == name])]
    if not logged:
        return _command(manifest, synthetic, [])
    first, *others = logged
    return " && ".join([_command(manifest, synthetic, first), *(_command(manifest, [], other) for other in others)])


def _command(
    manifest: Mapping[str, Any], synthetic: Sequence[Mapping[str, Any]], logged: Sequence[Mapping[str, Any]]
) -> str:
    """The command for these records; those in `logged` are of the click log and differ by their protocol alone."""
    records = [*synthetic, *logged]
    names = [name for name in paper.SETTINGS if any(record["name"] == name for record in synthetic)]
    entries = [entry for record in records for entry in record["policies"]]
    protocols = sorted({record["protocol"] for record in records})
    present = list(dict.fromkeys(entry["name"] for entry in entries if entry.get("learns_from") is None))
    every = {policy for name in names for policy in paper.SETTINGS[name].policies}
    every |= set(paper.YAHOO_POLICIES) if logged else set()
    named = [*names, "yahoo"] if logged else names if len(names) < len(paper.SETTINGS) else []
    words = ["hybandits reproduce", *named, f"--scale {manifest['scale']}"]
    words += [f"--protocol {protocols[0]}"] if len(protocols) == 1 else []
    words += [f"--seed {manifest['seed']}"] if manifest.get("seed", paper.RELEASED_SEED) != paper.RELEASED_SEED else []
    words += [f'--policies "{",".join(present)}"'] if set(present) != every else []
    return " ".join([*words, *(_log_options(logged[0], str(manifest["scale"])) if logged else [])])


def _log_options(record: Mapping[str, Any], scale: str) -> list[str]:
    """Options of `reproduce yahoo` that differ from its defaults."""
    log = record["log"]
    usual = paper.QUICK_YAHOO if scale == "quick" else (paper.YAHOO_TRAIN, paper.YAHOO_ROUNDS)
    words = ["--data DIR"] if log["made"] is None else []
    lengths = zip(("train", "rounds"), usual, strict=True)
    words += [f"--{name} {log[name]}" for name, length in lengths if log[name] != length]
    words += [f"--trials {record['trials']}"] if record["trials"] != 1 else []
    words += [f"--arms {log['arms']}"] if log["arms"] != "articles" else []
    return words + ["--released-defect"] * any(entry.get("learns_from") is not None for entry in record["policies"])


def _lengths(results: Results) -> str:
    """Rounds, environments and trials of every experiment, those that are alike together."""
    alike: dict[str, list[str]] = {}
    for outcome in _ordered(results):
        e = outcome.experiment
        environments = "1 environment" if len(e.seeds) == 1 else f"{len(e.seeds)} environments"
        trials = "1 trial" if e.trials == 1 else f"{e.trials} trials"
        where = f"{environments} with {trials} each" if e.log is None else f"{trials} on one log"
        names = alike.setdefault(f"{e.horizon:,} rounds, {where}", [])
        if (name := name_of(e.name)) not in names:
            names.append(name)
    return "; ".join(f"{' and '.join(names)}: {length}" for length, names in alike.items())


def _run_table(results: Results) -> str:
    head = [
        "experiment",
        "protocol",
        "d1",
        "d2",
        "arms K",
        "rounds T",
        "environments",
        "trials each",
        "noise",
        "features",
    ]
    body = []
    for outcome in _ordered(results):
        e = outcome.experiment
        arms = ", ".join(str(k) for k in outcome.arms)
        worlds = str(len(e.seeds)) if e.log is None else "-"
        numbers = [str(e.d1), str(e.d2), arms, f"{e.horizon:,}", worlds, str(e.trials), f"{e.noise:g}"]
        law = e.law if e.log is None else "a made log" if is_made(outcome) else f"{e.log['kind']} log"
        body.append([name_of(e.name), e.protocol, *numbers, law])
    return _table(head, [body], numeric=range(2, 9))


# ------------------------------------------------------------------ tables

_SHORT = {"holds": "holds", "does not hold": "fails", "undecided": "open"}
_SIGNS = {"holds": "✓", "does not hold": "✗", "undecided": "?"}


class _Cell(NamedTuple):
    """Text for a cell, and a class that colours it."""

    text: str
    kind: str = ""


def _table(
    head: Sequence[str],
    groups: Iterable[Iterable[Sequence[str | _Cell]]],
    *,
    numeric: Iterable[int] = (),
    caption: str = "",
) -> str:
    """A table whose rows' first cells head them; texts are escaped here."""
    right = set(numeric)
    top = "".join(f'<th scope="col"{_kind("n" if i in right else "")}>{escape(h)}</th>' for i, h in enumerate(head))
    bodies = []
    for group in groups:
        lines = []
        for row in group:
            cells = [cell if isinstance(cell, _Cell) else _Cell(cell) for cell in row]
            kinds = [" ".join(filter(None, ("n" if i in right else "", cell.kind))) for i, cell in enumerate(cells)]
            first = f'<th scope="row"{_kind(kinds[0])}>{escape(cells[0].text)}</th>'
            rest = (f"<td{_kind(k)}>{escape(c.text)}</td>" for c, k in zip(cells[1:], kinds[1:], strict=True))
            lines.append(f"<tr>{first}{''.join(rest)}</tr>")
        bodies.append("<tbody>" + "\n".join(lines) + "</tbody>")
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table>{said}<thead><tr>{top}</tr></thead>\n{"".join(bodies)}</table></div>'


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def number(value: float | None) -> str:
    """A regret for reading: thousands separated, a decimal where it is small.

    >>> number(3013.72), number(45.04), number(None)
    ('3,014', '45.0', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.1f}"


def _counted(row: Row) -> str:
    """How many runs there are and what the interval is over."""
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    over = "trials" if row.environments == 1 else "environments"
    return runs if row.low is None else f"{runs}, interval over {over}"


def _numbers(row: Row) -> list[str]:
    """mean, interval, lowest, highest, published, ratio, agreement."""
    interval = _interval(row.low, row.high)
    known = "-" if row.published is None else f"{row.published:,.0f}"
    agreement = {True: "yes", False: "no", None: "-"}[row.within]
    return [number(row.mean), interval, number(row.lowest), number(row.highest), known, _ratio(row.ratio), agreement]


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None else f"{number(low)} to {number(high)}"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.3f}" if ratio < 2 else f"{ratio:.1f}"


_NUMBERS = ("mean", "95 % interval", "lowest", "highest", "published", "ratio", "within")


def _number_cells(row: Row) -> list[str | _Cell]:
    return [_Cell(text, text if text in ("yes", "no") else "") for text in _numbers(row)]


def _columns(rows: Sequence[Row]) -> int:
    """How many of the numbers to show: of one run the regret alone, those about the published figure where there are
    any."""
    if any(row.published is not None for row in rows):
        return len(_NUMBERS)
    return 1 if all(row.runs == 1 for row in rows) else 4


def _regret(rows: Sequence[Row], read_outs: Sequence[Row]) -> str:
    known = any(row.published is not None for row in rows)
    parts = [f"<p>{escape(_TABLE_WORDS)}</p>" if known else "", _agreement_words(read_outs)]
    for protocol, found in groupby(rows, key=lambda row: row.protocol):
        parts.append(f"<details open><summary><h3>{escape(under(protocol).capitalize())}</h3></summary>")
        parts += [_regret_table(list(group)) for _, group in groupby(found, key=lambda row: row.experiment)]
        parts.append("</details>")
    if read_outs:
        parts.append(_read_out_table(read_outs))
    return "\n".join(filter(None, parts))


def _read_out_table(rows: Sequence[Row]) -> str:
    groups = [
        [[f"{name_of(row.experiment)}, K = {row.arms}", row.policy, f"{row.t:,}", *_number_cells(row)] for row in case]
        for _, case in groupby(rows, key=lambda row: (row.experiment, row.arms, row.policy))
    ]
    table = _table(("case", "policy", "rounds t", *_NUMBERS), groups, numeric=range(2, 9))
    return f"<details><summary>All {len(rows)} read-outs of the published figure</summary>{table}</details>"


_TABLE_WORDS = f"""“Published” is read off the figure's pixels, give or take {paper.READ_OUT_ERROR:g}; a dash where it
is hidden behind another curve or not plotted. “Ratio” is our mean over it. “Within” says whether the two agree: to
{100 * TOLERANCE:g} % or {paper.READ_OUT_ERROR:g} units; for HyRan, whose randomness was not seeded, to
{100 * HYRAN_TOLERANCE:g} %.
At small regrets the units decide, not the ratio. It is left open where the published number is of another protocol or
other environments."""


def _agreement_words(read_outs: Sequence[Row]) -> str:
    judged = [(row, row.published) for row in read_outs if row.published is not None and row.within is not None]
    if not judged:
        return ""
    good = sum(bool(row.within) for row, _ in judged)
    worst, known = max(judged, key=lambda pair: abs(pair[0].mean - pair[1]) / tolerance(pair[0].policy, pair[1]))
    return (
        f"<p><strong>{good} of {len(judged)}</strong> published read-outs are matched. Furthest off, for what is "
        f"allowed, is {escape(worst.policy)} in {escape(name_of(worst.experiment).lower())} with {worst.arms} arms "
        f"after {worst.t:,} rounds: {number(worst.mean)} against {known:,.0f} published.</p>"
    )


def _regret_table(rows: Sequence[Row]) -> str:
    first = rows[0]
    many = len({row.arms for row in rows}) > 1
    groups = [list(found) for _, found in groupby(rows, key=lambda row: row.arms)]
    shown = _columns(rows)
    head = ("policy", *(("K",) if many else ()), *_NUMBERS[:shown])
    body = [
        [[row.policy, *((str(row.arms),) if many else ()), *_number_cells(row)[:shown]] for row in group]
        for group in groups
    ]
    arms = "" if many else f", K = {first.arms}"
    caption = f"{name_of(first.experiment)}: regret after {first.t:,} rounds{arms}; {_counted(first)}"
    return _table(head, body, numeric=range(1, min(len(head), 7 + many)), caption=caption)


# ------------------------------------------------------------------ a click log

_CLICKS = """A reward model x·θ + z·β is fitted to the clicks of the first rounds of a log of visits to Yahoo's front
page. Then the policies play the visits that follow: users, articles and pools are the log's, the choice of what to show
is the policy's, and the reward of a candidate is the fitted mean plus noise. So regret is measured against the fitted
model, not against clicks."""

_POSITIONS = """An arm is a position in the line's list of candidates, as in the released code, not an article as in the
paper's text: its own parameters belong to whatever article stands there."""

_DEFECT = """In the released code an algorithm learns from the reward of the candidate whose place in the line's list is
the algorithm's own place among the algorithms, not of the arm it chose; regret is computed for the arm it chose. The
published curves were made so. Beside each algorithm the same is run here with this defect."""


def _clicks_title(results: Results) -> str:
    made = any(is_made(outcome) for outcome in _logged(results))
    return "The experiment on Yahoo's click log" + (", on a made log" if made else "")


def _clicks(results: Results, drawn: Sequence[Figure]) -> str:
    """The experiment on a click log: the log and the fit, what the defect does, regret, figures."""
    logged = _logged(results)
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
    parts += [_clicks_table(outcome, rows, excesses) for outcome in logged]
    return "\n".join([*parts, _gallery(drawn, "yahoo")])


def _defect_words(outcome: Outcome) -> str:
    e = outcome.experiment
    changes = [
        f"{name} {number(float(outcome.final(twin).mean()))} instead of {number(float(outcome.final(name).mean()))}"
        for name, twin in twins(outcome).items()
    ]
    made = f" ({MADE})" if is_made(outcome) else ""
    return f"{name_of(e.name)}, {under(e.protocol)}{made}, mean regret at T: {', '.join(changes)}."


def _log_tables(logged: Sequence[Outcome]) -> str:
    """What the log and the fit are, one table per experiment, and every protocol's parameters."""
    tables = []
    for name, found in groupby(sorted(logged, key=lambda o: o.experiment.name), key=lambda o: o.experiment.name):
        outcomes = list(found)
        facts: dict[str, str] = {}
        for outcome in outcomes:
            facts |= log_facts(outcome)
        made = f"; {MADE}" if is_made(outcomes[0]) else ""
        tables.append(_table(("what", "value"), [list(facts.items())], caption=f"{name_of(name)}: log and fit{made}"))
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
    head = ["policy", "mean", *(["95 % interval"] if several else []), _BEYOND_BEST]
    head += [*(["its 95 % interval"] if several else []), *(["published beyond it"] if known else [])]
    body = []
    for row in mine:
        found = beyond.get(row.policy)
        cells = [row.policy, *_numbers(row)[: 2 if several else 1], _excess(row.policy, found)]
        cells += [_interval(found.low, found.high) if found else "-"] if several else []
        cells += [number(found.published) if found else "-"] if known else []
        body.append(cells)
    made = f"; {MADE}" if is_made(outcome) else ""
    caption = f"{name_of(e.name)}, {under(e.protocol)}: regret after {e.horizon:,} rounds; {_counted(mine[0])}{made}"
    return _table(head, [body], numeric=range(1, len(head)), caption=caption)


def _excess(policy: str, found: Excess | None) -> str:
    if found is None:
        return "0" if policy == BEST else "-"
    return f"{'+' if found.mean > 0 else ''}{number(found.mean)}"


# ------------------------------------------------------------------ verdicts


def _badge(verdict: str, link: str = "") -> str:
    kind, text = _SHORT.get(verdict, "open"), f"{_SIGNS.get(verdict, '?')} {escape(verdict)}"
    if link:
        return f'<a class="verdict {kind}" href="#{link}">{text}</a>'
    return f'<span class="verdict {kind}">{text}</span>'


def _anchor(verdict: Verdict) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", f"claim-{verdict.claim}-{verdict.protocol}".lower())


def _by_claim(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.claim, []).append(verdict)
    return dict(sorted(grouped.items()))


def _overview(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    protocols = list(dict.fromkeys(verdict.protocol for verdict in verdicts))
    top = "".join(f'<th scope="col">{escape(protocol)} protocol</th>' for protocol in protocols)
    lines = []
    for claim, found in _by_claim(verdicts).items():
        cells = ""
        for protocol in protocols:
            one = next((v for v in found if v.protocol == protocol), None)
            inside = f"{_badge(one.verdict, _anchor(one))}<p>{escape(one.summary)}</p>" if one else "not run"
            cells += f'<td data-protocol="{escape(protocol)}">{inside}</td>'
        lines.append(f'<tr><th scope="row">{escape(claim)}. {escape(found[0].title)}</th>{cells}</tr>')
    return (
        "<p>A claim holds if the data support each of its parts at 95 % confidence; it does not hold if they "
        "contradict one; else it is undecided. Follow a verdict for its test and evidence.</p>\n"
        f'<div class="scroll"><table class="verdicts"><thead><tr><th scope="col">claim</th>{top}</tr></thead>\n<tbody>'
        + "\n".join(lines)
        + "</tbody></table></div>"
    )


def _claims(verdicts: Sequence[Verdict]) -> str:
    parts = []
    for claim, found in _by_claim(verdicts).items():
        heading = f"<h3>{escape(claim)}. {escape(found[0].title)}</h3>"
        badges = " ".join(
            f'<span class="pair"><small>{escape(v.protocol)}</small> {_badge(v.verdict)}</span>' for v in found
        )
        same = len({verdict.test for verdict in found}) == 1
        parts += [
            f'<details class="claim" open><summary>{heading} {badges}</summary>',
            f"<p><strong>The paper says:</strong> {escape(found[0].statement)}</p>",
            _test(found[0]) if same else "",
            *(_claim(verdict, test="" if same else _test(verdict)) for verdict in found),
            "</details>",
        ]
    return "\n".join(parts)


_MANY_ROWS = 12


def _test(verdict: Verdict) -> str:
    return f'<p class="soft"><strong>Test:</strong> {escape(verdict.test)}</p>'


def _claim(verdict: Verdict, *, test: str) -> str:
    kinds = {"holds": "yes", "does not hold": "no", "undecided": "maybe"}
    body: list[list[str | _Cell]] = [
        [e.what, e.value, _Cell(e.verdict or "for information", kinds.get(e.verdict or "", ""))]
        for e in verdict.evidence
    ]
    table = _table(("part", "found", "verdict"), [body]) if body else ""
    if len(body) > _MANY_ROWS:
        table = f"<details><summary>Evidence, {len(body)} rows</summary>{table}</details>"
    protocol = escape(verdict.protocol.capitalize())
    return (
        f'<section id="{_anchor(verdict)}"><h4>{protocol} protocol: {_badge(verdict.verdict)}</h4>\n'
        f"<p>{escape(verdict.summary)}</p>\n{test}{table}</section>"
    )


# ------------------------------------------------------------------ figures


def _gallery(drawn: Sequence[Figure], section: str) -> str:
    """The section's figures by protocol, narrow ones side by side."""
    parts = []
    chosen = [(f"f{i}", figure) for i, figure in enumerate(drawn) if figure.section == section]
    for protocol, found in groupby(chosen, key=lambda entry: entry[1].protocol):
        parts.append(f"<h3>{escape(under(protocol).capitalize())}</h3>")
        for wide, group in groupby(found, key=lambda entry: entry[1].wide):
            inside = "\n".join(_figure(figure, prefix) for prefix, figure in group)
            parts.append(inside if wide else f'<div class="side">{inside}</div>')
    return "\n".join(parts)


def _figure(figure: Figure, prefix: str) -> str:
    wide = ' class="wide"' if figure.wide else ""
    return (
        f'<figure id="figure-{escape(figure.name)}"{wide}><div class="plot">{_picture(figure, prefix)}</div>\n'
        f"<figcaption><strong>{escape(figure.title)}.</strong> {escape(figure.caption)} "
        f"<small><code>figures/{escape(figure.name)}</code></small></figcaption></figure>"
    )


def _picture(figure: Figure, prefix: str) -> str:
    png, svg = figure.files
    inline = inline_svg(svg.read_text(encoding="utf-8"), prefix, figure.alt)
    if len(inline) <= LARGEST_SVG:
        return inline
    data = base64.b64encode(png.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(figure.alt)}">'


def inline_svg(text: str, prefix: str, alt: str) -> str:
    """An SVG file as an element for a page: its ids made unique, coordinates to the hundredth, and nothing unused."""
    text = text[text.index("<svg") :]
    box_ = re.search(r'viewBox="([^"]*)"', text)
    inside = text[text.index(">") + 1 : text.rindex("</svg>")]
    inside = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", inside, flags=re.DOTALL)
    inside = re.sub(r' d="([^"]*)"', lambda m: f' d="{_coarse(m[1])}"', inside)
    inside = re.sub(r' (x|y)="(-?[\d.]+)"', lambda m: f' {m[1]}="{_hundredth(m[2])}"', inside)
    used = set(re.findall(r"(?:href=\"#|url\(#)([^\")]+)", inside))
    inside = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", inside)
    inside = re.sub(r'xlink:href="#', f'href="#{prefix}-', inside).replace("url(#", f"url(#{prefix}-")
    inside = re.sub(r"\s*\n\s*", "\n", inside).strip()
    shape = f' viewBox="{box_[1]}"' if box_ else ""
    look = 'stroke-linejoin="round" stroke-linecap="butt"'
    return f'<svg{shape} role="img" aria-label="{escape(alt)}" {look}>{inside}</svg>'


def _coarse(path: str) -> str:
    """Path data with fewer digits; of long lines, points that fall together on a tenth of a point are drawn once."""
    if re.search("[^MLz0-9eE.+ \n-]", path) or len(path) < _LONG_PATH:
        return re.sub(r"-?\d+\.\d+", lambda m: _hundredth(m[0]), " ".join(path.split()))
    kept: list[str] = []
    for command, x, y in re.findall(r"([MLz])(?:\s*([-\d.eE]+)\s+([-\d.eE]+))?", path):
        point = f"{float(x):.1f} {float(y):.1f}" if x else ""
        if command != "L":
            kept.append(f"{command}{point}")
        elif point != kept[-1].lstrip("ML"):
            # Further points of a line need no letter of their own.
            kept.append(point if kept[-1][0] not in "Mz" else f"L{point}")
    return " ".join(kept)


_LONG_PATH = 400


def _hundredth(value: str) -> str:
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


# ------------------------------------------------------------------ the end of the page

_PIXELS = (
    "Published numbers are read off the pixels of a figure. Some points are hidden behind others and are left out."
)
_NO_LOG = "The fourth published panel, on Yahoo! click data, is not reproduced here: the log may not be passed on."
_LIMITS = (
    "HyRan drew random numbers of its own without a seed when the figure was made: it can be matched in distribution, "
    "not number by number.",
    "Five environments are few: an interval over them has four degrees of freedom and is wide.",
    f"What the paper leaves open is chosen once for both protocols: failure probability δ = {paper.DELTA:g}, HyRan's "
    f"p = {paper.HYRAN_P:g}. HyThompson's prior has the scale {paper.THOMPSON_SCALE:g} everywhere.",
    "In the paper's code for the diversity experiment LinUCB and DisLinUCB never learn, and Frobenius norms stand in "
    "for singular values. That is not imitated.",
    "The theorems speak of numbers of rounds far beyond these; a regret below their bounds says little here.",
)
_LOG_LIMITS = (
    "There is one log: trials differ by their noise, and no interval says anything about another log.",
    "Rewards are simulated from a model fitted to clicks, and regret is measured against it. How well it describes "
    "clicks is not tested here.",
    "The published panel was made with another fit (gradient steps on 4,096 lines), positions as arms and algorithms "
    "that learn from another arm's reward: its numbers can be held beside these, not matched.",
)
_MADE_LIMIT = "Yahoo's log may not be passed on. A made log shows that everything runs; its regrets are not Yahoo's."


def _reproduce(results: Results) -> str:
    return "\n".join(
        [
            _made_by(results),
            "<p>Run again with the same seed, the same command gives the same numbers. Every unit of work is a Parquet "
            "file in <code>units/</code>, its SHA-256 in <code>manifest.json</code>. <code>hybandits "
            "report</code> writes this page again, beside it all curves as <code>regret.csv</code>, tables and "
            "verdicts as <code>summary.json</code>, and in <code>figures/</code> every figure as PNG and SVG under the "
            "name below it.</p>",
            _limits(results) if _of_the_paper(results) else "",
        ]
    )


def _limits(results: Results) -> str:
    logged = _logged(results)
    said = [_PIXELS, *([] if logged else [_NO_LOG]), *(_LIMITS if _any_synthetic(results) else ())]
    said += _LOG_LIMITS if logged else ()
    said += [_MADE_LIMIT] if made_note(results) else []
    return "<h3>Limits</h3>\n<ul>" + "".join(f"<li>{escape(limit)}</li>" for limit in said) + "</ul>"


# ------------------------------------------------------------------ the terminal


def _listings(results: Results, verdicts: Sequence[Verdict]) -> list[Listing]:
    made = []
    excesses = excess_rows(results)
    for (protocol, experiment), group in groupby(regret_rows(results), key=lambda row: (row.protocol, row.experiment)):
        rows = list(group)
        first = rows[0]
        title = f"{name_of(experiment)}, {under(protocol)}: regret after {first.t:,} rounds ({_counted(first)})"
        shown = _columns(rows)
        body = [[row.policy, str(row.arms), *_numbers(row)[:shown]] for row in rows]
        head = ["policy", "K", *_NUMBERS[:shown]]
        if experiment in claims.YAHOO:
            head.append(_BEYOND_BEST)
            found = {x.policy: x for x in excesses if (x.experiment, x.protocol) == (experiment, protocol)}
            body = [[*line, _excess(line[0], found.get(line[0]))] for line in body]
            outcome = results.outcome(experiment, protocol)
            title += f", {MADE}" if outcome is not None and is_made(outcome) else ""
        made.append(Listing(title, head, body, range(1, 8), _UNWRAPPED))
    if verdicts:
        ordered = [v for found in _by_claim(verdicts).values() for v in found]
        body = [[v.claim, v.title, v.protocol, v.verdict, first_sentence(v.summary)] for v in ordered]
        made.append(Listing("Claims", ("claim", "title", "protocol", "verdict", "summary"), body, (), _UNWRAPPED))
    return made


def first_sentence(text: str) -> str:
    """Of a summary, for one line.

    >>> first_sentence("Contradicted: A < B at K = 10. T = 5,000 is before the burn-in.")
    'Contradicted: A < B at K = 10.'
    """
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]


_BEYOND_BEST = f"beyond {BEST}"
_UNWRAPPED = ("claim", "protocol", "verdict", "policy", "K", *_NUMBERS, _BEYOND_BEST)


def terminal_summary(results: Results, verdicts: Sequence[Verdict]) -> Group:
    """Regret at T and verdicts as tables for a terminal."""
    return listings.drawn(_notes(results), _listings(results, verdicts))


def plain_summary(results: Results, verdicts: Sequence[Verdict]) -> list[str]:
    """The same as lines of ASCII, for files and pipes."""
    return listings.plain(_notes(results), _listings(results, verdicts))


def _notes(results: Results) -> list[str]:
    notes = []
    if short := shortened(results):
        notes.append(f"The short version: {'; '.join(short)}.")
    if lacking := unfinished(results):
        notes.append(f"Not finished: {'; '.join(lacking)}.")
    if note := made_note(results):
        notes.append(note)
    return notes


def print_summary(results: Results, verdicts: Sequence[Verdict], console: Console | None = None) -> None:
    """Print the summary: tables where somebody watches, plain lines elsewhere."""
    listings.show(_notes(results), _listings(results, verdicts), console)
