from __future__ import annotations

import json

import pytest
from tests.lab.demo.conftest import SMALL, Heard

from lookdown.lab.demo.runs import LOSSES, run_of, train_run
from lookdown.training.run_folder import RunFolder
from lookdown.training.train import Observer


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_has_a_finished_run_that_is_not_trained_again(heard: Heard, loss: str) -> None:
    path = run_of(heard.folder, loss)
    run = RunFolder.open(path)
    assert run.finished
    assert run.recipe.stage2.loss == loss
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    train_run(heard.folder, loss, SMALL, Observer(step=lambda step: pytest.fail("it trains again")))
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_all_runs_share_the_features_of_one_trunk(heard: Heard) -> None:
    training = [file for file in (heard.folder / "world" / "features").iterdir() if file.is_dir()]
    assert len(training) == 2, "what trains, and what asks and is searched"
    trunks = {json.loads((run_of(heard.folder, loss) / "run.json").read_text())["trunk"] for loss in LOSSES}
    assert len(trunks) == 1
