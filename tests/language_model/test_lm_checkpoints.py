"""Checkpoints: training goes on exactly where it was, whatever ended it."""

import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from tasks.errors import ModelError, ResourceError
from tasks.files.work_folder import WorkFolder
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import trainer
from tasks.language_model.training.stage import training_identity, training_key
from tasks.language_model.training.trainer import train
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import Vocabulary
from tasks.training.checkpoints import (
    Checkpoint,
    CheckpointStore,
    checkpoints_in,
    read_checkpoint,
    write_checkpoint,
)
from tasks.training.record import TrainingRecord

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 30
SETTINGS = TrainingSettings(epochs=2.5, batch_tokens=64, learning_rate=0.02, dropout=0.3, precision="float32")
Model = TransformerLanguageModel


class Killed(Exception):
    """Stands for whatever ends a process without a warning."""


@pytest.fixture
def runs(
    encoded: Callable[..., EncodedText], small_model: Callable[..., Model], vocabulary: Vocabulary, tmp_path: Path
) -> Callable[..., Any]:
    """Trains the same model on the same text; returns model and record."""
    text, valid = encoded(LINES), encoded(["a b", "c d c"])

    def run(
        settings: TrainingSettings = SETTINGS,
        ending: Callable[[int], None] = lambda step: None,
        context: str = "sentence",
        **options: Any,
    ) -> tuple[Model, TrainingRecord]:
        model = small_model()
        model.architecture = model.architecture.model_copy(update={"context": context})
        identity = training_identity(model, vocabulary, text, settings, 1)
        folder = WorkFolder(tmp_path / "work", tmp_path / "model", settings.model_dump_json().encode().hex())
        store = CheckpointStore(identity, folder, **{"every_steps": 4, **options})

        def log(step: int, values: dict[str, float]) -> None:
            if "train_loss" in values:
                ending(step)

        try:
            record = train(model, text, settings, 1, valid=valid, store=store, log_every_steps=1, on_log=log)
        finally:
            store.close()
        return model, record

    return run


def kill_at(wanted: int) -> Callable[[int], None]:
    def ending(step: int) -> None:
        if step == wanted:
            raise Killed

    return ending


def same_weights(first: Model, second: Model) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def folder_of(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "work").iterdir()
    return folder


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("step", [6, 13, 14, 15])  # in the first epoch, at the end of it and in the second
def test_a_killed_run_goes_on_to_the_same_curve_and_the_same_bytes(runs, tmp_path, step, precision):
    settings = SETTINGS.model_copy(update={"precision": precision})
    whole, record = runs(settings, every_steps=0)
    with pytest.raises(Killed):
        runs(settings, kill_at(step))
    kept = [path.name for path in checkpoints_in(folder_of(tmp_path))]
    last = (step - 1) // 4 * 4
    assert kept[0] == f"step-{last:08d}.checkpoint"
    resumed, second = runs(settings)
    assert second.resumed_step == last
    assert second.curve == record.curve
    assert (second.steps, second.tokens) == (record.steps, record.tokens)
    assert same_weights(whole, resumed)


