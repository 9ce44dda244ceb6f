"""Statistics of the whole training set."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from lookdown.metrics import GaussianLikelihoodRatio, MixtureLikelihoodRatio
from lookdown.training.frozen_features import FrozenFeatures
from lookdown.training.recipe import MetricChoice
from lookdown.training.samples import FeatureSamples
from lookdown.training.training_embeddings import RunningEmbeddings, embed_all, fit_metric

RNG = np.random.default_rng(0)
LABELS = np.arange(120) % 6
EMBEDDINGS = RNG.normal(size=(6, 5))[LABELS] + 0.5 * RNG.normal(size=(120, 5))


def test_the_metric_is_that_of_the_recipe() -> None:
    made = fit_metric(MetricChoice(shrinkage=0.2, weighting="classes"), EMBEDDINGS, LABELS, 0)
    expected = GaussianLikelihoodRatio(shrinkage=0.2, weighting="classes").fit(EMBEDDINGS, LABELS)
    np.testing.assert_array_equal(made.score(EMBEDDINGS, EMBEDDINGS), expected.score(EMBEDDINGS, EMBEDDINGS))
    assert isinstance(fit_metric(MetricChoice(kind="mixture"), EMBEDDINGS, LABELS, 0), MixtureLikelihoodRatio)


def test_a_pass_learns_nothing_and_leaves_the_mode() -> None:
    network = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    features = EMBEDDINGS.astype(np.float32)[None]
    samples = FeatureSamples(FrozenFeatures(features, np.arange(120), {}), np.arange(120))
    found = embed_all(network, samples, 3)
    with torch.no_grad():
        np.testing.assert_allclose(found, network.eval()(torch.from_numpy(features[0])).numpy(), rtol=1e-6)
    for name, value in network.train().state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


class Narrow(torch.Tensor):
    """A tensor on a device without float64, such as Apple's."""

    def double(self) -> torch.Tensor:
        raise TypeError("this device has no float64")

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        return self.as_subclass(torch.Tensor)


def test_a_device_without_float64_will_do() -> None:
    class Elsewhere(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input).as_subclass(Narrow)

    features = EMBEDDINGS.astype(np.float32)[None]
    samples = FeatureSamples(FrozenFeatures(features, np.arange(120), {}), np.arange(120))
    network = Elsewhere(5, 3)
    found = embed_all(network, samples, 3)
    running = RunningEmbeddings(np.zeros((120, 3)))
    running.update(np.arange(120), network(torch.from_numpy(features[0])))
    np.testing.assert_allclose(running.embeddings, found, rtol=1e-6)


def test_running_embeddings_count_each_chip_once_by_its_last() -> None:
    running = RunningEmbeddings(np.zeros((4, 2)))
    running.update(np.array([1, 3]), torch.ones(2, 2))
    running.update(np.array([3, 0]), torch.full((2, 2), 2.0))
    np.testing.assert_array_equal(running.embeddings, [[2, 2], [1, 1], [0, 0], [2, 2]])
