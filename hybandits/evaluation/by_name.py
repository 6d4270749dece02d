"""What to evaluate, by name: the words of a command line become policies, targets and estimators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hybandits.evaluation import ESTIMATORS, Evaluation, Frozen, Learning
from hybandits.evaluation.view import View
from hybandits.foundation import checks
from hybandits.policies.base import Policy
from hybandits.policies.by_name import (
    FORM,
    is_import_path,
    make_policy,
    parse_policy,
    policy_names,
    proper_name,
    with_noise,
    wrapper_names,
)

CLICK_NOISE = 0.5
"""A click is 0 or 1, so its standard deviation is at most 1/2."""

FIXED_ESTIMATORS = ("ips", "snips", "dm", "dr")
"""Estimators of the value of a policy that does not learn."""

LEARNING_ESTIMATORS = ("replay", "snips")
"""Estimators of the value of a policy that learns; both take one pass in all."""


def policy_for(view: View, spec: str, *, horizon: int, seed: int | None = None) -> Policy:
    """A new policy for the features and arms of a log, such as ``"hylinucb:ridge=2"`` or ``"softmax:Softmax"``.

    The text is read as `hybandits.policies.by_name.parse_policy` does.
    """
    name, settings = parse_policy(spec)
    settings = with_noise(name, settings, CLICK_NOISE)
    return make_policy(name, settings, d1=view.d1, d2=view.d2, arms=len(view.names), horizon=horizon, seed=seed)


def proper_spec(spec: str) -> str:
    """What a command line names, in its own spelling: capitals do not matter, except in the id of an arm.

    >>> proper_spec("hylinucb:ridge=2"), proper_spec("Uniform"), proper_spec("Always:Shoe"), proper_spec("Policy.npz")
    ('HyLinUCB:ridge=2', 'uniform', 'always:Shoe', 'Policy.npz')
    """
    if spec.lower() in ("uniform", "logged"):
        return spec.lower()
    name, colon, rest = spec.partition(":")
    return f"{'always' if name.lower() == 'always' else proper_name(name)}{colon}{rest}"


def target_for(
    view: View, spec: str, *, saved: Mapping[str, Policy], horizon: int, seed: int | None = None
) -> Frozen | Learning | str:
    """The target of an evaluation that `spec` names.

    Parameters
    ----------
    view : View
        The log, with its features.
    spec : str
        A key of `saved`, "uniform", "logged", "always:ARM", or a policy that learns, as in `policy_for`.
    saved : mapping of str to Policy
        Policies that are evaluated as they are.
    horizon : int
        Rounds that a policy which learns is told to expect.
    seed : int, optional
        Seed of the draws of a policy that learns.
    """
    if spec in saved:
        return Frozen(saved[spec])
    spec = proper_spec(spec)
    name, colon, _ = spec.partition(":")
    if spec in ("uniform", "logged") or (name == "always" and colon):
        return spec
    names = [*policy_names(), *wrapper_names()]
    if name not in names and not is_import_path(parse_policy(spec)[0]):
        raise ValueError(
            f"there is no policy {name!r}{checks.nearest(name, names)}: give uniform, logged, always:ARM, a saved "
            f"policy (a .npz file), one of {', '.join(names)}, or a class of your own as {FORM}"
        )
    return Learning(policy_for(view, spec, horizon=horizon, seed=seed))


def usual_estimators(targets: Mapping[str, object]) -> tuple[str, ...]:
    """`LEARNING_ESTIMATORS` if there are targets that learn, and `FIXED_ESTIMATORS` if there are others."""
    learning = [isinstance(target, Learning) for target in targets.values()]
    names = LEARNING_ESTIMATORS * any(learning) + FIXED_ESTIMATORS * (not all(learning))
    return tuple(name for name in ESTIMATORS if name in names)


def only_suited(evaluation: Evaluation, targets: Mapping[str, object]) -> Evaluation:
    """The evaluation without refusals that only say that an estimator is not meant for this kind of target."""
    estimates = [
        estimate
        for estimate in evaluation.estimates
        if estimate.value is not None
        or estimate.estimator != ("dm" if isinstance(targets[estimate.policy], Learning) else "replay")
    ]
    return replace(evaluation, estimates=estimates)
