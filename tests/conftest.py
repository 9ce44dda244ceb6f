"""What all tests share: tiers, two workers with a core each, templates, and servers that start when asked for."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # a worker a core; read when numpy and torch are imported
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import gc
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import templates, tiers
from tests.gallery.scale.running_milvus import RunningMilvus, why_not
from tests.gallery.scale.running_store import BUCKET, RunningStore
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from lookdown.gallery.scale.milvus_server import MilvusServer


def pytest_configure(config: pytest.Config) -> None:
    """Make one folder of templates for all workers, which inherit the environment, and listen to them."""
    if not hasattr(config, "workerinput"):
        templates.begin()
        times = os.environ.get("LOOKDOWN_TEST_TIMES")
        config.pluginmanager.register(tiers.Ledger(Path(times) if times else None))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Drop it when the last worker is done."""
    if not hasattr(config, "workerinput"):
        templates.end()


def pytest_collection_finish() -> None:
    """Leave modules and tests out of all garbage collections to come: they stay until the end."""
    gc.collect()
    gc.freeze()


class ByFile(LoadScopeScheduling):
    """Gives a worker whole files, so that what a file makes for its tests is made once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return next((name for name, files in _TOGETHER.items() if file.startswith(files)), file)


# Files that share more than templates: Ray's nodes, runs that are trained when a test first asks for them, the story.
_TOGETHER = {
    "ray": ("tests/gallery/scale/test_ray_", "tests/cli/test_worker_options.py"),
    "smoke": tuple(
        f"tests/lab/paper/{file.name}"
        for file in Path(__file__).parent.glob("lab/paper/test_*.py")
        if "smoke()" in file.read_text()
    ),
    "demo": ("tests/lab/demo/",),
}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Hand out files in the order of the tests, which is that of the tiers."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tier each test belongs to, before `-m` chooses among them."""
    tiers.assign(items)


@pytest.fixture(autouse=True)
def _trace_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("export"):
        from tests.networks.exports import trace_once  # imports torch

        trace_once(monkeypatch)


@pytest.fixture(scope="session")
def milvus_binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the programs of servers."""
    if reason := why_not():
        pytest.skip(reason)
    return tmp_path_factory.mktemp("milvus-programs")


@pytest.fixture(scope="session")
def running_milvus(milvus_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMilvus]:
    """One server for the session."""
    with RunningMilvus(tmp_path_factory.mktemp("milvus"), milvus_binaries) as running:
        yield running


@pytest.fixture(scope="session")
def milvus(running_milvus: RunningMilvus) -> MilvusServer:
    """How to reach it."""
    return MilvusServer(uri=running_milvus.uri)


@pytest.fixture(scope="session")
def running_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    """One object store for the session."""
    with RunningStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def store(running_store: RunningStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningStore]:
    """The store, and an environment that leads to it and to no other."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in running_store.environment.items():
        monkeypatch.setenv(name, value)
    yield running_store
    running_store.set_right()


@pytest.fixture
def table(store: RunningStore) -> str:
    """An address where no table is yet."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/ships"
