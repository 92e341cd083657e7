"""Interrupted commands, as a user or DVC runs them."""

import signal
from pathlib import Path

import pytest
from pretrained_folder import adapt_options, fill_with_pretrained, start, wait_for_checkpoint
from stage_commands import settings

from tasks.cli import main
from tasks.records.stage_report import read_report

PRIVATE_WORD = "xylophonecanary"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text.txt, valid.txt, vocabulary.txt and a model folder pretrained."""
    made = fill_with_pretrained(tmp_path_factory.mktemp("interrupted"), 3000, [PRIVATE_WORD])
    assert not any((made / "work").iterdir())  # nothing is left of a run that succeeded
    return made


def options(folder: Path, name: str, *more: str) -> list[str]:
    steps = settings(
        f"resources.work_folder={folder / 'work'}", "resources.checkpoint_steps=5", "adaptation.batch_tokens=32",
        "adaptation.dropout=0.2",
    )  # fmt: skip
    return adapt_options(folder, name, *steps, *more)


def test_what_a_user_gets_wrong_about_training_is_one_line(folder, capsys):
    for wrong, message in (
        (["checkpoint_steps=-1"], "checkpoint_steps: Input should be greater than or equal to 0 (got -1)"),
        (["devices=5000"], "devices is 5000 and this machine has"),
        (["devices=0"], "devices: Input should be greater than or equal to 1 (got 0)"),
        (["resume_from=nowhere.json"], "checkpoint 'nowhere.json' does not exist; give a file"),
        (["resume_from=some.json", "resume=false"], "resources.resume_from 'some.json' goes on from a checkpoint, and"),
    ):
        assert main(options(folder, "wrong", *settings(*(f"resources.{part}" for part in wrong)))) == 1
        shown = capsys.readouterr().err
        assert message in shown
        assert shown.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_command_that_was_killed_goes_on_to_the_same_bytes(folder, kind, status):
    assert start(options(folder, "whole")).wait() == 0
    name = f"resumed-{kind.name}"
    process = start(options(folder, name))
    wait_for_checkpoint(folder / "work", process)
    process.send_signal(kind)
    shown = process.communicate()[1]
    assert process.returncode == status
    assert ("the same command goes on from there" in shown) == (kind == signal.SIGTERM)
    assert not (folder / name).exists()
    for path in (folder / "work").glob("*/last.ckpt"):
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert PRIVATE_WORD.encode() not in path.read_bytes()
    assert PRIVATE_WORD not in shown
    second = start(options(folder, name))
    shown = second.communicate()[1]
    assert second.returncode == 0
    assert "goes on from the checkpoint after step" in shown
    assert not list((folder / "work").glob("*/last.ckpt"))
    for file in (folder / "whole").iterdir():
        assert file.read_bytes() == (folder / name / file.name).read_bytes()
    whole, resumed = (read_report(folder / f"{which}.json")["measured"] for which in ("whole", name))
    assert resumed["curve"] == whole["curve"]
    assert resumed["resumed_step"] >= 5
    assert whole["resumed_step"] is None
