"""Training goes on exactly where it was, whatever ended it; steps are divided among processes without a rest."""

import signal
from collections.abc import Callable
from itertools import chain

import pytest
import torch

from tasks.errors import ModelError
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training import TextBatches, train
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.training.ranks import RankPlan
from tasks.training.stage import Checkpoints

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 30
SETTINGS = TrainingSettings(epochs=2.5, batch_tokens=64, learning_rate=0.02, dropout=0.3, precision="float32")
Model = TransformerLanguageModel


class Killed(Exception):
    """Stands for whatever ends a process without a warning."""


@pytest.fixture
def runs(encoded, small_model, tmp_path):
    """Trains the same model on the same text; returns model and record."""
    text, valid = encoded(LINES), encoded(["a b", "c d c"])

    def run(settings=SETTINGS, ending=lambda step: None, context="sentence", every=4, seed=1):
        model = small_model()
        model.architecture = model.architecture.model_copy(update={"context": context})
        last = tmp_path / "work" / "last.ckpt"
        checkpoints = Checkpoints(last, str(seed), every, begin_with=last if last.exists() else None)

        def log(step: int, values: dict[str, float]) -> None:
            if "train_loss" in values:
                ending(step)

        record = train(model, text, settings, seed, valid=valid, checkpoints=checkpoints, log_every_steps=1, on_log=log)
        return model, record

    return run


def kill_at(wanted: int) -> Callable[[int], None]:
    def ending(step: int) -> None:
        if step == wanted:
            raise Killed

    return ending


def same_weights(first: Model, second: Model) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize(("step", "precision"), [(6, "float32"), (14, "float32"), (15, "bfloat16")])
def test_a_killed_run_goes_on_to_the_same_curve_and_the_same_bytes(runs, step, precision):
    settings = SETTINGS.model_copy(update={"precision": precision})
    whole, record = runs(settings, every=0)
    with pytest.raises(Killed):
        runs(settings, kill_at(step))
    resumed, second = runs(settings)
    assert second.resumed_step == (step - 1) // 4 * 4
    assert second.curve == record.curve
    assert (second.steps, second.tokens) == (record.steps, record.tokens)
    assert same_weights(whole, resumed)


def test_early_stopping_goes_on_with_the_best_weights_and_its_patience(runs):
    """The learning rate is too large, so the smallest loss comes early; the run is killed while it waits."""
    context, changes = "packed", {"patience": 4, "validate_every_steps": 1, "learning_rate": 0.3, "accumulate": 3}
    settings = SETTINGS.model_copy(update=changes)
    whole, record = runs(settings, every=0, context=context)
    assert record.stopped_early
    assert 0 < record.best_step < record.steps - 2
    with pytest.raises(Killed):
        runs(settings, kill_at(record.steps - 1), every=1, context=context)
    resumed, second = runs(settings, every=1, context=context)
    assert second.resumed_step == record.steps - 2
    assert second.curve == record.curve
    assert (second.best_step, second.stopped_early) == (record.best_step, True)
    assert same_weights(whole, resumed)


def test_sigterm_writes_a_checkpoint_and_leaves_with_143(runs, capsys):
    def terminate(step: int) -> None:
        if step == 7:
            signal.raise_signal(signal.SIGTERM)

    whole, record = runs(every=0)
    with pytest.raises(SystemExit) as ended:
        runs(ending=terminate, every=0)
    assert ended.value.code == 143
    assert "ended by SIGTERM after step 7" in capsys.readouterr().err
    resumed, second = runs(every=0)
    assert second.resumed_step == 7
    assert second.curve == record.curve
    assert same_weights(whole, resumed)


def test_a_checkpoint_has_to_be_whole_and_to_belong_to_the_run(runs, tmp_path):
    with pytest.raises(Killed):
        runs(ending=kill_at(6))
    with pytest.raises(ModelError, match="is of another vocabulary, architecture, text"):
        runs(seed=2)
    (tmp_path / "work" / "last.ckpt").write_bytes(b"torn")
    with pytest.raises(ModelError, match="is damaged"):
        runs()


@pytest.mark.parametrize("context", ["sentence", "packed"])
def test_the_parts_of_a_step_are_its_targets_once(encoded, context):
    text = encoded(LINES)
    architecture = ArchitectureSettings(layers=1, heads=1, width=8, maximum_tokens=16, context=context)

    def steps(plan: RankPlan, accumulate: int) -> list[list[int]]:
        settings = SETTINGS.model_copy(update={"epochs": 1.0, "batch_tokens": 40, "accumulate": accumulate})
        parts = [batch.targets.tolist() for batch, _ in TextBatches(text, architecture, settings, 1, plan)]
        return [list(chain(*parts[begin : begin + accumulate])) for begin in range(0, len(parts), accumulate)]

    whole = [sorted(targets) for targets in steps(RankPlan(), 1)]
    for ranks in (1, 2, 5):
        for accumulate in (1, 4):
            divided = [steps(RankPlan(rank, ranks, ranks, strategy="ddp"), accumulate) for rank in range(ranks)]
            assert [sorted(chain(*parts)) for parts in zip(*divided, strict=True)] == whole
