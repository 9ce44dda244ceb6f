"""Pair moments against a loop over all pairs written from the definition."""

from __future__ import annotations

import multiprocessing
import pickle
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookdown import PairMoments
from lookdown.errors import InputError

Array = NDArray[np.float64]


def sample(samples: int = 40, dim: int = 5, classes: int = 7, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    """Unbalanced classes, class 0 being a singleton."""
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1 + np.floor((classes - 1) * rng.random(samples - 1) ** 2).astype(np.int64)]
    return rng.normal(size=(samples, dim)) + 2 * rng.normal(size=(classes, dim))[y], y


def naive(X: Array, y: NDArray[Any], weighting: str) -> tuple[Array, Array]:
    """Average the outer products of all differences, one at a time."""
    outer = {(i, j): np.outer(X[i] - X[j], X[i] - X[j]) for i, j in combinations(range(len(X)), 2)}
    if weighting == "pairs":
        same = [value for (i, j), value in outer.items() if y[i] == y[j]]
        different = [value for (i, j), value in outer.items() if y[i] != y[j]]
        return np.mean(same, axis=0), np.mean(different, axis=0)
    members = [np.flatnonzero(y == label).tolist() for label in np.unique(y)]
    of_class = [np.mean([outer[pair] for pair in combinations(rows, 2)], axis=0) for rows in members if len(rows) > 1]
    of_pair = [
        np.mean([outer[min(i, j), max(i, j)] for i, j in product(a, b)], axis=0) for a, b in combinations(members, 2)
    ]
    return np.mean(of_class, axis=0), np.mean(of_pair, axis=0)


