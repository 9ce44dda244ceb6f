"""Where experiments find data and recipes, and what they say when something is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lab.paper.smoke import smoke

from lookdown.errors import InputError, LookdownError, ManifestError, SourceError
from lookdown.lab.paper import experiment as module
from lookdown.lab.paper.domains import divide, read_domain
from lookdown.lab.paper.experiment import EVERY, Experiment
from lookdown.lab.paper.tasks import MAR, SHIPS, UDA_MAR
from lookdown.lab.paper.trained_network import train_on
from lookdown.lab.synthetic.world import World, draw_world


def test_data_that_are_not_here_are_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOKDOWN_DATA", raising=False)
    with pytest.raises(SourceError, match="LOOKDOWN_DATA is not set"):
        Experiment("head", tmp_path / "runs").domain(MAR)
    monkeypatch.setenv("LOOKDOWN_DATA", str(tmp_path))
    for task, folder in ((MAR, "mar20"), (SHIPS, "fair1m_ships")):
        with pytest.raises(SourceError, match=rf"{folder} is not there; set LOOKDOWN_DATA .* --data synthetic"):
            Experiment("head", tmp_path / "runs").domain(task)
    with pytest.raises(ManifestError, match="nowhere"):
        Experiment("head", tmp_path / "runs", str(tmp_path / "nowhere")).domain(MAR)


@pytest.mark.parametrize(("values", "said"), [({"scale": "large"}, "scale must be one of"), ({"seeds": -1}, "seeds")])
def test_what_makes_no_setting_is_refused(tmp_path: Path, values: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Experiment(**{"scale": "smoke", "runs": tmp_path, **values})  # type: ignore[arg-type]


def test_captions_say_what_stands_for_what_and_how_large_it_is(tmp_path: Path) -> None:
    said = smoke().caption(MAR)
    assert said.startswith("CBRSOR-MAR: the synthetic world stands in for MAR20; divided by whole places; in the first")
    roles, domain = smoke().roles(MAR, 0), smoke().domain(MAR)
    assert f"{len(roles.train):,} chips of {len(set(domain.labels[roles.train]))} classes train" in said
    assert f"{len(roles.gallery):,} are searched, {domain.background[roles.gallery].sum()} of them background" in said
    assert "2 seeds" in said
    assert "one seed" in replace(smoke(), seeds=1).caption(MAR)
    mine = Experiment("smoke", tmp_path, str(_tiny(tmp_path)))
    assert "chips of tiny stand in for the paper's" in mine.caption(SHIPS)


def test_pictures_of_any_chips_but_synthetic_ones_stay_among_the_runs(tmp_path: Path) -> None:
    assert not smoke().research_only(MAR)
    assert Experiment("smoke", tmp_path, "mar20").research_only(MAR)
    assert Experiment("head", tmp_path).research_only(SHIPS)


def test_a_folder_that_is_divided_already_is_refused(tmp_path: Path) -> None:
    draw_world(World(kinds="ships", chips=10, size=32), tmp_path / "divided")
    with pytest.raises(InputError, match=r"divided is divided already.*--split none"):
        Experiment("smoke", tmp_path, str(tmp_path / "divided")).domain(MAR)


def test_choices_change_the_recipe_of_their_loss_and_a_fine_tuned_one_takes_the_loss_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {
        MAR.name: {
            "seed 7": {
                EVERY: ["stage1.epochs=4"],
                "glrt": ["stage2.learning_rate=0.07", "stage2.options.temperature=3", "metric.shrinkage=0.25"],
            }
        }
    }
    monkeypatch.setattr(module, "_read_choices", lambda file: chosen)
    made = Experiment("head", tmp_path).recipe(MAR, "glrt", 7)
    assert (made.seed, made.stage1.epochs, made.stage2.learning_rate, made.metric.shrinkage) == (7, 4, 0.07, 0.25)
    assert made.stage2.options == {"temperature": 3}
    assert Experiment("head", tmp_path).recipe(MAR, "glrt", 6).stage1.epochs == 15, "another split has its own choices"
    other = Experiment("head", tmp_path).recipe(MAR, "unified", 7)
    assert (other.stage1.epochs, other.stage2.options, other.stage2.loss) == (4, {}, "unified")
    tuned = Experiment("cpu", tmp_path).recipe(MAR, "glrt", 7)
    assert (tuned.trunk, tuned.metric.shrinkage, tuned.stage2.options) == ("finetune", 0.25, {"temperature": 3})
    assert (tuned.stage1.epochs, tuned.stage2.learning_rate) == (5, 0.005)


def test_the_papers_scale_has_its_settings_and_trains_a_step(tmp_path: Path) -> None:
    scale = Experiment("paper", tmp_path)
    made = scale.recipe(MAR, "glrt", 0)
    assert (made.network.backbone, made.stage1.epochs, made.stage2.epochs) == ("resnet50", 100, 50)
    assert scale.recipe(SHIPS, "circle", 0, "second").network.backbone.startswith("swinv2")
    assert scale.recipe(SHIPS, "circle", 0).stage2.loss == "circle"
    small = replace(
        made,
        network=replace(made.network, weights="none", size=32),
        stage1=replace(made.stage1, epochs=1),
        stage2=replace(made.stage2, epochs=1),
        device="cpu",
        precision="32-true",
    )
    domain = read_domain(_tiny(tmp_path), small)
    rows = divide(domain, 0, protocol=MAR.protocol).train
    assert train_on(domain, rows, small, tmp_path / "runs").embeddings(domain).shape == (len(domain), 64)


def test_splits_of_the_paper_need_its_numbers(tmp_path: Path) -> None:
    with pytest.raises(LookdownError, match="UDA-CBRSOR-MAR"):
        Experiment("paper", tmp_path, str(_tiny(tmp_path))).roles(UDA_MAR, 0)


def test_chips_of_a_single_place_cannot_be_divided_and_the_error_says_why(tmp_path: Path) -> None:
    folder = _tiny(tmp_path)
    table = pq.read_table(folder / "manifest.parquet")
    place = table.column_names.index("scene_group")
    pq.write_table(table.set_column(place, "scene_group", pa.array(["here"] * len(table))), folder / "manifest.parquet")
    one = Experiment("smoke", tmp_path / "runs", str(folder))
    for task in (MAR, UDA_MAR):
        with pytest.raises(InputError, match=r"group"):
            one.roles(task, 0)


def _tiny(folder: Path) -> Path:
    draw_world(World(kinds="ships", chips=10, size=32), folder / "tiny")
    file = folder / "tiny" / "manifest.parquet"
    table = pq.read_table(file)
    roles = table.column_names.index("role")
    pq.write_table(table.set_column(roles, "role", pa.array(["gallery"] * len(table))), file)
    return folder / "tiny"


def test_the_best_baseline_of_validation_comes_with_the_choices_and_larger_networks_take_it_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [Experiment(scale, tmp_path).best_baseline(MAR, 0) for scale in ("head", "cpu", "paper")] == ["sp"] * 3
    assert Experiment("cpu", tmp_path, "mine").choices == Experiment("head", tmp_path, "mine").choices
    assert Experiment("smoke", tmp_path).best_baseline(MAR, 0) is None, "nobody has chosen there"
