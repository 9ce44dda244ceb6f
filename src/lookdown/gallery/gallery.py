"""A gallery: an archive of chips that can be searched, added to, adapted to itself and taught."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from lookdown.adaptation import AdaptationSettings, Method
from lookdown.errors import GalleryError, InputError
from lookdown.gallery.index.sources import Cutting, chip_groups
from lookdown.gallery.index.writer import AddReport, add_chips, add_vectors, note_skipped
from lookdown.gallery.learning import Labels, MetricUpdate, calibrate, estimate
from lookdown.gallery.results.hit import Results
from lookdown.gallery.search.engines import EngineChoice
from lookdown.gallery.search.examples import Example, as_examples, picture
from lookdown.gallery.search.request import SearchRequest
from lookdown.gallery.search.searcher_cache import COSINE, SearcherCache
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.gallery_folder import GalleryFolder
from lookdown.gallery.store.metric_registry import MetricInfo, MetricRegistry
from lookdown.gallery.store.snapshot import ChipLabel, Rows, Snapshot
from lookdown.gallery.store.stats import GalleryStats, gallery_stats
from lookdown.gallery.store.table import ChipTable
from lookdown.metrics import Cosine, Euclidean, Metric
from lookdown.networks.exported_embedder import ExportedEmbedder
from lookdown.networks.network_folder import FOLDER as EXPORTED
from lookdown.networks.network_folder import AnyEmbedder, fastest
from lookdown.progress import Progress, no_progress

if TYPE_CHECKING:
    from lookdown.chips.manifest import Manifest

__all__ = ["Gallery"]


class Gallery:
    """An archive that can be searched.

    Use `Gallery.from_images`, `Gallery.from_run`, `Gallery.create` or `Gallery.open`. A gallery shows the chips that it
    held when it was opened, at its last `refresh` or at its own last change. Other processes may write to the folder
    meanwhile.

    path: the folder of the gallery.
    engine: how to search; `auto` chooses by the size of the gallery.
    table: the address of the table, s3://bucket/name, to make sure that the gallery is the one you mean.

        import lookdown

        gallery = lookdown.Gallery.from_images("gallery", "chips/")
        print(gallery.search("ferry.jpg", k=20))
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
        about: str = "given when the gallery was made",
        engine: EngineChoice = "auto",
        table: str | None = None,
    ) -> Gallery:
        """Make a gallery without chips, for an embedder and a metric; without one it is the cosine.

        Without an embedder the gallery holds vectors of `dimension` numbers that you embed yourself.

        table: where rows, thumbnails and embeddings are kept instead of in the folder: s3://bucket/name.
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
            folder.refuse_finished()  # by another process, meanwhile
            ChipTable.create(folder.location, width)
            if isinstance(embedder, ExportedEmbedder):
                embedder.save(path / EXPORTED / embedder.description.name, overwrite=True)
            elif embedder is not None:
                embedder.save(path / "embedder", overwrite=True)
            registry = MetricRegistry.create(path / "metrics")
            kind = "cosine" if isinstance(chosen, Cosine) else "trained"
            registry.use(registry.add(chosen, kind, about).name)
            folder.write()
        return cls(path, engine=engine)

    @classmethod
    def from_images(
        cls,
        path: str | Path,
        images: str | Path | Manifest | Sequence[str | Path | Manifest],
        *,
        embedder: str = "tf_efficientnet_lite0",
        cutting: Cutting | None = None,
        dimension: int = 64,
        progress: Progress = no_progress,
        table: str | None = None,
    ) -> Gallery:
        """Make a gallery of images with a pretrained network, or add them to the one that is there.

        images: a folder, files, GeoTIFF scenes or manifests; what cannot be read is listed in `skipped.csv`.
        embedder: the name of the network; its projection to `dimension` numbers is fitted to the images.
        cutting: how scenes are cut into windows.

            gallery = Gallery.from_images("gallery", "images")
            gallery.search("images/ferry.jpg", k=10)
        """
        from lookdown.gallery.index.creation import gallery_of_pretrained

        several: list[Any] = [*images] if isinstance(images, list | tuple) else [images]
        cutting = cutting or Cutting()
        gallery = gallery_of_pretrained(
            Path(path), embedder, several, cutting, dimension=dimension, progress=progress, table=table
        )
        gallery.add(several, cutting=cutting, progress=progress)
        return gallery

    @classmethod
    def from_run(
        cls,
        path: str | Path,
        run: str | Path,
        images: str | Path | Manifest | Sequence[str | Path | Manifest] = (),
        *,
        cutting: Cutting | None = None,
        progress: Progress = no_progress,
        table: str | None = None,
    ) -> Gallery:
        """Make a gallery with the network and the metric of a run of `train`, or open it, and add images.

        gallery = Gallery.from_run("gallery", "runs/ships", "images")
        """
        from lookdown.gallery.index.creation import gallery_of_run

        several: list[Any] = [*images] if isinstance(images, list | tuple) else [images]
        gallery = gallery_of_run(Path(path), Path(run), table=table)
        if several:
            gallery.add(several, cutting=cutting, progress=progress)
        return gallery

    @classmethod
    def open(cls, path: str | Path, *, engine: EngineChoice = "auto", table: str | None = None) -> Gallery:
        """Open a gallery, to search it or to change it.

        engine: what searches it: `auto`, `exact` or `ivf` in this process, a `MilvusServer`, or `milvus` for the one
            that the environment names (LOOKDOWN_MILVUS_URI and _TOKEN).
        table: where you take its table to be, s3://bucket/name; the folder knows, and another one is refused.
        """
        return cls(path, engine=engine, table=table)

    def __len__(self) -> int:
        return len(self.snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """The table as this gallery shows it."""
        return self._searchers.snapshot

    @property
    def metric(self) -> str:
        """The name of the metric in use."""
        return self._searchers.current

    @cached_property
    def embedder(self) -> AnyEmbedder | None:
        """The network of the gallery in its fastest form, None where it holds vectors from elsewhere."""
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
        """What runs the network, once it was needed: `torch`, or the name of an export; None before."""
        embedder = self.__dict__.get("embedder")  # not the property, which would load it
        if embedder is None:
            return None
        return embedder.description.name if isinstance(embedder, ExportedEmbedder) else "torch"

    def writing(self) -> AbstractContextManager[None]:
        """Be the one writer for a while: others are refused meanwhile, and told who writes."""
        return self._folder.writing()

    def prepare(self) -> None:
        """Do now what the first search would wait for: load the vectors, or bring a server up to the table."""
        self._searchers.searcher()

    def refresh(self) -> bool:
        """See what others have changed since; True if they have."""
        return self._searchers.refresh()

    def add(
        self,
        images: str | Path | Manifest | Sequence[str | Path | Manifest],
        *,
        cutting: Cutting | None = None,
        every_role: bool = False,
        workers: str | None = None,
        progress: Progress = no_progress,
    ) -> AddReport:
        """Embed and add what is not there yet: manifests, images, folders of images, and scenes, cut into windows.

        Chips that are there are left alone, so an interrupted run goes on when it is started again. Images that cannot
        be read are left out, and listed in `skipped.csv`.

        workers: the machines of a Ray cluster do the work: its address (`ray://host:10001`, `host:6379`), or `ray` for
            that of RAY_ADDRESS, else for one that runs on this machine meanwhile. Without it, this process does.
        """
        if self.embedder is None:
            raise GalleryError(f"{self.path} has no embedder; embed the images yourself and use add_embeddings")
        given: list[Any] = list(images) if isinstance(images, list | tuple) else [images]
        parts = chip_groups(given, cutting or Cutting(), every_role=every_role)
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
        """Add chips that were embedded elsewhere, a mapping and a vector each; `id` and `source` are needed.

        Where the gallery has an embedder, `fingerprint` says which one made the vectors: others are not comparable.
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
        """Take chips out, by their ids or by a filter, and return how many they were."""
        if (ids is None) == (where is None):
            raise InputError("say which chips to remove: by ids, or by a filter")
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
        examples: Example | Sequence[Example],
        k: int | None = None,
        *,
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

        The arguments are the fields of `SearchRequest`, which describes them.

            gallery.search("ferry.jpg", k=10)
            gallery.search(["tanker-0003", "tanker-0004"], false_alarm_rate=1e-3, where=Where(since="2025-03-01"))
        """
        return self.answer(
            SearchRequest(
                examples=examples,
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
        """Return an example, or a chip by its id, as a small JPEG; None where it is only an embedding."""
        return picture(example, self.snapshot)

    def label(
        self,
        ids: Sequence[str],
        labels: Sequence[str | None],
        *,
        background: Sequence[str] = (),
        marked: bool = True,
    ) -> dict[str, ChipLabel]:
        """Say what chips show: a kind each, or None to take a label away; those in `background` show no object.

        Returns what was known of them until then, which undoes it.

        Without `marked` the labels count as those that came with the chips, which undoes what a user has said.
        """
        if len(ids) != len(labels):
            raise InputError(f"give as many labels as ids; got {len(labels)} and {len(ids)}")
        if twice := {name for name in (*ids, *background) if [*ids, *background].count(name) > 1}:
            raise InputError(f"chip {min(twice)} is named twice; say one thing of each")
        if wrong := [label for label in labels if label is not None and not (isinstance(label, str) and label)]:
            raise InputError(f"a label is a text or None, got {wrong[0]!r}; give the name of a kind")
        with self._folder.writing():
            self.refresh()
            self._rows([*ids, *background])
            before = self.snapshot.labels_of([*ids, *background])
            told = [*labels, *[None] * len(background)]
            empty = [*[False] * len(ids), *[True] * len(background)]
            self._table.mark([*ids, *background], told, empty, marked=marked)
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
        """Label chips, and re-estimate the metric with all labels that were given in this gallery."""
        if len(ids) or len(background):
            self.label(ids, labels, background=background)
        return self._estimate("taught", seed=seed, use=use, progress=progress)

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
        """Estimate a metric anew on the gallery's own embeddings, keep it beside the others and use it.

        Without `use` it is only kept, to be compared: `search` takes its name.

        workers: a Ray cluster, as in `add`: its machines read the embeddings, and this process only a sample of them.
        """
        options: dict[str, Any] = {"clusters": clusters, "method": method, "labels": labels, "seed": seed, "use": use}
        if workers is not None:
            from lookdown.gallery.scale.ray_cluster import ray_shards

            options["shards"] = partial(ray_shards, self._table, workers)
        return self._estimate("adapted", **options, progress=progress)

    def calibrate(
        self, *, metric: str | None = None, labels: Labels = "all", seed: int = 0, use: bool = True
    ) -> MetricUpdate:
        """Learn from labelled chips what scores of a metric, the one in use, are worth: it then knows rates.

        Chips that the metric was taught by are left out. What was found by searching is more like the query than the
        archive is, so label some chips at random as well.
        """
        with self._folder.writing():
            self.refresh()
            learnt = calibrate(self.snapshot, self._registry, metric=metric, labels=labels, seed=seed, use=use)
        self.refresh()
        return learnt

    def metrics(self) -> list[MetricInfo]:
        """Return what is known of each metric, oldest first."""
        return [self._registry.info(name) for name in self._registry.names()]

    def metric_names(self) -> list[str]:
        """Return the names of the metrics, oldest first, without reading what is known of them."""
        return self._registry.names()

    def about_metric(self, metric: str) -> MetricInfo:
        """Return what is known of one metric."""
        return self._registry.info(metric)

    def use(self, metric: str) -> None:
        """Search by another metric of this gallery from now on."""
        with self._folder.writing():
            self._registry.use(metric)
        self.refresh()

    def forget(self, metric: str) -> None:
        """Drop a metric of this gallery; not the one in use, and not the first, which others are estimated from."""
        with self._folder.writing():
            self._registry.forget(metric)
            self._searchers.forget(metric)
        self.refresh()

    def read_metric(self, metric: str) -> Metric:
        """Return a metric of this gallery by its name, or the cosine, which every gallery has."""
        return self._searchers.searcher(COSINE).metric if metric == COSINE else self._registry.load(metric)

    def stats(self) -> GalleryStats:
        """Return what the gallery holds."""
        embedder, table = self._folder.fingerprint, self._table.uri
        return gallery_stats(self.snapshot, self.path, embedder=embedder, metric=self.metric, table=table)

    def _estimate(self, kind: Literal["adapted", "taught"], **options: Any) -> MetricUpdate:
        with self._folder.writing():
            self.refresh()
            learnt = estimate(self.snapshot, self._registry, kind, **options)
        self.refresh()
        return learnt

    def _rows(self, ids: Sequence[str]) -> Rows:
        if isinstance(ids, str):
            raise InputError("ids must be a list; put the one id into one")
        rows = self.snapshot.find(ids)
        if (rows < 0).any():
            raise GalleryError(f"{self.path} has no chip {list(ids)[int(np.argmin(rows))]!r}; see `lookdown search`")
        return rows
