"""Interrupted commands, as a user or DVC runs them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pretrained_folder import fill_with_pretrained

from tasks.cli import main
from tasks.records.stage_report import read_report

PRIVATE_WORD = "xylophonecanary"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text.txt, valid.txt, vocabulary.txt and a model folder pretrained."""
    made = fill_with_pretrained(tmp_path_factory.mktemp("interrupted"), 3000, [PRIVATE_WORD])
    assert not any((made / "work").iterdir())  # nothing is left of a run that succeeded
    return made


def adapt_options(folder: Path, name: str, *more: str) -> list[str]:
    texts = [
        "--input",
        str(folder / "text.txt"),
        "--valid",
        str(folder / "valid.txt"),
        "--set",
        "adaptation.batch_tokens=32",
    ]
    output = ["--output", str(folder / name), "--report", str(folder / f"{name}.json")]
    work = [
        "--set",
        f"resources.work_folder={folder / 'work'}",
        "--set",
        "resources.checkpoint_steps=5",
        "--threads",
        "1",
        "--set",
        "adaptation.dropout=0.2",
    ]
    return ["adapt", "--model", str(folder / "pretrained"), *texts, *output, *work, *more]


def run(arguments: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        [sys.executable, "-m", "tasks.cli", *arguments], env=environment, stderr=subprocess.PIPE, text=True
    )


def wait_for_checkpoint(folder: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not list((folder / "work").glob("*/step-*.checkpoint")):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--set", "resources.checkpoint_steps=-1"],
            "checkpoint_steps: Input should be greater than or equal to 0 (got -1)",
        ),
        (["--set", "resources.devices=5000"], "devices is 5000 and this machine has"),
        (["--set", "resources.devices=0"], "devices: Input should be greater than or equal to 1 (got 0)"),
        (
            ["--set", "resources.resume_from=nowhere.json"],
            "checkpoint 'nowhere.json' does not exist; give a file step-N.checkpoint",
        ),
        (
            ["--set", "resources.resume_from=some.json", "--set", "resources.resume=false"],
            "resources.resume_from 'some.json' goes on from a checkpoint, and",
        ),
    ],
)
def test_what_a_user_gets_wrong_about_training_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(adapt_options(folder, "wrong", *options)) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_command_that_was_killed_goes_on_to_the_same_bytes(folder: Path, kind: signal.Signals, status: int) -> None:
    assert run(adapt_options(folder, "whole")).wait() == 0
    name = f"resumed-{kind.name}"
    process = run(adapt_options(folder, name))
    wait_for_checkpoint(folder, process)
    process.send_signal(kind)
    shown = process.communicate()[1]
    assert process.returncode == status
    assert ("the same command goes on from there" in shown) == (kind == signal.SIGTERM)
    assert not (folder / name).exists()
    for path in (folder / "work").glob("*/step-*"):
        assert path.stat().st_mode & 0o777 == 0o600
        assert PRIVATE_WORD.encode() not in path.read_bytes()
    assert PRIVATE_WORD not in shown
    second = run(adapt_options(folder, name))
    shown = second.communicate()[1]
    assert second.returncode == 0
    assert "goes on from the checkpoint after step" in shown
    assert not list((folder / "work").glob("*/step-*"))
    for file in (folder / "whole").iterdir():
        assert file.read_bytes() == (folder / name / file.name).read_bytes()
    whole, resumed = (read_report(folder / f"{which}.json")["measured"] for which in ("whole", name))
    assert resumed["curve"] == whole["curve"]
    assert resumed["resumed_step"] >= 5
    assert whole["resumed_step"] is None
