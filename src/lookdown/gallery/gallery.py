"""A gallery: an archive of chips that can be searched, extended, labelled and adapted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from lookdown.adaptation import AdaptationSettings, Method
from lookdown.errors import GalleryError, InputError
from lookdown.gallery.index.sources import Cutting, Images, chip_groups
from lookdown.gallery.index.vectors import add_vectors
from lookdown.gallery.index.writer import AddReport, add_chips, note_skipped
from lookdown.gallery.learning import Labels, MetricUpdate, calibrate, estimate
from lookdown.gallery.results.hit import Results
from lookdown.gallery.search.engines.engine import EngineChoice
from lookdown.gallery.search.filters import Where
from lookdown.gallery.search.request import Example, SearchRequest, as_examples, picture
from lookdown.gallery.search.searcher_cache import COSINE, SearcherCache
from lookdown.gallery.store.gallery_folder import GalleryFolder
from lookdown.gallery.store.metric_registry import MetricInfo, MetricRegistry
from lookdown.gallery.store.snapshot import ChipLabel, GalleryStats, Rows, Snapshot, gallery_stats
from lookdown.gallery.store.table import ChipTable
from lookdown.metrics import Cosine, Euclidean, KindLikelihoodRatio, Metric
from lookdown.networks.exported_embedder import ExportedEmbedder
from lookdown.networks.network_folder import FOLDER as EXPORTED
from lookdown.networks.network_folder import AnyEmbedder, fastest
from lookdown.progress import Progress, no_progress

__all__ = ["Gallery"]


class Gallery:
    """An archive that can be searched: a folder of embeddings, metrics, metadata and thumbnails.

    Use `Gallery.from_images`, `Gallery.from_run`, `Gallery.create` or `Gallery.open`. A gallery shows the state of the
    folder when it was opened, or at its last `refresh` or own change. Other processes may write to it meanwhile.

    path: the folder.
    engine: what searches it: `auto`, `exact` or `ivf` in this process, a `MilvusServer`, or `milvus` for the server
        that the environment names (LOOKDOWN_MILVUS_URI and _TOKEN).
    table: where you expect its table, s3://bucket/name; the folder knows, and another address is refused.

    >>> import numpy as np
    >>> from lookdown import Gallery
    >>> gallery = Gallery.create("gallery", dimension=2)
    >>> rows = [{"id": "tug", "source": "tug.jpg"}, {"id": "ferry", "source": "ferry.jpg"}]
    >>> report = gallery.add_embeddings(rows, [[1.0, 0.1], [0.1, 1.0]])
    >>> [hit.id for hit in gallery.search(np.array([1.0, 0.0]), k=1).hits]
    ['tug']
    """

    def __init__(self, path: str | Path, *, engine: EngineChoice = "auto", table: str | None = None) -> None:
        self.path = Path(path)
        self._folder = GalleryFolder.open(self.path)
        if table is not None:
            self._folder.refuse_other_table(table)
        self._table = ChipTable.open(self._folder.location)
        self._registry = MetricRegistry(self.path / "metrics")
        self._searchers = SearcherCache(self.path, self._table, self._registry, engine)

    @classmethod
    def create(
        cls,
        path: str | Path,
        embedder: AnyEmbedder | None = None,
        metric: Metric | None = None,
        *,
        dimension: int | None = None,
        about: str = "the metric that the gallery was created with",
        kinds: KindLikelihoodRatio | None = None,
        engine: EngineChoice = "auto",
        table: str | None = None,
    ) -> Gallery:
        """Create a gallery without chips.

        path: the folder, which must not hold a gallery yet.
        embedder: the network that embeds images. Without one, you embed them yourself.
        metric: what compares embeddings; the cosine by default.
        dimension: of the embeddings, needed only without an embedder.
        about: a sentence on the metric, for `metrics`.
        kinds: a ratio of known kinds, to search by instead; adaptation still begins with `metric`.
        engine: as in `open`.
        table: where to keep rows, thumbnails and embeddings instead of in the folder: s3://bucket/name.

            gallery = Gallery.create("gallery", dimension=64)
        """
        path = Path(path)
        width = embedder.settings.dimension if embedder is not None else dimension
        if width is None:
            raise InputError("a gallery without an embedder needs the dimension of its vectors")
        chosen = metric or Cosine()
        if isinstance(chosen, Cosine | Euclidean) and not hasattr(chosen, "n_features_in_"):
            chosen.fit(np.ones((1, width)))
        chosen._require_fit()
        if chosen.n_features_in_ != width:
            raise InputError(f"the metric takes {chosen.n_features_in_} numbers, the embedder gives {width}")
        folder = GalleryFolder.begin(path, width, None if embedder is None else embedder.fingerprint, table)
        with folder.writing():
            folder.refuse_finished()  # another process may have created it meanwhile
            ChipTable.create(folder.location, width)
            if isinstance(embedder, ExportedEmbedder):
                embedder.save(path / EXPORTED / embedder.description.name, overwrite=True)
            elif embedder is not None:
                embedder.save(path / "embedder", overwrite=True)
            registry = MetricRegistry.create(path / "metrics")
            kind = "cosine" if isinstance(chosen, Cosine) else "trained"
            first = registry.add(chosen, kind, about)
            registry.use(first.name if kinds is None else registry.add(kinds, "kinds", about, base=first.name).name)
            folder.write()
        return cls(path, engine=engine)

    @classmethod
    def from_images(
        cls,
        path: str | Path,
        images: Images,
        *,
        embedder: str = "tf_efficientnet_lite0",
        cutting: Cutting | None = None,
        dimension: int = 64,
        progress: Progress = no_progress,
        table: str | None = None,
    ) -> Gallery:
        """Create a gallery with a pretrained network and add images, or add them to the gallery that is there.

        path: the folder of the gallery.
        images: a folder, files, GeoTIFF scenes or manifests; unreadable images are listed in `skipped.csv`.
        embedder: the name of the network.
        cutting: how scenes are cut into windows.
        dimension: of the embeddings; the projection to it is fitted to the images.
        progress: called now and then with the number of chips.
        table: as in `create`.

            gallery = Gallery.from_images("gallery", "images")
            gallery.search("images/ferry.jpg", k=10)
        """
        from lookdown.gallery.index.creation import gallery_of_pretrained

        cutting = cutting or Cutting()
        gallery = gallery_of_pretrained(
            Path(path), embedder, images, cutting, dimension=dimension, progress=progress, table=table
        )
        gallery.add(images, cutting=cutting, progress=progress)
        return gallery

    @classmethod
    def from_run(
        cls,
        path: str | Path,
        run: str | Path,
        images: Images = (),
        *,
        cutting: Cutting | None = None,
        progress: Progress = no_progress,
        table: str | None = None,
    ) -> Gallery:
        """Create a gallery with the network and the metric of a run of `train`, or open it, and add images.

        path: the folder of the gallery.
        run: the folder of the run.
        images, cutting, progress, table: as in `from_images`.

            gallery = Gallery.from_run("gallery", "runs/ships", "images")
        """
        from lookdown.gallery.index.creation import gallery_of_run

        gallery = gallery_of_run(Path(path), Path(run), table=table)
        if not isinstance(images, list | tuple) or images:
            gallery.add(images, cutting=cutting, progress=progress)
        return gallery

    @classmethod
    def open(cls, path: str | Path, *, engine: EngineChoice = "auto", table: str | None = None) -> Gallery:
        """Open a gallery, to search or change it.

        path, engine, table: as in `Gallery`.

            gallery = Gallery.open("gallery")
        """
        return cls(path, engine=engine, table=table)

    def __len__(self) -> int:
        return len(self.snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """The table as of the last refresh."""
        return self._searchers.snapshot

    @property
    def metric(self) -> str:
        """The name of the metric in use."""
        return self._searchers.current

    @cached_property
    def embedder(self) -> AnyEmbedder | None:
        """The network of the gallery in its fastest form; None if the embeddings come from elsewhere."""
        if self._folder.fingerprint is None:
            return None
        embedder = fastest(self.path, self._folder.fingerprint)
        if embedder.fingerprint != self._folder.fingerprint:
            raise GalleryError(
                f"the embedder in {self.path} is not the one that its embeddings come from; restore that folder from a "
                "copy"
            )
        return embedder

    @property
    def embedded_by(self) -> str | None:
        """What runs the network: `torch`, or the name of an export; None as long as it was not needed."""
        embedder = self.__dict__.get("embedder")  # not the property, which would load it
        if embedder is None:
            return None
        return embedder.description.name if isinstance(embedder, ExportedEmbedder) else "torch"

    def writing(self) -> AbstractContextManager[None]:
        """Hold the lock of the writer: other writers are refused meanwhile, with the name of the lock holder."""
        return self._folder.writing()

    def prepare(self) -> None:
        """Load the vectors, or bring a server up to date, so that the first search does not have to."""
        self._searchers.searcher()

    def refresh(self) -> bool:
        """Read the changes of other processes; return whether there were any."""
        return self._searchers.refresh()

    def add(
        self,
        images: Images,
        *,
        cutting: Cutting | None = None,
        every_role: bool = False,
        workers: str | None = None,
        progress: Progress = no_progress,
    ) -> AddReport:
        """Embed and add chips that are not in the gallery yet.

        An interrupted call can be repeated: chips that are in the gallery are left alone. Images that cannot be read
        are left out, and listed in `skipped.csv`.

        images: manifests, images, folders of images, and scenes, which are cut into windows.
        cutting: how scenes are cut.
        every_role: take all chips of a manifest, not only those for a gallery.
        workers: let a Ray cluster do the work: its address (`ray://host:10001`, `host:6379`), or `ray` for that of
            RAY_ADDRESS, or else for a temporary one on this machine. Without it, this process does the work.
        progress: called now and then with the number of chips.

            gallery.add("images")
        """
        if self.embedder is None:
            raise GalleryError(f"{self.path} has no embedder; embed the images yourself and use add_embeddings")
        parts = chip_groups(images, cutting or Cutting(), every_role=every_role)
        with self._folder.writing():
            if workers is None:
                added = add_chips(self._table, self.embedder, parts, progress)
            else:
                from lookdown.gallery.scale.ray_indexing import add_chips_on_ray

                added = add_chips_on_ray(self._table, self.embedder, parts, progress, workers)
            note_skipped(self.path / "skipped.csv", added.skipped, self._table)
        self.refresh()
        return added

    def add_embeddings(
        self, rows: Sequence[dict[str, Any]], embeddings: ArrayLike, *, fingerprint: str | None = None
    ) -> AddReport:
        """Add chips that were embedded elsewhere.

        rows: a mapping per chip, with at least `id` and `source`.
        embeddings: (n, d), a row per chip.
        fingerprint: of the network that made the embeddings. It must be that of the gallery's embedder, if it has one.

            gallery.add_embeddings([{"id": "tug", "source": "tug.jpg"}], [[1.0, 0.1]])
        """
        if fingerprint != self._folder.fingerprint:
            raise GalleryError(
                f"the vectors come from the embedder {fingerprint}, and {self.path} holds those of "
                f"{self._folder.fingerprint}; embed the images with the network of this gallery"
            )
        with self._folder.writing():
            added = add_vectors(self._table, rows, embeddings, self._folder.dimension)
        self.refresh()
        return added

    def remove(self, ids: Sequence[str] | None = None, *, where: Where | None = None) -> int:
        """Remove chips and return how many they were.

        ids: which chips; or else
        where: a filter.

            gallery.remove(where=Where(until="2020"))
        """
        if (ids is None) == (where is None):
            raise InputError("say which chips to remove: give `ids` or `where`")
        with self._folder.writing():
            self.refresh()
            if where is not None:
                rows: Rows = np.flatnonzero(where.rows(self.snapshot.columns))
            else:
                rows = np.unique(self._rows(ids or ()))
            if len(rows):
                self._table.remove(self.snapshot.keys[rows])
                self._table.tidy()
        self.refresh()
        return len(rows)

    def search(
        self,
        examples: Example | Sequence[Example] = (),
        k: int | None = None,
        *,
        kind: str | None = None,
        counter_examples: Example | Sequence[Example] = (),
        false_alarm_rate: float | None = None,
        where: Where | None = None,
        metric: str | Metric | None = None,
        prior: float = 0.01,
        turned: bool = False,
        overlap: float = 0.2,
        expand: int = 0,
        rerank: bool = False,
    ) -> Results:
        """Find chips of the same kind as the examples: the `k` best (50), or all that a false-alarm rate accepts.

        The arguments are the fields of `SearchRequest`, which says more about them.

        examples: images, embeddings or ids of chips; a score is the mean over them.
        k: how many hits.
        kind: instead of examples, a kind that the metric knows by name.
        counter_examples: what the hits should not be like.
        false_alarm_rate: instead of `k`, accept what a chip of another kind reaches this often.
        where: which chips to search.
        metric: the name of another metric than the one in use, or a metric.
        prior: the share of the archive that you assume to be of this kind.
        turned: embed images in four quarter turns, so that their heading does not matter.
        overlap: windows of a scene that share more than this are one hit; 1 keeps every window.
        expand: how many of the best hits join the examples for a second search.
        rerank: order the hits by their k-reciprocal neighbours.

            gallery.search("ferry.jpg", k=10)
            gallery.search(kind="tanker")
            gallery.search(["tanker-0003", "tanker-0004"], false_alarm_rate=1e-3, where=Where(since="2025-03-01"))
        """
        return self.answer(
            SearchRequest(
                examples=examples,
                kind=kind,
                counter_examples=counter_examples,
                k=k,
                false_alarm_rate=false_alarm_rate,
                where=where,
                metric=metric,
                prior=prior,
                turned=turned,
                overlap=overlap,
                expand=expand,
                rerank=rerank,
            )
        )

    def answer(self, request: SearchRequest, *, most: int | None = None, files: bool = True) -> Results:
        """Answer a request; `search` builds one from its arguments.

        most: return at most so many of the hits that a rate accepts; `Results.accepted` counts all of them.
        files: whether a text may be the name of a file. Pass False for texts from clients: they are then only ids.

            gallery.answer(SearchRequest(examples="tanker-0003", k=10))
        """
        searcher = self._searchers.searcher(request.metric)
        read = partial(as_examples, snapshot=searcher.snapshot, turned=request.turned, files=files)
        examples = read(request.examples, embedder=lambda: self.embedder)
        counter_examples = read(request.counter_examples, embedder=lambda: self.embedder)
        return searcher.search(request, examples, counter_examples, most=most)

    def picture(self, example: Example) -> bytes | None:
        """Return an example, or a chip by its id, as a small JPEG; None for an embedding."""
        return picture(example, self.snapshot)

    def label(
        self,
        ids: Sequence[str],
        labels: Sequence[str | None],
        *,
        background: Sequence[str] = (),
        marked: bool = True,
    ) -> dict[str, ChipLabel]:
        """Label chips, and return their labels from before, which undo it.

        ids: of the chips.
        labels: a kind per chip, or None to remove its label.
        background: ids of chips that show no object.
        marked: whether the labels are a user's. With False they count as the ones that came with the chips.

            gallery.label(["tug-0001"], ["tug"], background=["sea-0001"])
        """
        if len(ids) != len(labels):
            raise InputError(f"give as many labels as ids; got {len(labels)} and {len(ids)}")
        chips = [*ids, *background]
        if twice := [name for name, count in Counter(chips).items() if count > 1]:
            raise InputError(f"chip {min(twice)} is named twice; give one label per chip")
        if wrong := [label for label in labels if label is not None and not (isinstance(label, str) and label)]:
            raise InputError(f"a label is a text or None, got {wrong[0]!r}; give the name of a kind")
        with self._folder.writing():
            self.refresh()
            self._rows(chips)
            before = self.snapshot.labels_of(chips)
            empty = [False] * len(ids) + [True] * len(background)
            self._table.mark(chips, [*labels, *[None] * len(background)], empty, marked=marked)
        self.refresh()
        return before

    def teach(
        self,
        ids: Sequence[str],
        labels: Sequence[str | None],
        *,
        background: Sequence[str] = (),
        seed: int = 0,
        use: bool = True,
        progress: Progress = no_progress,
    ) -> MetricUpdate:
        """Label chips, and estimate a metric from all labels that users gave in this gallery.

        ids, labels, background: as in `label`.
        seed, use, progress: as in `adapt`.

            gallery.teach(["tug-0001", "tug-0002", "ferry-0001"], ["tug", "tug", "ferry"])
        """
        if len(ids) or len(background):
            self.label(ids, labels, background=background)
        return self._updated(estimate, kind="taught", seed=seed, use=use, progress=progress)

    def adapt(
        self,
        clusters: int | Literal["auto"] = "auto",
        *,
        method: Method | AdaptationSettings = "auto",
        labels: Labels = "marked",
        seed: int = 0,
        use: bool = True,
        workers: str | None = None,
        progress: Progress = no_progress,
    ) -> MetricUpdate:
        """Estimate a metric on the embeddings of the gallery, keep it beside the others and use it.

        clusters: how many kinds to look for, or `auto`.
        method: `auto`, `cplfpa`, or settings.
        labels: which labels are used: those that users `marked`, `all`, or `none`.
        seed: of all random choices.
        use: whether to put the metric into use; without, `search` takes it by its name.
        workers: a Ray cluster, as in `add`: its machines read the embeddings, and this process reads only a sample.
        progress: called now and then.

            gallery.adapt()
        """
        options: dict[str, Any] = {"clusters": clusters, "method": method, "labels": labels, "seed": seed, "use": use}
        if workers is not None:
            from lookdown.gallery.scale.ray_cluster import ray_shards

            options["shards"] = partial(ray_shards, self._table, workers)
        return self._updated(estimate, kind="adapted", progress=progress, **options)

    def calibrate(
        self, *, metric: str | None = None, labels: Labels = "all", seed: int = 0, use: bool = True
    ) -> MetricUpdate:
        """Measure the false-alarm rates of a metric on labelled chips.

        Chips that the metric was taught by are left out. Hits of a search resemble the query more than the archive
        does, so label some random chips as well.

        metric: its name; the one in use by default.
        labels, seed, use: as in `adapt`.

            gallery.calibrate()
        """
        return self._updated(calibrate, metric=metric, labels=labels, seed=seed, use=use)

    def metrics(self) -> list[MetricInfo]:
        """Return a description of each metric, oldest first."""
        return [self._registry.info(name) for name in self._registry.names()]

    def metric_names(self) -> list[str]:
        """Return the names of the metrics, oldest first, without reading their descriptions."""
        return self._registry.names()

    def about_metric(self, metric: str) -> MetricInfo:
        """Return the description of one metric."""
        return self._registry.info(metric)

    def use(self, metric: str) -> None:
        """Put another metric of this gallery into use."""
        with self._folder.writing():
            self._registry.use(metric)
        self.refresh()

    def forget(self, metric: str) -> None:
        """Delete a metric, but neither the one in use nor the first, from which others are estimated."""
        with self._folder.writing():
            self._registry.forget(metric)
            self._searchers.forget(metric)
        self.refresh()

    def read_metric(self, metric: str) -> Metric:
        """Return a metric by its name; `cosine` is in every gallery."""
        return self._searchers.searcher(COSINE).metric if metric == COSINE else self._registry.load(metric)

    def stats(self) -> GalleryStats:
        """Return what the gallery holds, in numbers."""
        embedder, table = self._folder.fingerprint, self._table.location.uri
        return gallery_stats(self.snapshot, self.path, embedder=embedder, metric=self.metric, table=table)

    def _updated(self, learn: Callable[..., MetricUpdate], **options: Any) -> MetricUpdate:
        with self._folder.writing():
            self.refresh()
            update = learn(self.snapshot, self._registry, **options)
        self.refresh()
        return update

    def _rows(self, ids: Sequence[str]) -> Rows:
        if isinstance(ids, str):
            raise InputError("`ids` must be a list; put the one id into a list")
        rows = self.snapshot.find(ids)
        if (rows < 0).any():
            raise GalleryError(f"{self.path} has no chip {list(ids)[int(np.argmin(rows))]!r}; see `lookdown search`")
        return rows
