"""What is said of results as a whole: protocols, policies, scale, the command that gives them again."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from hybandits import paper
from hybandits.experiments.record import Entry
from hybandits.experiments.results import Results
from hybandits.report.figures.outcomes import is_made, name_of, twins
from hybandits.report.numbers import any_synthetic, in_order, on_logs
from hybandits.report.tables import html_table

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
    paper.HYRAN_RELEASED: "the baseline as the paper's code runs it: the blocks that couple shared and own parameters "
    "are never filled in",
    "HyRan": "the baseline (Kim, Paik and Oh 2023) with these blocks",
    "SupLinUCB": "a baseline in levels (Chu et al. 2011); run but not plotted by the paper's code",
    "HyThompson": "draws all parameters from their joint posterior and plays the best arm of that draw (not in the "
    "paper)",
    "Greedy": "plays the highest estimate, never explores on purpose (not in the paper)",
}


TITLE = "Hybrid linear bandits: Das &amp; Sinha 2024 run again"
OWN_TITLE = "Hybrid linear bandits: an experiment"

_MODEL = """In every round a policy is shown K candidates, called arms, chooses one and earns its reward: a part x·θ
whose parameters all arms share, a part z·β that is the arm's own, and noise."""

_AGAIN = """Das and Sinha (<cite>Linear Contextual Bandits with Hybrid Payoff: Revisited</cite>, 2024) propose the
algorithm HyLinUCB for this and compare it with three others. This page is what came out when their {which} run \
again; it says claim by claim whether that agrees with the paper."""

_OWN = "This page shows what the policies lost in a synthetic world."

DIVERSITY = """The better bounds of the paper rest on an assumption: that whatever the algorithm chooses, the features
it sees point in all directions. Then the smallest eigenvalues of the shared block V and of every arm's block W grow
linearly, the cross blocks B grow like a square root only, and shared and own parameters decouple. These are measured
here while the algorithms run, in every trial with new contexts."""

HYRAN = f"""In the code published with the paper, HyRan never fills in the blocks that couple shared and own parameters,
so what was plotted is not a hybrid algorithm. Here it runs both ways: bug for bug \
(“{paper.HYRAN_RELEASED}”, which is what
published read-outs are compared with) and with the blocks (“HyRan”)."""

BEYOND = """Two policies that the paper does not have, beside the best of those it has: posterior sampling of all
parameters together, and no exploration at all. They see the same contexts and noise as the others."""


def introduction(results: Results) -> str:
    synthetic, logged = any_synthetic(results), bool(on_logs(results))

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
    return f"""<p class="lead">{_MODEL} {again if of_the_paper(results) else _OWN}</p>
{_scale(results)}{_terms(terms)}
<details><summary>The policies</summary>
{_terms(_policies(results))}</details>
<details><summary>What was run</summary>
{_run_table(results)}</details>"""


def of_the_paper(results: Results) -> bool:
    return any(protocol != "own" for protocol in results.protocols)


def _terms(terms: Mapping[str, str]) -> str:
    listed = (f"<div><dt>{escape(term)}</dt><dd>{escape(words)}</dd></div>" for term, words in terms.items())
    return f'<dl class="terms">{"".join(listed)}</dl>'


def _policies(results: Results) -> dict[str, str]:
    if not of_the_paper(results):
        entries = [entry for outcome in results.outcomes.values() for entry in outcome.experiment.policies]
        return {entry.name: _settings_of(entry) for entry in entries}
    present = {policy for outcome in results.outcomes.values() for policy in outcome.policies}
    described = {name: words for name, words in POLICIES.items() if name in present}
    if any(twins(outcome) for outcome in on_logs(results)):
        described["…, defect"] = (
            "on the click log, the same fed as by the released code: with the reward of the candidate in the "
            "algorithm's own place, not of the arm it chose"
        )
    return described


def _settings_of(entry: Entry) -> str:
    """A policy's class and settings in words."""
    settings = ", ".join(f"{name} = {value}" for name, value in entry.settings.items())
    return f"{entry.policy} with {settings or 'its defaults'}"


def made_by(results: Results) -> str:
    """Command, scale, seed and versions, as far as the manifest knows them."""
    manifest = results.manifest
    facts = {"scale": manifest.get("scale"), "seed": manifest.get("seed"), "hybandits": manifest.get("version")}
    facts |= dict(manifest.get("versions", {}))
    known = [[str(name), str(value)] for name, value in facts.items() if value is not None]
    commands = manifest.get("commands", [])
    are = "command is" if len(commands) == 1 else "commands are"
    made = f"<p>The {are}</p>\n<pre>{escape(chr(10).join(commands))}</pre>\n" if commands else ""
    return made + html_table(("what", "value"), [known])


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
    elif of_the_paper(results) and not lacking:
        text += "<p>Everything here was run at the paper's full length: all rounds, environments and trials.</p>\n"
    if note := made_note(results):
        text += f'<p class="note"><strong>Made log.</strong> {escape(note)}</p>\n'
    if lacking:
        text += f'<p class="note"><strong>Not finished:</strong> {escape("; ".join(lacking))}.</p>\n'
    scale, commands = results.manifest.get("scale"), results.manifest.get("commands", [])
    made = ", made by " + " and ".join(f"<code>{escape(c)}</code>" for c in commands) if commands else ""
    named = f"Scale: {escape(str(scale))}. " if scale else ""
    return f'{text}<p class="soft">{named}{escape(_lengths(results))}{made}.</p>\n'


def made_note(results: Results) -> str:
    """A warning where a made log stands in for Yahoo's, else nothing."""
    if not any(is_made(outcome) for outcome in on_logs(results)):
        return ""
    return (
        "The Yahoo experiment was played on a made log in the format of Yahoo's, not on Yahoo's data: it shows how "
        "everything runs and says nothing about the paper's result. With the data: --data DIR."
    )


def _lengths(results: Results) -> str:
    """Rounds, environments and trials of every experiment, those that are alike together."""
    alike: dict[str, list[str]] = {}
    for outcome in in_order(results):
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
    for outcome in in_order(results):
        e = outcome.experiment
        arms = ", ".join(str(k) for k in outcome.arms)
        worlds = str(len(e.seeds)) if e.log is None else "-"
        numbers = [str(e.d1), str(e.d2), arms, f"{e.horizon:,}", worlds, str(e.trials), f"{e.noise:g}"]
        law = e.law if e.log is None else "a made log" if is_made(outcome) else f"{e.log['kind']} log"
        body.append([name_of(e.name), e.protocol, *numbers, law])
    return html_table(head, [body], numeric=range(2, 9))