@pytest.mark.parametrize("context", ["packed", "stream"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_early_stopping_goes_on_with_the_best_weights_and_its_patience(runs, small_model, context, accumulate):
    """The learning rate is too large, so the smallest loss comes early; the run is killed while it waits."""
    changes = {"patience": 4, "validate_every_steps": 1, "learning_rate": 0.3, "accumulate": accumulate}
    settings = SETTINGS.model_copy(update=changes)
    whole, record = runs(settings, every_steps=0, context=context)
    assert record.stopped_early
    assert 0 < record.best_step < record.steps - 2
    with pytest.raises(Killed):
        runs(settings, kill_at(record.steps - 1), every_steps=1, context=context)
    resumed, second = runs(settings, every_steps=1, context=context)
    assert second.resumed_step == record.steps - 2
    assert second.curve == record.curve
    assert (second.best_step, second.stopped_early) == (record.best_step, True)
    assert same_weights(whole, resumed)


def test_sigterm_writes_a_checkpoint_and_leaves_with_143(runs, tmp_path, capsys):
    whole, record = runs(every_steps=0)

    def terminate(step: int) -> None:
        if step == 7:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit) as ended:
        runs(ending=terminate, every_steps=0)
    assert ended.value.code == 143
    assert "ended by SIGTERM after step 7 of" in capsys.readouterr().err
    assert [path.name for path in checkpoints_in(folder_of(tmp_path))] == ["step-00000007.checkpoint"]
    resumed, second = runs(every_steps=0)
    assert second.resumed_step == 7
    assert second.curve == record.curve
    assert same_weights(whole, resumed)


def test_the_time_between_checkpoints_is_a_setting_and_without_resume_training_begins_anew(runs, tmp_path):
    with pytest.raises(Killed):
        runs(ending=kill_at(6), every_steps=0, every_seconds=1e-9)
    assert [path.stem for path in checkpoints_in(folder_of(tmp_path))] == ["step-00000005"]
    with pytest.raises(Killed):
        runs(ending=kill_at(6), every_steps=0, every_seconds=1000.0, resume=False)
    assert checkpoints_in(folder_of(tmp_path)) == []


def test_checkpoints_are_private_and_nothing_in_them_is_pickled(runs, tmp_path):
    with pytest.raises(Killed):
        runs(ending=kill_at(6))
    folder = folder_of(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    (path,) = (path for path in folder.iterdir() if path.name != "lock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert safetensors.torch.load(path.read_bytes().partition(b"\n")[2]).keys() == read_checkpoint(path).tensors.keys()


def test_everything_that_decides_the_result_is_in_the_key(encoded, small_model, vocabulary):
    def key(
        lines: list[str] = LINES,
        valid: str = "a",
        seed: int = 1,
        model_seed: int = 1,
        markers: str = "none",
        **changes: Any,
    ) -> str:
        settings, model = SETTINGS.model_copy(update=changes), small_model(model_seed)
        identity = training_identity(model, vocabulary, encoded(lines, markers), settings, seed)
        return training_key(identity, model, encoded([valid]), settings, 10)

    assert key() == key()
    others = [
        key(lines=LINES[1:]),
        key(valid="b"),
        key(seed=2),
        key(model_seed=2),
        key(markers="ignore"),
        key(learning_rate=0.01),
        key(accumulate=2),
    ]
    assert len({key(), *others}) == 1 + len(others)


def test_a_checkpoint_has_to_be_whole_and_to_belong_to_the_run(tmp_path):
    identity = {"vocabulary": "v" * 64, "architecture": "a" * 64, "order": "o" * 64}
    for part in identity:
        path = write_checkpoint(tmp_path, Checkpoint({"step": 3, "identity": {**identity, part: "x" * 64}}, {}))
        with pytest.raises(ModelError) as refused:
            CheckpointStore(identity, None, resume_from=path).latest()
        assert f"of another {'text and order of batches' if part == 'order' else part}" in str(refused.value)
        assert f"its hash is {'x' * 12}, that of this run is {part[0] * 12}" in str(refused.value)
    for content in ("", "{}\n", "0\n{}\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ModelError, match="is damaged"):
            CheckpointStore(identity, None, resume_from=path).latest()


def test_a_named_checkpoint_may_go_on_with_another_learning_rate(runs, tmp_path):
    with pytest.raises(Killed):
        runs(ending=kill_at(6))
    path = folder_of(tmp_path) / "step-00000004.checkpoint"
    (tmp_path / path.name).write_bytes(path.read_bytes())
    settings = SETTINGS.model_copy(update={"learning_rate": 0.01})
    _, record = runs(settings, resume_from=tmp_path / path.name)
    assert record.resumed_step == 4
    rates = {point["step"]: point["learning_rate"] for point in record.curve if "learning_rate" in point}
    assert rates[5] < 0.011 < rates[4]


def test_a_full_disk_leaves_the_checkpoint_before(runs, tmp_path):
    """The system refuses to write more than 1,000 bytes to a file, as it refuses all where a disk is full."""
    whole, record = runs(every_steps=0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step: int) -> None:
        if step == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    try:
        with pytest.raises(ResourceError) as full:
            runs(ending=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "the checkpoint of step 8 cannot be written" in str(full.value)
    assert "the last good checkpoint is" in str(full.value)
    assert {path.name for path in folder_of(tmp_path).iterdir()} == {"lock", "step-00000004.checkpoint"}
    resumed, second = runs()
    assert second.resumed_step == 4
    assert second.curve == record.curve
    assert same_weights(whole, resumed)


def test_a_loss_that_is_no_number_names_the_step_and_the_last_good_checkpoint(runs, tmp_path, monkeypatch):
    settings = SETTINGS.model_copy(update={"learning_rate": 1e30, "gradient_clip": 1e30, "warmup_share": 0.9})
    with pytest.raises(ModelError, match=r"not (a number|finite) (at|after) step \d+ of \d+; there is no checkpoint"):
        runs(settings, every_steps=0)
    trained: list[Model] = []

    class Watched(trainer.LanguageModelTraining):
        def __init__(self, model: Model, *arguments: Any) -> None:
            super().__init__(model, *arguments)
            trained.append(model)

    def spoil(step: int) -> None:
        if step == 6:
            for parameter in trained[0].parameters():
                parameter.data.fill_(float("nan"))

    monkeypatch.setattr(trainer, "LanguageModelTraining", Watched)
    with pytest.raises(ModelError) as stopped:
        runs(ending=spoil)
    assert "not a number at step 7 of" in str(stopped.value)
    last = folder_of(tmp_path) / "step-00000004.checkpoint"
    assert f"the last good checkpoint is {str(last)!r}" in str(stopped.value)
    assert read_checkpoint(last).step == 4


def test_weights_that_are_no_numbers_are_never_written(runs, tmp_path):
    """The loss of a step is measured before its update: a checkpoint right after the update looks for itself."""
    settings = SETTINGS.model_copy(update={"learning_rate": 1e38, "warmup_share": 0.0, "weight_decay": 1e38})
    with pytest.raises(ModelError, match=r"not (finite after|a number at) step"):
        runs(settings, every_steps=1)
    for path in checkpoints_in(folder_of(tmp_path)):
        assert all(torch.isfinite(value).all() for value in read_checkpoint(path).tensors.values())
