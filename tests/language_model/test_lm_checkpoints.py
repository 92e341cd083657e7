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
from tasks.language_model.training.stage import training_identity, training_key
from tasks.language_model.training.trainer import train
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import Vocabulary
from tasks.training.checkpoints import (
    Checkpoint,
    CheckpointStore,
    DamagedCheckpointError,
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
def test_a_killed_run_goes_on_to_the_same_curve_and_the_same_bytes(
    runs: Callable[..., Any], tmp_path: Path, step: int, precision: str
) -> None:
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


def test_a_run_killed_twice_and_in_the_middle_of_an_interval_has_the_same_curve(
    encoded: Callable[..., EncodedText], small_model: Callable[..., Model], vocabulary: Vocabulary, tmp_path: Path
) -> None:
    """The mean loss of an interval that the checkpoint divides is that of all its steps."""
    text = encoded(LINES)

    def run(ends_at: int = 0, every_steps: int = 3) -> TrainingRecord:
        model = small_model()
        identity = training_identity(model, vocabulary, text, SETTINGS, 1)
        store = CheckpointStore(
            identity, WorkFolder(tmp_path / "work", tmp_path / "model", "k" * 64), every_steps=every_steps
        )

        def log(step: int, _: Any) -> None:
            if step == ends_at:
                raise Killed

        try:
            return train(model, text, SETTINGS, 1, store=store, log_every_steps=5, on_log=log)
        finally:
            store.close()

    record = run(every_steps=0)
    for step in (10, 20):
        with pytest.raises(Killed):
            run(step)
    resumed = run()
    assert resumed.resumed_step == 18
    assert resumed.curve == record.curve


@pytest.mark.parametrize("context", ["packed", "stream"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_early_stopping_goes_on_with_the_best_weights_and_its_patience(
    runs: Callable[..., Any], small_model: Callable[..., Model], context: str, accumulate: int
) -> None:
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


def test_sigterm_writes_a_checkpoint_and_leaves_with_143(
    runs: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_the_time_between_checkpoints_is_a_setting(runs: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(Killed):
        runs(ending=kill_at(6), every_steps=0, every_seconds=1e-9)
    assert [path.stem for path in checkpoints_in(folder_of(tmp_path))] == ["step-00000005", "step-00000004"]
    with pytest.raises(Killed):
        runs(ending=kill_at(6), every_steps=0, every_seconds=1000.0, resume=False)
    assert checkpoints_in(folder_of(tmp_path)) == []


def test_checkpoints_are_private_and_nothing_in_them_is_pickled(runs: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(Killed):
        runs(ending=kill_at(6))
    folder = folder_of(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    (path,) = (path for path in folder.iterdir() if path.name != "lock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert safetensors.torch.load(path.read_bytes().partition(b"\n")[2]).keys() == read_checkpoint(path).tensors.keys()


@pytest.mark.parametrize("fault", ["truncated", "changed"])
def test_a_damaged_checkpoint_is_said_and_the_one_before_it_is_taken(
    runs: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    whole, record = runs(every_steps=0)
    with pytest.raises(Killed):
        runs(ending=kill_at(10))
    latest = checkpoints_in(folder_of(tmp_path))[0]
    content = latest.read_bytes()
    changed = content[:-1] + bytes([content[-1] ^ 1])
    latest.write_bytes(content[: len(content) // 2] if fault == "truncated" else changed)
    capsys.readouterr()
    resumed, second = runs()
    shown = capsys.readouterr().err
    assert "step-00000008" in shown
    assert "the one before it is taken" in shown
    assert second.resumed_step == 4
    assert second.curve == record.curve
    assert same_weights(whole, resumed)


def test_where_all_are_damaged_training_begins_anew(
    runs: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, _ = runs(every_steps=0)
    with pytest.raises(Killed):
        runs(ending=kill_at(6))
    (only,) = checkpoints_in(folder_of(tmp_path))
    only.write_text("{", encoding="utf-8")
    again, record = runs()
    assert "training begins anew" in capsys.readouterr().err
    assert record.resumed_step is None
    assert same_weights(whole, again)


def test_without_resume_training_begins_anew(runs: Callable[..., Any]) -> None:
    with pytest.raises(Killed):
        runs(ending=kill_at(6))
    assert runs(resume=False)[1].resumed_step is None


def test_everything_that_decides_the_result_is_in_the_key(
    encoded: Callable[..., EncodedText], small_model: Callable[..., Model], vocabulary: Vocabulary
) -> None:
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


@pytest.mark.parametrize("part", ["vocabulary", "architecture", "order"])
def test_a_named_checkpoint_has_to_belong_to_the_run(tmp_path: Path, part: str) -> None:
    identity = {"vocabulary": "v" * 64, "architecture": "a" * 64, "order": "o" * 64}
    path = write_checkpoint(tmp_path, Checkpoint({"step": 3, "identity": {**identity, part: "x" * 64}}, {}))
    with pytest.raises(ModelError) as refused:
        CheckpointStore(identity, None, resume_from=path).latest()
    assert f"of another {'text and order of batches' if part == 'order' else part}" in str(refused.value)
    assert f"its hash is {'x' * 12}, that of this run is {part[0] * 12}" in str(refused.value)


def test_a_named_checkpoint_may_go_on_with_another_learning_rate(runs: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(Killed):
        runs(ending=kill_at(10))
    path = folder_of(tmp_path) / "step-00000004.checkpoint"
    (tmp_path / path.name).write_bytes(path.read_bytes())
    settings = SETTINGS.model_copy(update={"learning_rate": 0.01})
    _, record = runs(settings, resume_from=tmp_path / path.name)
    assert record.resumed_step == 4
    rates = {point["step"]: point["learning_rate"] for point in record.curve if "learning_rate" in point}
    assert rates[5] < 0.011 < rates[4]


def test_a_named_checkpoint_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    for content in ("", "{}\n", "0\n{}\n"):
        (tmp_path / "step-00000001.checkpoint").write_text(content, encoding="utf-8")
        with pytest.raises(DamagedCheckpointError, match="is damaged"):
            read_checkpoint(tmp_path / "step-00000001.checkpoint")
    with pytest.raises(DamagedCheckpointError, match="does not exist"):
        read_checkpoint(tmp_path / "step-00000002.checkpoint")


def test_two_runs_of_the_same_output_do_not_share_a_folder(tmp_path: Path) -> None:
    first = WorkFolder(tmp_path / "work", tmp_path / "model", "a" * 64)
    with pytest.raises(ResourceError, match="another process is making"):
        WorkFolder(tmp_path / "work", tmp_path / "model", "a" * 64)
    other = WorkFolder(tmp_path / "work", tmp_path / "other", "a" * 64)
    first.close()
    WorkFolder(tmp_path / "work", tmp_path / "model", "a" * 64).remove()
    assert [path for path in (tmp_path / "work").iterdir()] == [other.path]


def test_checkpoints_of_other_work_on_the_same_output_are_removed(tmp_path: Path) -> None:
    first = WorkFolder(tmp_path / "work", tmp_path / "model", "a" * 64)
    first.close()
    kept = WorkFolder(tmp_path / "work", tmp_path / "elsewhere", "a" * 64)
    second = WorkFolder(tmp_path / "work", tmp_path / "model", "b" * 64)
    assert set((tmp_path / "work").iterdir()) == {kept.path, second.path}


def test_a_full_disk_leaves_the_checkpoint_before(runs: Callable[..., Any], tmp_path: Path) -> None:
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


def test_a_loss_that_is_no_number_names_the_step_and_the_last_good_checkpoint(
    runs: Callable[..., Any], tmp_path: Path
) -> None:
    settings = SETTINGS.model_copy(update={"learning_rate": 1e30, "gradient_clip": 1e30, "warmup_share": 0.9})
    with pytest.raises(ModelError, match=r"not (a number|finite) (at|after) step \d+ of \d+; there is no checkpoint"):
        runs(settings, every_steps=0)

    def spoil(step: int) -> None:
        if step == 6:
            for parameter in broken[0].parameters():
                parameter.data.fill_(float("nan"))

    broken: list[Model] = []
    import tasks.language_model.training.trainer as training

    original = training.LanguageModelTraining
    with pytest.MonkeyPatch.context() as patch:

        def keep(model: Model, *arguments: Any) -> Any:
            broken.append(model)
            return original(model, *arguments)

        patch.setattr(training, "LanguageModelTraining", keep)
        with pytest.raises(ModelError) as stopped:
            runs(ending=spoil)
    assert "not a number at step 7 of" in str(stopped.value)
    assert f"the last good checkpoint is {str(folder_of(tmp_path) / 'step-00000004.checkpoint')!r}" in str(
        stopped.value
    )
    assert read_checkpoint(folder_of(tmp_path) / "step-00000004.checkpoint").step == 4


def test_weights_that_are_no_numbers_are_never_written(runs: Callable[..., Any], tmp_path: Path) -> None:
    """The loss of a step is measured before its update: a checkpoint right after the update looks for itself."""
    settings = SETTINGS.model_copy(update={"learning_rate": 1e38, "warmup_share": 0.0, "weight_decay": 1e38})
    with pytest.raises(ModelError, match=r"not (finite after|a number at) step"):
        runs(settings, every_steps=1)
    for path in checkpoints_in(folder_of(tmp_path)):
        assert all(torch.isfinite(value).all() for value in read_checkpoint(path).tensors.values())
