"""Training on several devices as a user starts it: by resources.devices, by torchrun."""

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import yaml
from pretrained_folder import adapt_options, fill_with_pretrained, perplexity, start, wait_for_checkpoint
from stage_commands import settings

from tasks.records.stage_report import read_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else False,
        reason="needs two processor cores",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text.txt, valid.txt and a model folder pretrained."""
    return fill_with_pretrained(tmp_path_factory.mktemp("ranks"), 2000)


def options(folder: Path, name: str, *more: str) -> list[str]:
    plain = settings(
        f"resources.work_folder={folder / 'work' / name}", "adaptation.batch_tokens=256", "adaptation.dropout=0",
        "adaptation.precision=float32", "adaptation.learning_rate=0.01",
    )  # fmt: skip
    return adapt_options(folder, name, *plain, *more)


def test_two_devices_one_run_and_the_same_perplexity(folder, tmp_path):
    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    document["tracking"] |= {"uri": f"sqlite:///{tmp_path}/mlflow.db", "live": True, "log_every_steps": 5}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    cell = ["--params", str(tmp_path / "params.yaml"), "--cell", "dataset=chat,method=oracle", "--seed", "1"]
    shown = {}
    for name, devices in (("one", "1"), ("two", "2")):
        more = [*settings(f"resources.devices={devices}"), *(cell if devices == "2" else [])]
        process = start(options(folder, name, *more))
        out, shown[name] = process.communicate()
        assert (process.returncode, out) == (0, ""), shown[name]
    # One rank alone says what was done, in the words that one process has for it, with its warnings.
    assert shown["two"].count("\n") == shown["one"].count("\n") == 2, shown["two"]
    assert "warning: 11 of 50 lines of --valid are in --input too" in shown["two"]
    assert "steps" in shown["two"]
    one, two = (read_report(folder / f"{name}.json")["measured"] for name in ("one", "two"))
    assert (two["devices"], two["strategy"]) == (2, "ddp")
    assert (one["devices"], one["strategy"]) == (1, "single")
    assert (one["steps"], one["tokens"]) == (two["steps"], two["tokens"])
    last = one["curve"][-1]["valid_loss"], two["curve"][-1]["valid_loss"]
    assert last[0] == pytest.approx(last[1], abs=1e-5)
    measured = [perplexity(folder / name, folder / "valid.txt")["perplexity"] for name in ("one", "two")]
    assert measured[0] == pytest.approx(measured[1], rel=1e-5)

    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=document["tracking"]["uri"])
    runs = [run for each in client.search_experiments() for run in client.search_runs([each.experiment_id])]
    assert len(runs) == 1
    history = client.get_metric_history(runs[0].info.run_id, "train_loss")
    assert [point.step for point in sorted(history, key=lambda point: point.step)] == [
        point["step"] for point in two["curve"] if "train_loss" in point
    ]


def ranks_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]


def test_a_killed_rank_ends_the_command_in_seconds(folder):
    more = [*settings("resources.devices=2", "resources.checkpoint_steps=3", "adaptation.epochs=50")]
    process = start(options(folder, "killed", *more))
    wait_for_checkpoint(folder / "work" / "killed", process)
    ranks = ranks_of(process)
    assert len(ranks) == 2
    killed = time.monotonic()
    ranks[1].kill()
    shown = process.communicate()[1]
    assert time.monotonic() - killed < 15
    assert process.returncode == 75
    assert "palimpsest: error: rank 1 of 2 was ended by SIGKILL" in shown.splitlines()[-1]
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)
    assert not (folder / "killed").exists()
