"""Features of a frozen trunk: what they are, what they are kept under, and what a kill or a full disk leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from lookdown.chips.pixels import letterbox, read_chip
from lookdown.errors import DamagedCacheWarning, ImageError, InputError, OutputError, WeightsError
from lookdown.networks import Embedder
from lookdown.training import frozen_features as features
from lookdown.training.frozen_features import FrozenFeatures, frozen_features, turned

CHIPS, BAD = 22, (3, 8, 9, 10, 11, 21)  # with batches of 4, one batch is all bad


def small(**settings: Any) -> Embedder:
    return Embedder("test_resnet", **{"size": 32, "weights": "none", **settings})


def some_chips(folder: Path, count: int = CHIPS, bad: tuple[int, ...] = BAD) -> list[Path]:
    """Small pictures with smooth colours, of several shapes; those that are `bad` are cut off, empty or absent."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    for i in range(count):
        pixels = generator.integers(0, 256, (3, 4, 3), dtype=np.uint8).repeat(5 + i % 3, 0).repeat(6, 1)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    paths = [folder / f"{i}.png" for i in range(count)]
    for number, i in enumerate(bad):
        if number % 3:
            paths[i].write_bytes(paths[i].read_bytes()[: 40 * (number % 3 - 1)])
        else:
            paths[i].unlink()
    return paths


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_BLOCK_CHIPS", 8)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """For images this small, threads wait for each other more than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return small()


@pytest.fixture
def chips(tmp_path: Path) -> list[Path]:
    return some_chips(tmp_path / "chips")


def make(embedder: Embedder, paths: list[Path], folder: Path, **options: Any) -> FrozenFeatures:
    return frozen_features(embedder, paths, folder, **{"batch_size": 4, **options})


def the_file(folder: Path, name: str = "features.bin") -> Path:
    (found,) = folder.glob(f"features-*/{name}")
    return found


def assert_same(one: FrozenFeatures, other: FrozenFeatures) -> None:
    np.testing.assert_array_equal(one.array, other.array)
    np.testing.assert_array_equal(one.indices, other.indices)
    assert one.skipped == other.skipped


@pytest.mark.parametrize("views", [1, 4, 8])
def test_features_are_those_of_each_turn_of_each_chip_alone(
    views: int, embedder: Embedder, chips: list[Path], tmp_path: Path
) -> None:
    found = make(embedder, chips, tmp_path / "cache", views=views)
    assert found.array.shape == (views, CHIPS - len(BAD), embedder.trunk.width)
    assert found.array.dtype == np.float32
    assert sorted([*found.indices, *found.skipped]) == list(range(CHIPS))
    for column, place in enumerate(found.indices):
        square = letterbox(read_chip(chips[place]), 32)
        for view in range(views):
            pixels = np.rot90(square if view < 4 else square[:, ::-1], view % 4).transpose(2, 0, 1)
            with torch.inference_mode(), embedder.evaluating():
                alone = embedder.features(torch.from_numpy(pixels.copy())[None])[0].numpy()
            np.testing.assert_allclose(found.array[view, column], alone, rtol=1e-4, atol=1e-5)


def test_the_eight_views_are_all_that_a_square_has() -> None:
    image = torch.arange(2 * 3 * 3, dtype=torch.uint8).reshape(1, 2, 3, 3)
    views = list(turned(image, 8))
    assert torch.equal(views[0], image)
    assert views[1][0, 0].tolist() == [[2, 5, 8], [1, 4, 7], [0, 3, 6]]  # counter-clockwise
    assert torch.equal(views[4], image.flip(3))
    assert len({tuple(view.flatten().tolist()) for view in views}) == 8
    for view in views:
        assert {tuple(turn.flatten().tolist()) for turn in turned(view, 8)} == {
            tuple(turn.flatten().tolist()) for turn in views
        }


