"""The conformance suite of policies; docs/contract.md describes in words what these tests check."""

import json
from abc import abstractmethod
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.policies import Choice, Policy, load

ARMS: list[Hashable] = ["a17", "a9", 4, ("page", 2), "b4"]


class Page:
    """A small problem: five arms, features that change from round to round, noisy linear rewards."""

    def __init__(self, d1: int, d2: int, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self.d1, self.d2 = d1, d2
        self._theta = self._random.normal(size=d1)
        self._beta = self._random.normal(size=(len(ARMS), d2))

    def features(self, n: int = len(ARMS)) -> tuple[np.ndarray, np.ndarray]:
        """Features x and z of n candidates."""
        return self._random.normal(size=(n, self.d1)) / 3, self._random.normal(size=(n, self.d2)) / 3

    def reward(self, index: int, x: np.ndarray, z: np.ndarray) -> float:
        """A noisy reward of the arm with this index."""
        return float(x @ self._theta + z @ self._beta[index] + 0.1 * self._random.normal())

    def play(self, policy: Policy, rounds: int) -> list[Choice]:
        """Let the policy choose and learn for some rounds, and return its choices."""
        choices = []
        for _ in range(rounds):
            x, z = self.features()
            choice = policy.choose(x, z, ARMS)
            i = choice.index
            policy.learn(choice.arm, x[i], z[i], reward=self.reward(i, x[i], z[i]), receipt=choice.receipt)
            choices.append(choice)
        return choices


def fingerprint(policy: Policy) -> dict[str, bytes]:
    """Return all that the policy would save: policies with equal fingerprints take the same decisions from there on."""
    header, arrays = policy._pack()
    return {"header": json.dumps(header).encode(), **{name: array.tobytes() for name, array in arrays.items()}}


class PolicyConformance:
    """Tests of the contract that every policy keeps; subclass it, implement `make`, and let pytest collect the class.

    A test that does not apply to the policy is skipped, with the reason.
    """

    deterministic = True
    """False for a rule that draws random numbers."""
    exact_propensities = False
    """True for a rule that draws and knows its probabilities exactly, False if it estimates them by sampling."""
    exact_merge = True
    """False where merging two policies cannot equal learning all data in one."""
    merge_tolerance = 1e-8
    """The largest relative difference between the two."""

    @abstractmethod
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        """Make a new policy; the same arguments must give the same behaviour."""
        raise NotImplementedError("define make(self, d1, d2, seed) so that it returns a new policy to be tested")

    def make_open(self, d1: int, d2: int, seed: int) -> Policy:
        """Make a policy that counts its arms itself; override it where `make` fixes their number."""
        return self.make(d1, d2, seed)

    @pytest.fixture(params=[(4, 3), (3, 0), (0, 3)], ids=lambda shape: f"d1={shape[0]},d2={shape[1]}")
    def page(self, request: pytest.FixtureRequest) -> Page:
        return Page(*request.param)

    @pytest.fixture
    def policy(self, page: Page) -> Policy:
        return self.make(page.d1, page.d2, seed=0)

    def test_a_choice_is_one_of_the_candidates_with_its_estimate(self, policy: Policy, page: Page) -> None:
        assert policy.rounds == 0
        page.play(policy, 12)
        assert policy.rounds == 12
        assert type(policy).__name__ in repr(policy)
        assert "12 rewards learned" in repr(policy)
        x, z = page.features()
        choice = policy.choose(x, z, ARMS)
        assert choice.arm == ARMS[choice.index]
        assert np.isfinite(choice.mean)
        assert choice.width > 0
        assert choice.propensity is None or 0 < choice.propensity <= 1

    def twins(self, page: Page, seed: int = 3) -> tuple[Policy, Policy]:
        """Two new policies that should behave alike."""
        return self.make(page.d1, page.d2, seed), self.make(page.d1, page.d2, seed)

    def test_the_same_seed_gives_the_same_run(self, page: Page) -> None:
        first, second = (Page(page.d1, page.d2).play(policy, 20) for policy in self.twins(page))
        assert [choice[:5] for choice in first] == [choice[:5] for choice in second]

    def test_a_keyed_choice_is_the_same_whenever_it_is_asked_and_changes_nothing(
        self, policy: Policy, page: Page
    ) -> None:
        page.play(policy, 15)
        x, z = page.features(5)
        before = fingerprint(policy)
        arms = [*ARMS[:3], "never met", "nor this one"]
        first = policy.choose(x, z, arms, key="event-17")
        assert fingerprint(policy) == before
        others = {policy.choose(x, z, arms, key=f"event-{i}").index for i in range(10)}
        if self.deterministic:
            assert others == {first.index}
        again = policy.choose(x, z, arms, key="event-17")
        assert again[:5] == first[:5]
        p = policy.propensities(x, z, arms, key="event-17")
        assert p.sum() == pytest.approx(1)
        assert_array_equal(p, policy.propensities(x, z, arms, key="another event"))
        if self.deterministic or self.exact_propensities:
            assert p[first.index] == pytest.approx(first.propensity)
        assert "never met" not in policy.arms
        with pytest.raises(TypeError, match=r"key must be a str, an int or a tuple of them, got 1\.5"):
            policy.choose(x, z, arms, key=1.5)
        assert fingerprint(policy) == before

    def test_candidates_may_change_and_feedback_come_for_arms_never_chosen(self, policy: Policy, page: Page) -> None:
        x, z = page.features(1)
        policy.learn("from a log", x[0], z[0], reward=0.5)
        assert policy.arms == ["from a log"]
        assert policy.rounds == 1
        assert policy.choose(*page.features(3)).arm in (0, 1, 2)
        assert policy.arms == ["from a log", 0, 1, 2]
        for n in (1, 4, 2, 3):
            x, z = page.features(n)
            choice = policy.choose(x, z, [(n, i) for i in range(n)])
            policy.learn(choice.arm, x[choice.index], z[choice.index], reward=1.0, receipt=choice.receipt)
        assert len(policy.arms) == 14

    @pytest.mark.parametrize("as_set", [True, False])
    def test_candidate_sets_and_other_ids_make_the_same_choices(self, page: Page, as_set: bool) -> None:
        names = ARMS if as_set else [f"renamed-{i}" for i in range(len(ARMS))]
        first, second = self.twins(page)
        pool = second.candidates(names) if as_set else names
        for _ in range(16):
            x, z = page.features()
            a, b = first.choose(x, z, ARMS), second.choose(x, z, pool)
            assert a[1:5] == b[1:5]
            assert b.arm == names[a.index]
            for policy, choice in ((first, a), (second, b)):
                policy.learn(choice.arm, x[a.index], z[a.index], reward=0.3, receipt=choice.receipt)
            if first.rounds == 8:
                first.forget(ARMS[2])
                second.forget(names[2])

    @pytest.mark.parametrize("with_receipts", [False, True])
    def test_a_batch_equals_one_by_one(self, page: Page, with_receipts: bool) -> None:
        first, second = self.twins(page)
        rows: list[tuple[Any, ...]] = []
        for t in range(12):
            x, z = page.features()
            choice, same = (policy.choose(x, z, ARMS) for policy in (first, second))
            assert same[:5] == choice[:5]
            i = choice.index if with_receipts else t % 5
            rows.append((ARMS[i], x[i], z[i], t / 6 - 1, choice.receipt if with_receipts else None))
        for *row, receipt in rows:
            first.learn(*row, receipt=receipt)
        arms, xs, zs, rewards, receipts = zip(*rows, strict=True)
        second.learn_batch(arms, np.array(xs), np.array(zs), rewards, receipts=receipts if with_receipts else None)
        assert fingerprint(first) == fingerprint(second)
        second.learn_batch([], np.empty((0, page.d1)), np.empty((0, page.d2)), [])
        assert fingerprint(first) == fingerprint(second)

    def test_permuted_candidates_permute_the_choice(self, page: Page) -> None:
        first, second = self.twins(page)
        x, z = page.features()
        for policy in (first, second):  # some data first: among equals the first candidate is taken
            policy.learn_batch(ARMS, x, z, np.arange(1.0, 6.0))
        order = [3, 0, 4, 2, 1]
        for _ in range(15):
            x, z = page.features()
            shuffled = x[order], z[order], [ARMS[i] for i in order]
            assert_array_equal(np.array(first.predict(x, z, ARMS))[:, order], second.predict(*shuffled))
            a, b = first.choose(x, z, ARMS), second.choose(*shuffled)
            if self.deterministic:  # one that draws depends on the order of its draws
                assert a.arm == b.arm, "the choice depends on the order of the candidates: set deterministic = False?"
            for policy in (first, second):
                policy.learn(a.arm, x[a.index], z[a.index], reward=0.4)

    def test_predict_and_propensities_change_nothing(self, policy: Policy, page: Page) -> None:
        page.play(policy, 12)
        before = fingerprint(policy)
        candidates = *page.features(3), ["a17", "never seen", 4]
        mean, width = policy.predict(*candidates)
        p = policy.propensities(*candidates)
        assert mean.shape == width.shape == p.shape == (3,)
        assert (width > 0).all()
        assert p.sum() == pytest.approx(1)
        assert (p >= 0).all()
        assert fingerprint(policy) == before

    def test_propensities_agree_with_the_choice(self, policy: Policy, page: Page) -> None:
        page.play(policy, 12)
        for _ in range(5):
            x, z = page.features()
            p = policy.propensities(x, z, ARMS)
            choice = policy.choose(x, z, ARMS)
            if self.deterministic:
                assert p[choice.index] == choice.propensity == 1.0
            elif self.exact_propensities:
                assert p[choice.index] == pytest.approx(choice.propensity)
            elif choice.propensity is None:
                pytest.skip("the policy does not estimate the propensity of its choices")
            else:
                assert 0 < choice.propensity <= 1

    def test_propensities_are_those_of_the_next_choice_also_with_arms_not_met(self, page: Page) -> None:
        if not self.deterministic:
            pytest.skip("the rule draws, so its propensities do not determine the next choice")
        for seed in range(8):
            policy = self.make_open(page.d1, page.d2, seed)
            Page(page.d1, page.d2, seed).play(policy, 6)
            x, z = page.features(12)
            arms: list[Hashable] = [*ARMS[:3], *(f"new-{i}" for i in range(9))]
            p = policy.propensities(x, z, arms, key="event-17")
            assert p[policy.choose(x, z, arms, key="event-17").index] == 1.0
            p = policy.propensities(x, z, arms)
            assert p[policy.choose(x, z, arms).index] == 1.0

    def test_a_randomized_choice_is_drawn_from_its_stated_probabilities(self, policy: Policy, page: Page) -> None:
        page.play(policy, 10)
        x, z = page.features()
        before = fingerprint(policy)
        for key in range(5):
            choice = policy.choose(x, z, ARMS, key=key, randomize=True, floor=0.5)
            chances = 0.5 * policy.propensities(x, z, ARMS, key=key) + 0.5 / len(ARMS)
            assert choice.propensity == pytest.approx(chances[choice.index], rel=1e-12)
            assert choice.arm == ARMS[choice.index]
            assert policy.choose(x, z, ARMS, key=key, randomize=True, floor=0.5)[:5] == choice[:5]
        for wrong in (-0.1, 1.5, float("nan")):
            with pytest.raises(ValueError, match="floor"):
                policy.choose(x, z, ["new", *ARMS[1:]], randomize=True, floor=wrong)
        with pytest.raises(ValueError, match=r"floor=0\.2 makes no difference without randomize=True"):
            policy.choose(x, z, ARMS, floor=0.2)
        assert fingerprint(policy) == before
        evenly = [policy.choose(x, z, ARMS, randomize=True, floor=1.0) for _ in range(40)]
        assert len({choice.arm for choice in evenly}) > 2
        for choice in evenly:
            assert choice.propensity == pytest.approx(1 / len(ARMS))
            policy.learn(choice.arm, x[choice.index], z[choice.index], reward=0.5, receipt=choice.receipt)
        pair = [each.choose(x, z, ARMS, randomize=True) for each in (policy.copy(), policy)]
        assert pair[0][:5] == pair[1][:5]

    def test_a_ranking_begins_with_the_choice_and_has_every_arm_once(self, policy: Policy, page: Page) -> None:
        assert len(set(policy.rank(*page.features(), ARMS).arms)) == len(ARMS)
        page.play(policy, 10)
        for key in range(3):
            x, z = page.features()
            before = fingerprint(policy)
            ranking = policy.rank(x, z, ARMS, 3, key=key)
            assert fingerprint(policy) == before
            choice = policy.choose(x, z, ARMS, key=key)
            assert (ranking.arms[0], ranking.indices[0]) == (choice.arm, choice.index)
            assert ranking.arms == [ARMS[i] for i in ranking.indices]
            assert len(set(ranking.arms)) == 3
            assert_allclose([ranking.means[0], ranking.widths[0]], [choice.mean, choice.width], rtol=1e-9, atol=1e-12)
            if choice.propensity == 1.0:
                assert ranking.propensities[0] == 1.0
            known = ranking.propensities[~np.isnan(ranking.propensities)]
            assert ((known >= 0) & (known <= 1 + 1e-12)).all()
        assert len(policy.rank(x, z, ARMS, 99).arms) == len(policy.rank(x, z, ARMS).arms) == len(ARMS)
        before = fingerprint(policy)
        for wrong in (0, -1, 2.5):
            with pytest.raises((TypeError, ValueError), match="m "):
                policy.rank(x, z, ["new", *ARMS[1:]], wrong)  # type: ignore[arg-type]
        assert fingerprint(policy) == before

    def test_parameters_have_the_shapes_of_the_estimator(self, policy: Policy, page: Page) -> None:
        page.play(policy, 12)
        x, z = page.features(1)
        policy.choose(x, z, ["new"])
        total = len(policy.theta) + len(policy.beta("new"))
        assert total == page.d1 + page.d2
        policy.choose(x, z, ["newer"])
        assert_array_equal(policy.beta("new"), policy.beta("newer"))
        fresh = self.make(page.d1, page.d2, seed=0)
        fresh.choose(x, z, ["new"])
        assert_array_equal(fresh.beta("new"), 0.0)
        with pytest.raises(KeyError, match="'nobody' is not known"):
            policy.beta("nobody")

    def test_forgotten_arms_start_again_and_unknown_ones_are_refused(self, policy: Policy, page: Page) -> None:
        page.play(policy, 15)
        policy.forget("a9")
        assert "a9" not in policy.arms
        x, z = page.features(2)
        mean, width = policy.predict(x[[0, 0]], z[[0, 0]], ["a9", "never seen"])
        assert mean[0] == mean[1]
        assert width[0] == width[1]
        with pytest.raises(KeyError, match="'a9' is not known"):
            policy.forget("a9")
        page.play(policy, 3)
        assert "a9" in policy.arms

    def test_merging_adds_the_other_policys_rewards_and_leaves_that_policy_as_it_was(self, page: Page) -> None:
        first, second = (self.make(page.d1, page.d2, seed=i) for i in range(2))
        page.play(first, 10)
        page.play(second, 14)
        before = fingerprint(second)
        first.merge(second)
        assert first.rounds == 24
        assert fingerprint(second) == before
        with pytest.raises(TypeError, match="only another"):
            first.merge("something else")  # type: ignore[arg-type]

    def test_merging_equals_learning_together(self, page: Page) -> None:
        if not self.exact_merge:
            pytest.skip("merging cannot equal learning everything in one policy")
        first, second, both = (self.make(page.d1, page.d2, seed=i) for i in range(3))
        x, z = page.features(24)
        rewards = np.linspace(-1, 1, 24)
        arms = [ARMS[i % 5] for i in range(24)]
        both.learn_batch(arms, x, z, rewards)
        first.learn_batch(arms[:10], x[:10], z[:10], rewards[:10])
        second.learn_batch(arms[10:], x[10:], z[10:], rewards[10:])
        first.merge(second)
        first.refresh()
        both.refresh()
        merged, together = first.predict(x[:5], z[:5], ARMS), both.predict(x[:5], z[:5], ARMS)
        assert_allclose(merged, together, rtol=self.merge_tolerance, atol=self.merge_tolerance / 100)

    def test_saving_in_the_middle_of_a_run_changes_nothing_afterwards(self, page: Page, tmp_path: Path) -> None:
        straight = self.make(page.d1, page.d2, seed=11)
        Page(page.d1, page.d2).play(straight, 25)
        straight.forget("a9")
        straight.notes = {"features": "as measured"}
        straight.save(tmp_path / "middle.npz")
        restored = type(straight).load(tmp_path / "middle.npz")
        assert repr(restored) == repr(straight)
        assert fingerprint(restored) == fingerprint(straight)
        after = [Page(page.d1, page.d2, seed=1).play(policy, 20) for policy in (straight, restored)]
        assert [c[:5] for c in after[0]] == [c[:5] for c in after[1]]
        assert fingerprint(restored) == fingerprint(straight)
        assert type(load(tmp_path / "middle.npz")) is type(straight)

    def test_bad_candidates_are_refused_with_nothing_changed(self) -> None:
        policy, page = self.make(4, 3, seed=0), Page(4, 3)
        page.play(policy, 10)
        x, z = page.features()
        missing, large = x.copy(), z.copy()
        missing[2, 0], large[2, 0] = np.nan, 1e51
        bad: list[tuple[tuple[Any, Any, Any], type[Exception], str]] = [
            ((x[:4], z[:4], ARMS), ValueError, "arms has 5 ids but the features have 4 rows"),
            ((x, z, [*ARMS[:4], "a17"]), ValueError, "'a17' more than once"),
            ((x, z, set(ARMS)), TypeError, "arms must be a list of ids"),
            ((x, z, [None, *ARMS[:4]]), TypeError, "arm is None"),
            ((x, z, ["new", b"a", *ARMS[:3]]), TypeError, "of type bytes cannot be saved: use str, int or tuples"),
            ((x[0], z, ARMS), ValueError, r"x must have 2 dimension.*\[None, :\]"),
            ((x, np.hstack([z, z[:, :1]]), ARMS), ValueError, "z has .* columns, expected"),
            ((None, z, ARMS), TypeError, "x is missing"),
            ((x, z.astype(str), ARMS), TypeError, "z has dtype <U"),
            ((missing, z, ARMS), ValueError, r"x\[2, 0\] is nan"),
            ((x, large, ARMS), ValueError, r"z\[2, 0\] is 1e\+51.*rescale"),
        ]
        before = fingerprint(policy)
        for arguments, error, message in bad:
            for call in (policy.choose, policy.predict, policy.propensities):
                with pytest.raises(error, match=message):
                    call(*arguments)
                assert fingerprint(policy) == before, f"{call.__name__} changed the policy: {message}"
        # The same with arms not met before: a refused call must not admit them.
        x, z = page.features(2)
        for number in (np.nan, 1e51):
            with pytest.raises(ValueError, match=r"is nan|rescale"):
                policy.choose(np.full_like(x, number), z, ["new", "newer"])
            assert fingerprint(policy) == before
        choice = policy.choose(np.full_like(x, 1e50), np.full_like(z, 1e50), ["new", "newer"])
        assert np.isfinite([choice.mean, choice.width]).all()

    def test_bad_feedback_is_refused_with_nothing_changed(self) -> None:
        policy, page = self.make(4, 3, seed=0), Page(4, 3)
        page.play(policy, 10)
        x, z = (part[0] for part in page.features(1))
        spoiled = z.copy()
        spoiled[-1] = np.nan
        bad: list[tuple[tuple[Any, Any, Any, Any], type[Exception], str]] = [
            (("a9", np.append(x, 1.0), z, 1.0), ValueError, "x has .* entries, expected"),
            (("a9", x, z[None], 1.0), ValueError, "z must have 1 dimension"),
            (("a9", None, z, 1.0), TypeError, "x is missing"),
            (("new", x, spoiled, 1.0), ValueError, r"z\[.*\] is nan"),
            (("new", x, z, np.inf), ValueError, "reward.* is inf"),
            (("a9", x, z, "1"), TypeError, "reward must be a number"),
            ((Choice("a9", 0, 0.0, 1.0, 1.0), x, z, 1.0), TypeError, r"pass choice\.arm"),
            ((None, x, z, 1.0), TypeError, "arm is None"),
            ((2.5, x, z, 1.0), TypeError, "of type float cannot be saved: use str, int or tuples"),
        ]
        before = fingerprint(policy)
        for arguments, error, message in bad:
            with pytest.raises(error, match=message):
                policy.learn(*arguments)
            assert fingerprint(policy) == before, message
        x, z = page.features(3)
        batches: list[tuple[Any, Any, type[Exception], str]] = [
            (["a9", "new"], np.ones(3), ValueError, "arms has 2 ids"),
            (["a9", "new", "a9"], np.ones(2), ValueError, "rewards has 2 entries"),
            (["a9", "new", "a9"], [1, 2, np.nan], ValueError, r"rewards\[2\] is nan"),
            ("abc", np.ones(3), TypeError, "arms must be a list of ids"),
            (["new", [1], "a9"], np.ones(3), TypeError, "not hashable"),
            (["new", 2.5, "a9"], np.ones(3), TypeError, "of type float cannot be saved"),
        ]
        for arms, rewards, error, message in batches:
            with pytest.raises(error, match=message):
                policy.learn_batch(arms, x, z, rewards)
            assert fingerprint(policy) == before, message
        with pytest.raises(ValueError, match="receipts has 1 entries"):
            policy.learn_batch(ARMS[:3], x, z, np.ones(3), receipts=[None])
