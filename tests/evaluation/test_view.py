"""A log as rounds to play: candidates and features against plain loops, and the promise of a world kept."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits import DisLinUCB, EpsilonGreedy, HyLinUCB, HyRan, HyThompson, LinUCB, SupLinUCB
from hybandits.evaluation.view import Expander, View, view_of
from hybandits.features import MAPS
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Batch, LogWriter
from hybandits.simulation.play import play_rounds
from tests.support.evaluation import log_of
from tests.support.loglike import little_log, random_model


def test_an_arm_is_met_in_the_first_round_of_a_block(tmp_path):
    log = little_log(tmp_path, every=13, arms=30)
    view = View(log)
    met: set = set()
    blocks = 0
    expander = Expander(view)
    for batch in log.batches():
        for _, rounds in expander(batch):
            blocks += 1
            first = [rounds.arms[k] for k in rounds.index[0, : rounds.counts[0]]]
            new = [arm for arm in rounds.arms if arm not in met]
            assert set(new) <= set(first)
            assert new == [arm for arm in first if arm in new]  # admitted in the order of the list
            met |= set(rounds.arms)
    assert blocks > 5


def _numbers(rounds):
    """All that is laid out for some rounds."""
    return sum(each.size for each in (rounds.x, rounds.z, rounds.index, rounds.source.vector, rounds.source.user))


def test_a_long_list_after_a_short_one_does_not_take_the_memory_of_many(tmp_path):
    view = View(little_log(tmp_path, arms=60, pool=2, every=10_000))
    names = view.log.names
    with LogWriter(tmp_path / "mixed", kind="test", user=view.log.user, arm=view.log.arm) as writer:
        rows = [writer.tables.arm(name, vector) for name, vector in zip(names, view.log.vectors, strict=True)]
        pools = [writer.tables.pool(rows[:1]), writer.tables.pool(rows)]
        n = 400
        pool = np.array([pools[0]] + [pools[1]] * (n - 1))
        writer.source()
        zeros = np.zeros(n)
        user = np.ones((n, len(view.log.user)))
        writer.write(Batch(zeros.astype(int), pool, zeros.astype(int), zeros, zeros + 1, user))
        log = writer.finish(ReadReport())
    view = View(log)
    pieces = [rounds for batch in log.batches() for _, rounds in Expander(view, numbers=20_000)(batch)]
    assert max(_numbers(r) for r in pieces) <= 20_000
    assert sum(len(r.counts) for r in pieces) == n


MAKERS = {
    "HyLinUCB": lambda d1, d2: HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=1),
    "LinUCB": lambda d1, d2: LinUCB(d1=d1, d2=d2, noise=0.1, seed=1),
    "DisLinUCB": lambda d1, d2: DisLinUCB(d1=d1, d2=d2, noise=0.1, seed=1),
    "HyThompson": lambda d1, d2: HyThompson(d1=d1, d2=d2, noise=0.1, seed=1),
    "SupLinUCB": lambda d1, d2: SupLinUCB(d1=d1, d2=d2, horizon=300, alpha=0.3, seed=1),
    "HyRan": lambda d1, d2: HyRan(d1=d1, d2=d2, arm_count=9, seed=1),
    "EpsilonGreedy": lambda d1, d2: EpsilonGreedy(LinUCB(d1=d1, d2=d2, noise=0.1), epsilon=0.1, seed=1),
}


@pytest.mark.parametrize(
    ("name", "features"), [*((name, "li+pair:xz") for name in MAKERS), ("HyLinUCB", "das"), ("HyLinUCB", "disjoint")]
)
def test_rounds_played_are_the_same_with_features_made_and_given(tmp_path, name, features):
    """To the bit, for every loop and for policies played by the contract."""
    view = View(little_log(tmp_path, pair=2 * ("+" in features)), features=features)
    model = random_model(view)
    states = []
    for given in (False, True):
        policy = MAKERS[name](view.d1, view.d2)
        expander = Expander(view, numbers=40_000)
        picked = []
        for batch in view.log.batches(0, 300):
            for piece, rounds in expander(batch):
                if given:
                    x = np.zeros((*rounds.index.shape, view.d1))
                    z = np.zeros((*rounds.index.shape, view.d2))
                    for t, n in enumerate(rounds.counts):
                        x[t, :n], z[t, :n] = rounds.features(t)
                    rounds = rounds._replace(x=x, z=z, source=None)
                picks = np.empty(piece.rounds, np.int64)
                middle = piece.rounds // 2
                means = model.means(view, piece, *model.per_group(view))
                for part in (slice(0, middle), slice(middle, piece.rounds)):
                    play_rounds(policy, rounds.part(part.start, part.stop), means[part], picks[part])
                picked.append(picks)
        states.append((np.concatenate(picked), policy._pack()[1]))
    (picks, arrays), (other_picks, other_arrays) = states
    np.testing.assert_array_equal(picks, other_picks)
    assert arrays.keys() == other_arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[key])


@pytest.mark.parametrize(
    ("arms", "features"),
    [("articles", "das"), ("positions", "li"), ("articles", "shared+pair:xz"), ("positions", "disjoint+pair")],
)
def test_candidates_and_their_features(tmp_path, features, arms):
    """Candidates beyond the last place are cut off, and places that are filled up have zeros."""
    log = little_log(tmp_path, arms=30, pool=22 if "+" in features else 9, every=13, pair=2)
    view = View(log, features=features, arms=arms)
    expander, played = Expander(view, numbers=5_000), 0
    for batch in log.batches():
        for piece, rounds in expander(batch):
            rounds.check(view.d1, view.d2)
            played += piece.rounds
            for t in range(0, piece.rounds, 9):
                listed = log.pools.rows[log.pools.offsets[piece.pool[t]] : log.pools.offsets[piece.pool[t] + 1]]
                names, vectors, pair = [log.names[r] for r in listed], log.vectors[listed], piece.pair[t][: len(listed)]
                if arms == "positions":
                    names = list(range(20))
                    vectors = np.vstack([vectors, np.zeros((20, 6))])[:20]
                    pair = np.vstack([pair, np.zeros((20, 2))])[:20]
                n = rounds.counts[t]
                assert [rounds.arms[k] for k in rounds.index[t, :n]] == names
                expected = view.map(piece.user[t], vectors, pair if view.map.pair else None)
                for array, wanted in zip(rounds.features(t), expected, strict=True):
                    np.testing.assert_array_equal(array, wanted)
                if piece.chosen[t] < n:
                    _, x, z = view.rows(piece.part(t, t + 1))
                    np.testing.assert_array_equal(x[0], expected[0][piece.chosen[t]])
                    np.testing.assert_array_equal(z[0], expected[1][piece.chosen[t]])
    assert played == log.rounds


def test_the_map_is_chosen_by_what_the_arms_have(tmp_path):
    log = little_log(tmp_path)
    view = View(log)
    assert (view.map.name, view.why) == ("das", "the arms have features of their own")
    assert view_of(view.recipe()).map == view.map
    for given in MAPS:
        view = View(log, features=given)
        assert (view.map.name, view.why) == (given, None)


def test_pair_features_are_in_x_unless_they_are_left_out(tmp_path):
    log = little_log(tmp_path, pair=2)
    view = View(log)
    assert (view.map.name, view.map.pair) == ("das+pair", 2)
    assert view.why == "the arms have features of their own; x ends with the pair features (p1, p2)"
    assert view_of(view.recipe()).map == view.map
    many = little_log(tmp_path, "many", pair=5)
    assert View(many).why.endswith("(p1, p2, p3 and 2 more)")
    left_out = View(log, features="das")
    assert (left_out.map.name, left_out.map.pair, left_out.d1) == ("das", 0, view.d1 - 2)
    with pytest.raises(ValueError, match=r"the log has no pair features for the map li\+pair: use li"):
        View(little_log(tmp_path, "without"), features="li+pair")


def test_arms_that_nothing_tells_apart_learn_from_the_user(tmp_path):
    """With das, x and z would be the same for all candidates of a round, and the same arm the best for all users."""
    zeros = np.zeros(4, int)
    log = log_of(tmp_path / "log", zeros, zeros + 1.0, zeros + 1 / 3, arms="abc")
    view = View(log)
    assert view.map.name == "li"
    assert "have no features that tell them apart" in view.why
    assert View(log, features="das").map.name == "das"


def test_unknown_arms_setting(tmp_path):
    with pytest.raises(ValueError, match="articles, positions, got 'places'"):
        View(little_log(tmp_path), arms="places")
