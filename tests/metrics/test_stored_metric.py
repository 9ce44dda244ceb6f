"""Metrics on disk: what comes back is what went in, and what is damaged is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookdown import Cosine, Euclidean, GaussianLikelihoodRatio, KindLikelihoodRatio, load_metric
from lookdown.errors import NotFittedError, StoredMetricError
from lookdown.lab.synthetic.gaussian_world import GaussianWorld
from lookdown.metrics import Metric

X, Y = GaussianWorld.random(6).chips(30, 4, np.random.default_rng(0))
METRICS = [
    GaussianLikelihoodRatio(),
    GaussianLikelihoodRatio(indefinite="keep", shrinkage=0.2, weighting="classes", normalize=False),
    KindLikelihoodRatio(),
    KindLikelihoodRatio(novelty=0, temperature=2.0, weighting="pairs", normalize=False),
    Cosine(),
    Euclidean(),
]


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_metric_comes_back_to_the_bit(metric: Metric, calibrated: bool, tmp_path: Path) -> None:
    metric.fit(X, Y)
    if calibrated:
        metric.calibrate(X, Y)
    metric.save(tmp_path / "runs" / "metric")
    twin = load_metric(tmp_path / "runs" / "metric")
    assert type(twin) is type(metric)
    assert twin.get_params() == metric.get_params()
    np.testing.assert_array_equal(twin.score(X, X), metric.score(X, X))
    learnt = {name for name in vars(metric) if name.endswith("_")}
    assert learnt == {name for name in vars(twin) if name.endswith("_")}
    if calibrated:
        assert twin.threshold(0.03) == metric.threshold(0.03)
        assert twin.threshold(0.03).high == metric.threshold(0.03).high
        assert twin.posterior(0.5, 0.1) == metric.posterior(0.5, 0.1)
    assert sorted(path.name for path in (tmp_path / "runs").rglob("*")) == [
        "metric",
        "metric.json",
        "metric.safetensors",
    ]


def test_a_metric_travels_to_another_process(tmp_path: Path) -> None:
    metric = GaussianLikelihoodRatio().fit(X, Y)
    metric.save(tmp_path / "metric")
    np.save(tmp_path / "x.npy", X)
    code = (
        "import numpy, sys; from lookdown import load_metric; x = numpy.load(sys.argv[2]);"
        "numpy.save(sys.argv[3], load_metric(sys.argv[1]).score(x, x)); assert 'torch' not in sys.modules"
    )
    names = [str(tmp_path / name) for name in ("metric", "x.npy", "scores.npy")]
    subprocess.run([sys.executable, "-c", code, *names], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), metric.score(X, X))


def test_nothing_is_overwritten_unasked_and_nothing_but_a_metric_ever(tmp_path: Path) -> None:
    folder = tmp_path / "metric"
    GaussianLikelihoodRatio().fit(X, Y).save(folder)
    with pytest.raises(StoredMetricError, match="overwrite=True"):
        Cosine().fit(X).save(folder)
    assert isinstance(load_metric(folder), GaussianLikelihoodRatio)
    Cosine().fit(X).save(folder, overwrite=True)
    assert isinstance(load_metric(folder), Cosine)
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter1.txt").write_text("years of work")
    with pytest.raises(StoredMetricError, match="is not a metric, or holds other files as well; nothing was written"):
        Cosine().fit(X).save(thesis, overwrite=True)
    assert (thesis / "chapter1.txt").read_text() == "years of work"
    (folder / "notes.txt").write_text("why this shrinkage")
    with pytest.raises(StoredMetricError, match="holds other files"):
        Cosine().fit(X).save(folder, overwrite=True)
    assert (folder / "notes.txt").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"metric", "thesis"}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoredMetricError, match="file/metric could not be written"):
        Cosine().fit(X).save(tmp_path / "file" / "metric")


def test_an_overwrite_that_fails_half_way_puts_the_old_metric_back(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "metric"
    Cosine().fit(X).save(folder)
    rename = Path.rename

    def fails_once(path: Path, target: Path) -> Path:
        if path.name == "fresh":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    with pytest.raises(StoredMetricError, match="Input/output error"):
        Euclidean().fit(X).save(folder, overwrite=True)
    assert isinstance(load_metric(folder), Cosine)
    assert [path.name for path in tmp_path.iterdir()] == ["metric"]


def test_parameters_may_be_numpy_scalars_and_nothing_stranger(tmp_path: Path) -> None:
    metric = GaussianLikelihoodRatio(shrinkage=np.float32(0.25), normalize=np.bool_(False)).fit(X, Y)  # type: ignore[arg-type]
    metric.save(tmp_path / "metric")
    np.testing.assert_array_equal(load_metric(tmp_path / "metric").score(X, X), metric.score(X, X))
    metric.shrinkage = 0.25j  # type: ignore[assignment]
    with pytest.raises(StoredMetricError, match="type complex cannot be stored"):
        metric.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.kill
def test_a_full_disk_leaves_the_old_metric_whole(tmp_path: Path) -> None:
    """A file system of 64 KiB: the calibrated metric of 64 dimensions does not fit beside the small one."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mounted)], capture_output=True)
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        Cosine().fit(X).save(mounted / "metric")
        large = GaussianWorld.random(64).chips(30, 4, np.random.default_rng(0))
        with pytest.raises(StoredMetricError, match="No space left on device"):
            GaussianLikelihoodRatio().fit(*large).save(mounted / "metric", overwrite=True)
        assert isinstance(load_metric(mounted / "metric"), Cosine)
        assert [path.name for path in mounted.iterdir()] == ["metric"]
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def _edit(folder: Path, **changes: Any) -> None:
    file = folder / "metric.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "metric.json").unlink(), "holds no metric"),
        (lambda f: (f / "metric.json").write_text("{"), r"metric\.json cannot be read"),
        (lambda f: (f / "metric.json").write_text("[]"), "does not describe a metric"),
        (lambda f: (f / "metric.json").write_bytes(b"\xff\xfe\x00"), r"metric\.json cannot be read"),
        (lambda f: _edit(f, format="onnx"), "does not describe a metric"),
        (lambda f: _edit(f, version=99), "format version 99, this lookdown reads version 1"),
        (lambda f: _edit(f, kind="os.system"), "names the unknown metric 'os.system'; known are Gaussian"),
        (lambda f: _edit(f, parameters={"shrinkag": 1}), "is not as it was saved"),
        (lambda f: _edit(f, parameters=None), "is not as it was saved"),
        (lambda f: _edit(f, numbers={}), "is not as it was saved"),
        (lambda f: _edit(f, kind=["x"]), "names the unknown metric"),
        (lambda f: (f / "metric.safetensors").unlink(), r"metric\.safetensors cannot be read"),
        (lambda f: (f / "metric.safetensors").write_bytes(b"x" * 100), "is not as it was saved"),
        (lambda f: (f / "metric.safetensors").write_bytes((f / "metric.safetensors").read_bytes()[:-8]), "is not as"),
        (lambda f: _edit(f, sha256="0"), "is not as it was saved"),
    ],
)
def test_a_damaged_metric_is_refused_by_name(damage: Any, message: str, tmp_path: Path) -> None:
    GaussianLikelihoodRatio().fit(X, Y).save(tmp_path / "metric")
    damage(tmp_path / "metric")
    with pytest.raises(StoredMetricError, match=message) as caught:
        load_metric(tmp_path / "metric")
    assert str(tmp_path / "metric") in str(caught.value)


def test_an_unfitted_metric_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        GaussianLikelihoodRatio().save(tmp_path / "metric")