@pytest.mark.parametrize("weighting", ["pairs", "classes"])
@pytest.mark.parametrize("normalize", [False, True])
def test_covariances_equal_a_loop_over_all_pairs(weighting: Any, normalize: bool) -> None:
    X, y = sample()
    found = PairMoments.of(X, y, normalize=normalize).covariances(weighting)
    expected = naive(X / np.linalg.norm(X, axis=1, keepdims=True) if normalize else X, y, weighting)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_properties_are_the_covariances_over_pairs_and_pairs_are_counted() -> None:
    X, y = sample()
    moments = PairMoments.of(X, y)
    np.testing.assert_array_equal(moments.same_covariance, moments.covariances("pairs")[0])
    np.testing.assert_array_equal(moments.different_covariance, moments.covariances("pairs")[1])
    same = sum(a == b for a, b in combinations(y, 2))
    assert (moments.same_pairs, moments.different_pairs) == (same, 40 * 39 // 2 - same)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))


@given(seed=st.integers(0, 10_000), shards=st.integers(1, 8), order=st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_any_shards_merged_equal_the_whole(seed: int, shards: int, order: Any) -> None:
    X, y = sample(seed=seed)
    shard = np.random.default_rng(seed).integers(shards, size=len(X))
    parts = [PairMoments.of(X[shard == s], y[shard == s]) for s in range(shards) if (shard == s).any()]
    order.shuffle(parts)
    merged = sum(parts[1:], start=parts[0])
    whole = PairMoments.of(X, y)
    np.testing.assert_array_equal(merged.classes, whole.classes)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    np.testing.assert_allclose(merged.covariances(), whole.covariances(), rtol=1e-10)


def test_updates_in_batches_equal_the_whole_and_addition_leaves_its_operands_alone() -> None:
    X, y = sample(200)
    batched = PairMoments()
    for rows in np.array_split(np.random.default_rng(1).permutation(200), 13):
        batched.update(X[rows], y[rows])
    np.testing.assert_allclose(batched.covariances(), PairMoments.of(X, y).covariances(), rtol=1e-11)
    before = pickle.dumps(batched)
    _ = batched + PairMoments.of(X, y + 100)
    assert pickle.dumps(batched) == before


def test_classes_larger_than_a_block_are_merged_within_the_class() -> None:
    X, y = sample(20_000, classes=3)
    x = X[y == 1]
    assert len(x) > 2 * 4096
    moments = PairMoments.of(X, y)
    np.testing.assert_allclose(moments.scatters[1], (x - x.mean(axis=0)).T @ (x - x.mean(axis=0)), rtol=1e-11)


def test_classes_that_are_regrouped_have_the_moments_of_their_samples_together() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(6, size=60)
    names = np.array(["plane", "ship", "plane", "car", "ship", "ship"])
    found, wanted = PairMoments.of(X, y).regrouped(names), PairMoments.of(X, names[y])
    assert found.classes.tolist() == ["car", "plane", "ship"]
    for weighting in ("pairs", "classes"):
        np.testing.assert_allclose(found.covariances(weighting), wanted.covariances(weighting))
    with pytest.raises(InputError, match="6"):
        PairMoments.of(X, y).regrouped(names[:5])


def test_an_offset_of_a_million_keeps_eight_digits() -> None:
    X, y = sample(500)
    X = np.round(X, 3)  # so that adding the offset loses nothing of the data themselves
    offset = 1e6 + np.arange(X.shape[1])
    for weighting in ("pairs", "classes"):
        moved = PairMoments.of(X + offset, y).covariances(weighting)
        plain = PairMoments.of(X, y).covariances(weighting)
        np.testing.assert_allclose(moved, plain, rtol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_torch_tensors_are_taken_with_their_gradients_left_behind(dtype: torch.dtype) -> None:
    X, y = sample()
    tensor = torch.tensor(X, dtype=dtype, requires_grad=True)
    expected = PairMoments.of(tensor.detach().double().numpy(), y).same_covariance
    np.testing.assert_allclose(PairMoments.of(tensor, torch.tensor(y)).same_covariance, expected, rtol=1e-12)


def test_labels_may_be_strings_and_shards_may_know_longer_ones() -> None:
    X, y = sample()
    names = np.array(["a", "bb", "ccc", "dddd", "eeeee", "f", "gg"])[y]
    short = np.char.str_len(names) < 3
    merged = PairMoments.of(X[short], names[short]) + PairMoments.of(X[~short], names[~short])
    np.testing.assert_allclose(merged.covariances(), PairMoments.of(X, y).covariances(), rtol=1e-12)
    objects = names.astype(object)
    np.testing.assert_array_equal(PairMoments.of(X, objects).classes, np.unique(names))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.full((4, 2), np.nan), [0, 0, 1, 1], "NaN in row 0"),
        ([[1.0, 2], [3, 4], [np.inf, 1], [1, 1]], [0, 0, 1, 1], "inf in row 2"),
        (np.full((4, 2), 1e300) * [[1], [-1], [1], [-1]], [0, 0, 1, 1], "scale the embeddings down"),
        (np.empty((0, 3)), [], "0 sample"),
        (np.empty((3, 0)), [0, 1, 1], "0 feature"),
        (np.ones(4), [0, 0, 1, 1], "2D"),
        ([["a", "b"]], [0], "X is not a matrix of embeddings"),
        (np.ones((2, 2), dtype=complex), [0, 1], "Complex"),
        (np.ones((3, 2)), [0, 1], "2 labels for 3 rows"),
        (np.ones((2, 2)), [0.0, np.nan], "NaN or inf in row 1"),
        (np.ones((2, 2)), np.array(["a", None], dtype=object), "use all strings or all integers"),
        (np.ones((2, 2)), np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"), "use strings or integers"),
        (np.ones((2, 2)), None, "y is missing"),
    ],
)
def test_bad_input_is_refused_with_the_place_and_the_remedy(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PairMoments.of(X, y)


def test_a_zero_vector_has_no_direction() -> None:
    X, y = sample()
    X[17] = 0
    PairMoments.of(X, y)
    with pytest.raises(InputError, match=r"zero vector in row 17 .*normalize=False"):
        PairMoments.of(X, y, normalize=True)


def test_moments_without_pairs_say_which_are_missing() -> None:
    X, _ = sample(4)
    with pytest.raises(InputError, match="no samples yet"):
        PairMoments().covariances()
    with pytest.raises(InputError, match=r"of 1 class .* no different pair"):
        PairMoments.of(X, np.zeros(4)).same_covariance  # noqa: B018
    with pytest.raises(InputError, match="a single sample, so there is no same pair"):
        PairMoments.of(X, np.arange(4)).different_covariance  # noqa: B018
    with pytest.raises(InputError, match="'pairs' or 'classes'"):
        PairMoments.of(X, [0, 0, 1, 1]).covariances("sides")  # type: ignore[arg-type]


def test_what_does_not_belong_together_is_not_merged() -> None:
    X, y = sample()
    moments = PairMoments.of(X, y)
    with pytest.raises(InputError, match="unit vectors"):
        moments + PairMoments.of(X, y, normalize=True)
    with pytest.raises(InputError, match="3 dimensions, the moments so far have 5"):
        moments.update(X[:, :3], y)
    with pytest.raises(InputError, match="labels are int64 in one part and <U21 in another"):
        moments.update(X, y.astype(str))
    with pytest.raises(TypeError):
        moments + 1  # type: ignore[operator]


@pytest.mark.parametrize("normalize", [False, True])
def test_a_refused_batch_leaves_nothing_behind(normalize: bool) -> None:
    X, y = sample()
    moments = PairMoments.of(X, y, normalize=normalize)
    before = pickle.dumps(moments)
    bad = X.copy()
    bad[-1] = 0 if normalize else np.nan
    with pytest.raises(InputError, match="row 39"):
        moments.update(bad, y + 3)
    assert pickle.dumps(moments) == before


def test_large_whole_numbers_of_two_widths_stay_apart() -> None:
    X, y = sample()
    signed, unsigned = (y + 2**60).astype(np.int64), (y + 2**60).astype(np.uint64)
    merged = PairMoments.of(X[::2], signed[::2]) + PairMoments.of(X[1::2], unsigned[1::2])
    np.testing.assert_allclose(merged.covariances(), PairMoments.of(X, y).covariances(), rtol=1e-11)


def test_differences_that_cannot_be_squared_are_refused() -> None:
    X, y = sample()
    X[y > 3] += 1e160
    with pytest.raises(InputError, match="scale the embeddings down"):
        PairMoments.of(X, y).covariances()


def test_it_describes_itself() -> None:
    X, y = sample()
    assert repr(PairMoments.of(X, y)) == "PairMoments(40 samples, 7 classes, 5 dimensions, normalize=False)"


def _reduce_a_shard(rank: int, world: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    X, y = sample(60)
    mine = PairMoments.of(X[rank::world], y[rank::world]).reduce()
    np.savez(Path(folder, f"{rank}.npz"), covariances=mine.covariances(), counts=mine.counts)
    torch.distributed.destroy_process_group()


def test_processes_reduce_to_the_same_bits_and_to_the_whole(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_reduce_a_shard, args=(rank, 2, str(tmp_path))) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
        assert process.exitcode == 0
    first, second = (np.load(tmp_path / f"{rank}.npz") for rank in range(2))
    X, y = sample(60)
    np.testing.assert_array_equal(first["covariances"], second["covariances"])
    np.testing.assert_allclose(first["covariances"], PairMoments.of(X, y).covariances(), rtol=1e-12)


def test_one_process_reduces_to_itself() -> None:
    X, y = sample()
    moments = PairMoments.of(X, y)
    np.testing.assert_array_equal(moments.reduce().covariances(), moments.covariances())
