"""Trainings as a user or DVC runs them: ended and started again, and in several processes."""

import os
import signal

import psutil
import pytest
from pretrained_folder import adapt_options, fill_with_pretrained, start, wait_for_checkpoint
from stage_commands import settings

from tasks.records.stage_report import read_report

PRIVATE_WORD = "xylophonecanary"
TWO_CORES = pytest.mark.skipif(
    hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < 2, reason="needs two processor cores"
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with text.txt, valid.txt, vocabulary.txt and a model folder pretrained."""
    return fill_with_pretrained(tmp_path_factory.mktemp("trainings"), 1000, [PRIVATE_WORD])


def options(folder, name, *more):
    work = f"resources.work_folder={folder / 'work' / name}"
    return adapt_options(folder, name, *settings(work, "adaptation.batch_tokens=64", *more))


def measured(folder, name):
    return read_report(folder / f"{name}.json")["measured"]


@pytest.mark.parametrize(("kind", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_command_that_was_ended_goes_on_to_the_same_bytes(folder, kind, status):
    own = ["resources.checkpoint_steps=5", "adaptation.dropout=0.2"]
    assert start(options(folder, "whole", *own)).wait() == 0
    name = f"resumed-{kind.name}"
    process = start(options(folder, name, *own))
    wait_for_checkpoint(folder / "work" / name, process)
    process.send_signal(kind)
    shown = process.communicate()[1]
    assert (process.returncode, shown) == (status, "")
    assert not (folder / name).exists()
    (last,) = (folder / "work" / name).glob("*/last.ckpt")
    assert last.parent.stat().st_mode & 0o777 == 0o700
    assert PRIVATE_WORD.encode() not in last.read_bytes()
    second = start(options(folder, name, *own))
    assert "goes on from the checkpoint after step" in second.communicate()[1]
    assert second.returncode == 0
    assert not last.exists()
    for file in (folder / "whole").iterdir():
        assert file.read_bytes() == (folder / name / file.name).read_bytes()
    assert measured(folder, name)["curve"] == measured(folder, "whole")["curve"]
    assert measured(folder, name)["resumed_step"] >= 5


@TWO_CORES
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_train_the_model_of_one(folder, strategy):
    same = ["adaptation.dropout=0", "adaptation.precision=float32", "adaptation.patience=2"]
    own = [*same, "adaptation.learning_rate=0.01"]
    shown = {}
    for name, more in (("one", []), (strategy, ["resources.devices=2", f"resources.strategy={strategy}"])):
        process = start(options(folder, name, *own, *more))
        out, shown[name] = process.communicate()
        assert (process.returncode, out) == (0, ""), shown[name]
    # One process alone says what was done, with its warnings.
    assert shown[strategy].count("\n") == shown["one"].count("\n") == 2, shown[strategy]
    one, two = measured(folder, "one"), measured(folder, strategy)
    assert (two["devices"], two["strategy"], one["devices"], one["strategy"]) == (2, strategy, 1, "single")
    assert [two[name] for name in ("steps", "tokens")] == [one[name] for name in ("steps", "tokens")]
    last = [each["curve"][-1]["valid_loss"] for each in (one, two)]
    assert last[0] == pytest.approx(last[1], abs=1e-5)


@TWO_CORES
def test_a_killed_process_ends_the_others(folder):
    own = "devices=2", "checkpoint_steps=3"
    more = "adaptation.epochs=20", "adaptation.precision=float32"
    process = start(options(folder, "killed", *(f"resources.{each}" for each in own), *more))
    wait_for_checkpoint(folder / "work" / "killed", process)
    children = psutil.Process(process.pid).children()
    ranks = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    assert len(ranks) == 2
    ranks[1].kill()
    assert "palimpsest: error: rank 1 of 2 failed" in process.communicate(timeout=120)[1]
    assert process.returncode == 75
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)
    assert not (folder / "killed").exists()
