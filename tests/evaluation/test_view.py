"""A log as rounds to play: candidates and features against plain loops, and the promise of a world kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hybandits import DisLinUCB, EpsilonGreedy, HyLinUCB, HyRan, HyThompson, LinUCB, SupLinUCB
from hybandits.evaluation import view as logged
from hybandits.evaluation.view import Expander, View, view_of
from hybandits.features import MAPS
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Batch, LogWriter, no_places
from hybandits.simulation.play import play_rounds
from tests.support.loglike import little_log, random_model


@pytest.mark.parametrize("arms", ["articles", pytest.param("positions", marks=pytest.mark.slow)])
@pytest.mark.parametrize("features", MAPS)
def test_candidates_features_and_means(tmp_path, features, arms):
    log = little_log(tmp_path)
    view = View(log, features=features, arms=arms)
    model = random_model(view)
    expander = Expander(view, numbers=5_000)
    t = 0
    beta = dict(zip(model.names, model.beta, strict=True))
    batches = list(log.batches())
    users = np.concatenate([b.user for b in batches])
    pools = np.concatenate([b.pool for b in batches])
    for batch in batches:
        for piece, rounds in expander(batch):
            means = model.means(view, piece)
            for i in range(0, piece.rounds, 7):
                listed = log.pools.rows[log.pools.offsets[pools[t + i]] : log.pools.offsets[pools[t + i] + 1]]
                if arms == "articles":
                    expected = [(log.names[r], log.vectors[r]) for r in listed]
                else:
                    vectors = [log.vectors[r] for r in listed[:20]]
                    vectors += [np.zeros(6)] * (20 - len(vectors))
                    expected = list(enumerate(vectors))
                n = rounds.counts[i]
                assert n == len(expected)
                assert [rounds.arms[k] for k in rounds.index[i, :n]] == [name for name, _ in expected]
                xs, zs = rounds.features(i)
                assert len(xs) == len(zs) == n
                for k, (name, vector) in enumerate(expected):
                    x, z = view.map(users[t + i], vector)
                    np.testing.assert_array_equal(xs[k], x)
                    np.testing.assert_array_equal(zs[k], z)
                    mean = x @ model.theta + z @ beta.get(name, np.zeros(view.d2))
                    np.testing.assert_allclose(means[i, k], mean, atol=1e-12)
                assert (means[i, n:] == -np.inf).all()
            t += piece.rounds
    assert t == log.rounds


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


def test_memory_of_a_piece_is_bounded(tmp_path):
    view = View(little_log(tmp_path))
    pieces = [r for b in view.log.batches() for _, r in Expander(view, numbers=2000)(b)]
    assert max(_numbers(r) for r in pieces) <= 2000


def _numbers(rounds):
    """All that is laid out for some rounds."""
    return sum(each.size for each in (rounds.x, rounds.z, rounds.index, rounds.source.vector, rounds.source.user))


def test_a_long_list_after_a_short_one_does_not_take_the_room_of_many(tmp_path):
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
        writer.write(Batch(zeros.astype(int), pool, zeros.astype(int), zeros, zeros + 1, no_places(n), user))
        log = writer.finish(ReadReport())
    view = View(log)
    pieces = [rounds for batch in log.batches() for _, rounds in Expander(view, numbers=20_000)(batch)]
    assert max(_numbers(r) for r in pieces) <= 20_000
    assert sum(len(r.counts) for r in pieces) == n


def test_candidates_plain_and_compiled(tmp_path):
    view = View(little_log(tmp_path))
    batch = next(view.log.batches()).part(0, 5)
    local = np.arange(len(view.names))[::-1].copy()
    outputs = []
    for function in (logged.list_candidates, logged.list_candidates.py_func):
        index, vector = np.full((5, 9), -1), np.full((5, 9), -1)
        function(batch.pool, view.offsets, view.arm, view.vector, local, index, vector)
        outputs.append((index, vector))
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.min() == 0


MAKERS = {
    "HyLinUCB": lambda d1, d2: HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=1),
    "LinUCB": lambda d1, d2: LinUCB(d1=d1, d2=d2, noise=0.1, seed=1),
    "DisLinUCB": lambda d1, d2: DisLinUCB(d1=d1, d2=d2, noise=0.1, seed=1),
    "HyThompson": lambda d1, d2: HyThompson(d1=d1, d2=d2, noise=0.1, seed=1),
    "SupLinUCB": lambda d1, d2: SupLinUCB(d1=d1, d2=d2, horizon=300, alpha=0.3, seed=1),
    "HyRan": lambda d1, d2: HyRan(d1=d1, d2=d2, arm_count=9, seed=1),
    "EpsilonGreedy": lambda d1, d2: EpsilonGreedy(LinUCB(d1=d1, d2=d2, noise=0.1), epsilon=0.1, seed=1),
}


@pytest.mark.parametrize("features", ["das", "disjoint", "li+pair:xz"])
@pytest.mark.parametrize("name", MAKERS)
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
                means = model.means(view, piece)
                for part in (slice(0, middle), slice(middle, piece.rounds)):
                    play_rounds(policy, rounds.part(part.start, part.stop), means[part], picks[part])
                picked.append(picks)
        states.append((np.concatenate(picked), policy._pack()[1]))
    (picks, arrays), (other_picks, other_arrays) = states
    np.testing.assert_array_equal(picks, other_picks)
    assert arrays.keys() == other_arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[key])


@pytest.mark.parametrize("pair", [0, 2])
def test_rounds_may_be_played_by_several_threads_at_once(tmp_path, pair):
    view = View(little_log(tmp_path, every=10_000, pair=pair))
    model = random_model(view)
    piece, rounds = next(Expander(view)(next(view.log.batches())))
    means = model.means(view, piece)

    def play_part(start):
        policy = MAKERS["HyLinUCB"](view.d1, view.d2)
        picks = np.empty(piece.rounds - start, np.int64)
        play_rounds(policy, rounds.part(start, piece.rounds), np.ascontiguousarray(means[start:]), picks)
        return picks

    starts = [0, 1, 2, 3] * 8
    alone = [play_part(start) for start in starts[:4]]
    with ThreadPoolExecutor(4) as threads:
        for start, picks in zip(starts, threads.map(play_part, starts), strict=True):
            np.testing.assert_array_equal(picks, alone[start])


@pytest.mark.parametrize("arms", ["articles", "positions"])
@pytest.mark.parametrize("features", ["das+pair", "li+pair:z", "shared+pair:xz", "disjoint+pair"])
def test_pair_features_are_those_of_their_candidates(tmp_path, features, arms):
    """Those of arms beyond the last place are cut off, and places that are filled up have zeros."""
    view = View(little_log(tmp_path, arms=30, pool=22, every=13, pair=2), features=features, arms=arms)
    expander = Expander(view)
    seen = set()
    for batch in view.log.batches():
        for piece, rounds in expander(batch):
            rounds.check(view.d1, view.d2)
            for t in range(0, piece.rounds, 9):
                first, n = view.offsets[piece.pool[t]], rounds.counts[t]
                pair = np.vstack([piece.pair[t], np.zeros((20, 2))])[:n]
                real = view.log.pools.sizes[piece.pool[t]]
                pair[real:] = 0.0
                seen.add(np.sign(n - real))
                expected = view.map(piece.user[t], view.vectors[view.vector[first : first + n]], pair)
                for array, wanted in zip(rounds.features(t), expected, strict=True):
                    np.testing.assert_array_equal(array, wanted)
                if piece.chosen[t] < n:
                    _, x, z = view.rows(piece.part(t, t + 1))
                    np.testing.assert_array_equal(x[0], expected[0][piece.chosen[t]])
                    np.testing.assert_array_equal(z[0], expected[1][piece.chosen[t]])
    assert seen == ({0} if arms == "articles" else {-1})


def test_rows_of_a_batch_in_any_layout(tmp_path):
    view = View(little_log(tmp_path))
    batch = next(view.log.batches())
    arms, x, z = view.rows(batch)
    other = view.rows(batch._replace(user=np.asfortranarray(batch.user)))
    assert other[0] == arms
    np.testing.assert_array_equal(other[1], x)
    np.testing.assert_array_equal(other[2], z)


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


@pytest.mark.parametrize("vectors", [np.ones((3, 1)), np.tile([1.0, 0.5], (3, 1))])
def test_arms_that_nothing_tells_apart_learn_from_the_user(tmp_path, vectors):
    """With das, x and z would be the same for all candidates of a round, and the same arm the best for all users."""
    names = [str(j) for j in range(vectors.shape[1])]
    with LogWriter(tmp_path / "log", kind="test", user=["constant", "age"], arm=names) as writer:
        pool = writer.tables.pool([writer.tables.arm(f"a{i}", vector) for i, vector in enumerate(vectors)])
        writer.source()
        zeros = np.zeros(4, int)
        user = np.column_stack([np.ones(4), np.arange(4.0)])
        writer.write(Batch(zeros, zeros + pool, zeros, zeros + 1.0, zeros + 1 / 3, no_places(4), user))
        log = writer.finish(ReadReport())
    view = View(log)
    assert view.map.name == "li"
    assert "have no features that tell them apart" in view.why
    assert View(log, features="das").map.name == "das"


def test_unknown_arms_setting(tmp_path):
    with pytest.raises(ValueError, match="articles, positions, got 'places'"):
        View(little_log(tmp_path), arms="places")