def test_bad_chips_are_named_and_nothing_else_is_lost(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    found = make(embedder, chips, tmp_path / "cache")
    assert tuple(found.skipped) == BAD
    for place, reason in found.skipped.items():
        assert reason.startswith(f"{chips[place]}: ")
    assert "there is no such file" in found.skipped[3]
    assert "the file is empty" in found.skipped[8]
    good = [path for i, path in enumerate(chips) if i not in BAD]
    alone = make(embedder, good, tmp_path / "cache")
    assert alone.skipped == {}
    np.testing.assert_allclose(alone.array, found.array, rtol=1e-4, atol=1e-5)


def test_a_second_call_asks_the_network_nothing(
    embedder: Embedder, chips: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(embedder, chips, tmp_path / "cache")

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(Embedder, "features", forbidden)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "cache").rglob("*.*")}
    seen: list[tuple[Any, ...]] = []
    assert_same(make(embedder, chips, tmp_path / "cache", progress=lambda *step: seen.append(step)), first)
    assert seen == [(CHIPS, CHIPS, "chips")]
    assert_same(make(small(head="mlp", dimension=9), chips, tmp_path / "cache"), first)  # of the same trunk
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "cache").rglob("*.*")}
    assert isinstance(first.array, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        first.array[0, 0, 0] = 1


def test_chips_that_moved_are_known_by_their_bytes(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    first = make(embedder, chips, tmp_path / "cache")
    (tmp_path / "chips").rename(tmp_path / "elsewhere")
    moved = [tmp_path / "elsewhere" / path.name for path in chips]
    found = make(embedder, moved, tmp_path / "cache")
    np.testing.assert_array_equal(found.array, first.array)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert found.skipped[3].startswith(f"{moved[3]}: ")


def test_whatever_changes_the_features_is_other_work(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def entries() -> int:
        return len(list(cache.iterdir()))

    first = make(embedder, chips, cache)
    changed = small()
    with torch.no_grad():
        next(changed.trunk.parameters())[0, 0, 0, 0] += 1e-3
    for number, (network, paths, options) in enumerate(
        [
            (changed, chips, {}),
            (small(size=64), chips, {}),
            (small(pooling="gem"), chips, {}),
            (embedder, chips[::-1], {}),
            (embedder, chips[:-1], {}),
            (embedder, chips, {"views": 8}),
            (embedder, chips, {"batch_size": 5}),
        ],
        2,
    ):
        make(network, paths, cache, **options)
        assert entries() == number
    assert_same(make(embedder, chips, cache), first)
    assert entries() == 8


def test_another_chip_of_the_same_size_and_time_is_another(embedder: Embedder, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for path in paths:
        np.save(path, np.full((9, 7, 3), 7, np.uint8))
    first = make(embedder, paths, tmp_path / "cache")
    times = paths[1].stat()
    np.save(paths[1], np.eye(9, 7, dtype=np.uint8)[:, :, None].repeat(3, 2) * 200)
    os.utime(paths[1], ns=(times.st_atime_ns, times.st_mtime_ns))
    assert paths[1].stat().st_size == times.st_size
    second = make(embedder, paths, tmp_path / "cache")
    assert (first.array != second.array).any(axis=(0, 2)).tolist() == [False, True, False]


def test_the_trunk_is_seen_in_evaluation_and_left_as_it_was(chips: list[Path], tmp_path: Path) -> None:
    embedder = small().train()
    embedder.trunk.eval()
    state = {name: value.clone() for name, value in embedder.state_dict().items()}
    make(embedder, chips, tmp_path / "cache")
    assert embedder.training
    assert embedder.head.training
    assert not embedder.trunk.training
    for name, value in embedder.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_other_bands(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for i, path in enumerate(paths):
        np.save(path, np.random.default_rng(i).integers(0, 256, (9, 7, 5), dtype=np.uint8))
    assert make(small(bands=5), paths, tmp_path / "cache").array.shape[:2] == (4, 3)
    with pytest.raises(InputError, match="5 bands"):
        make(small(), paths, tmp_path / "cache")


def test_progress_counts_every_chip_and_ends(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []
    make(embedder, chips, tmp_path / "cache", progress=lambda *step: seen.append(step))
    done = [step for step, *_ in seen]
    assert done == sorted(done)
    assert seen[-1] == (CHIPS, CHIPS, "chips")
    assert len(set(done)) >= 5


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        ([], {}, "there are no chips"),
        ("chip.png", {}, "paths must be a list of files"),
        ([1], {}, "paths must be a list of files"),
        (["chip.png"], {"views": 3}, "views must be 1, 4 or 8"),
        (["chip.png"], {"batch_size": 0}, "batch_size at least 1"),
    ],
)
def test_what_cannot_be_asked(
    paths: Any, options: dict[str, Any], message: str, embedder: Embedder, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        make(embedder, paths, tmp_path / "cache", **options)
    assert not (tmp_path / "cache").exists()


def test_no_chip_at_all(embedder: Embedder, tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the disk
        with pytest.raises(ImageError, match=r"none of the 2 chips can be read, the first: .*a\.png: there is no such"):
            make(embedder, [tmp_path / "a.png", tmp_path / "b.png"], tmp_path / "cache")


def test_weights_that_give_nan_are_named_with_the_chip(chips: list[Path], tmp_path: Path) -> None:
    embedder = small()
    with torch.no_grad():
        next(embedder.trunk.parameters()).fill_(torch.nan)
    with pytest.raises(WeightsError, match=r"NaN or inf for .*0\.png"):
        make(embedder, chips, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*/features.bin"))


def test_a_chip_that_changes_meanwhile_is_named(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    def meanwhile(*_: object) -> None:
        chips[13].write_bytes(chips[12].read_bytes())

    with pytest.raises(InputError, match=r"13\.png changed while it was read"):
        make(embedder, chips, tmp_path / "cache", progress=meanwhile)
    assert the_file(tmp_path / "cache").exists()  # of the first block, in which nothing has changed


def faults(whole: dict[str, bytes]) -> Iterator[tuple[str, str, bytes]]:
    generator = np.random.default_rng(0)
    for name, content in whole.items():
        for _ in range(5):
            place = int(generator.integers(len(content)))
            flipped = (
                content[:place] + bytes([content[place] ^ (1 << int(generator.integers(8)))]) + content[place + 1 :]
            )
            yield f"bit of byte {place}", name, flipped
            yield f"cut at {place}", name, content[:place]
        yield "longer", name, content + b"\0"
        yield "empty", name, b""


def test_what_is_damaged_is_made_again_and_never_used(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    """A journal that is cut off, or goes on with half a line, is what a kill leaves; all else is told."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "notes.txt").write_text("mine")
    first = make(embedder, chips, cache, views=1)
    expected = np.array(first.array)
    the_file(cache).with_name("also mine").write_text("mine")
    whole = {name: the_file(cache, name).read_bytes() for name in ("features.bin", "journal.jsonl")}
    for fault, name, content in faults(whole):
        the_file(cache, name).write_bytes(content)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = make(embedder, chips, cache, views=1)
        np.testing.assert_array_equal(found.array, expected, err_msg=f"{name}: {fault}")
        assert found.skipped == first.skipped
        only_cut_off = name == "journal.jsonl" and (whole[name].startswith(content) or fault == "longer")
        assert [warning.category for warning in told] == [DamagedCacheWarning] * (not only_cut_off), f"{name}: {fault}"
        assert the_file(cache).read_bytes() == whole["features.bin"]
        assert the_file(cache, "journal.jsonl").read_bytes().startswith(whole["journal.jsonl"])
    assert (cache / "notes.txt").read_text() == the_file(cache, "also mine").read_text() == "mine"


def test_damage_is_a_warning_that_names_the_place(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    first = make(embedder, chips, tmp_path / "cache")
    file = the_file(tmp_path / "cache")
    content = bytearray(file.read_bytes())
    content[-5] ^= 4
    file.write_bytes(content)
    with pytest.warns(DamagedCacheWarning, match=r"features-\w+ are damaged \(block 3 of .*\) and are computed anew"):
        second = make(embedder, chips, tmp_path / "cache")
    assert_same(second, make(embedder, chips, tmp_path / "cache"))
    assert (np.array(first.array) != second.array).any()  # the old file stays with those who have mapped it


@pytest.mark.kill
def test_every_place_where_the_journal_may_be_cut_off(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    first = make(embedder, chips, tmp_path / "cache", views=1)
    journal = the_file(tmp_path / "cache", "journal.jsonl")
    content = journal.read_bytes()
    ends = [place for place, byte in enumerate(content) if byte == ord("\n")]
    assert len(ends) == 4  # its title and three blocks
    for end in ends:
        for cut in (end - 40, end, end + 1):
            journal.write_bytes(content[:cut])
            assert_same(make(embedder, chips, tmp_path / "cache", views=1), first)
            assert journal.read_bytes() == content


WORK = """
import json, os, random, resource, signal, sys, time, warnings
from pathlib import Path
import torch
torch.set_num_threads(1)  # children are forked, which threads would not survive
from lookdown.networks import Embedder
from lookdown.training import frozen_features as features
features._BLOCK_CHIPS = 8
warnings.simplefilter("error")
folder, cache = Path(sys.argv[2]), Path(sys.argv[3])
paths = [folder / f"{i}.png" for i in range(int(sys.argv[4]))]
embedder = Embedder("test_resnet", size=32, weights="none")

def work(cache, limit=None, last_write=None):
    child = os.fork()
    if child:
        return child
    try:
        if last_write:
            writes = iter(range(1, last_write))
            os.fsync = lambda _: next(writes, None) or os.kill(os.getpid(), signal.SIGKILL)
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        features.frozen_features(embedder, paths, cache, views=8, batch_size=4)
    except BaseException as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
        os._exit(1)
    os._exit(0)

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

if sys.argv[1] == "kill":
    begin = time.monotonic()
    assert ended(work(cache / "whole")) == 0
    duration = time.monotonic() - begin
    for last_write in (1, 2, 1, 2, 3):  # of rows, of a line, and of the rows after it
        assert ended(work(cache / "killed", last_write=last_write)) == -signal.SIGKILL
    source, kills, resumed = random.Random(0), 0, 0
    while kills < 30:
        child = work(cache / "killed")
        time.sleep(source.uniform(0, duration / 4))
        os.kill(child, signal.SIGKILL)
        if ended(child) == 0:
            break
        kills += 1
        resumed += any(b"sha256" in file.read_bytes() for file in cache.glob("killed/*/journal.jsonl"))
    else:
        assert ended(work(cache / "killed")) == 0
    print(json.dumps([kills, resumed]))
if sys.argv[1] == "together":
    print([ended(child) for child in [work(cache / "whole")] + [work(cache / "together") for _ in range(4)]])
if sys.argv[1] == "full":
    print([ended(work(cache / "full", 30_000)), ended(work(cache / "full", 30_000)), ended(work(cache / "full"))])
    print(ended(work(cache / "whole")))
"""


def run(what: str, tmp_path: Path, count: int) -> list[str]:
    some_chips(tmp_path / "chips", count, BAD)
    arguments = [what, str(tmp_path / "chips"), str(tmp_path / "cache"), str(count)]
    done = subprocess.run([sys.executable, "-c", WORK, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def assert_same_files(tmp_path: Path, one: str, other: str) -> None:
    for name in ("features.bin", "journal.jsonl"):
        expected = the_file(tmp_path / "cache" / one, name).read_bytes()
        assert the_file(tmp_path / "cache" / other, name).read_bytes() == expected


@pytest.mark.kill
def test_killed_at_any_moment_it_goes_on_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    (line,) = run("kill", tmp_path, 120)
    kills, resumed = json.loads(line)
    assert kills >= 4
    assert resumed >= 2
    assert_same_files(tmp_path, "whole", "killed")


@pytest.mark.kill
def test_processes_at_once_do_the_work_once(tmp_path: Path) -> None:
    assert run("together", tmp_path, 60) == ["[0, 0, 0, 0, 0]"]
    assert_same_files(tmp_path, "whole", "together")


@pytest.mark.kill
def test_a_full_disk_is_one_sentence_and_what_is_whole_is_kept(tmp_path: Path) -> None:
    first, second, *ends = run("full", tmp_path, 60)
    assert first == second
    kind, message = json.loads(first)
    assert kind == "OutputError"
    assert "cannot be written: File too large; free the disk, or move the data" in message
    assert ends == ["[1, 1, 0]", "0"]
    assert_same_files(tmp_path, "whole", "full")


def test_a_disk_that_is_too_small_is_told_before_the_work(
    embedder: Embedder, chips: list[Path], tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], capture_output=True)
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        with pytest.raises(OutputError, match=r"has 0.0 MB free and the features need 0.0 MB more; free"):
            make(embedder, chips, disk / "cache")
        assert not list(disk.rglob("features.bin"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_place_that_cannot_be_written(embedder: Embedder, chips: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written: Not a directory; "):
        make(embedder, chips, tmp_path / "file" / "cache")
