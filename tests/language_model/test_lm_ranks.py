"""Several ranks train as one does; processes on the processor that talk over gloo stand for GPUs."""

import argparse
import contextlib
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tasks.errors import ParameterError, ResourceError
from tasks.files.work_folder import WorkFolder
from tasks.language_model.encoded_text import encode_text
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training.batches import TrainingBatches
from tasks.language_model.training.stage import training_identity
from tasks.language_model.training.trainer import train
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.training.checkpoints import CheckpointStore
from tasks.training.ranks.plan import RankPlan, plan_ranks
from tasks.training.ranks.processes import start_ranks

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 24
SETTINGS = TrainingSettings(epochs=2.0, batch_tokens=64, learning_rate=0.01, dropout=0.0, precision="float32")
TOLERANCE = 1e-5
"""Nats a target: sums of float32 in another order, over some twenty steps."""
TWO = RankPlan(world_size=2, devices=2, strategy="ddp", to_be_started=True)

needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else False, reason="needs two processor cores"
)


def job(folder: Path, **values: Any) -> argparse.Namespace:
    """What a process is told: see ``work``."""
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    (folder / "valid.txt").write_text("a b\nc d c\nd\n", encoding="utf-8")
    defaults = {"devices": 2, "strategy": "auto", "name": "model", "terminated": None, "changes": {}}
    return argparse.Namespace(folder=folder, **{**defaults, **values})


def work(arguments: argparse.Namespace) -> None:
    """Train; the first rank writes the weights, the curve and the steps of the log.

    ``terminated``: the rank that gets SIGTERM after step 7.
    """
    torch.set_num_threads(1)
    plan = plan_ranks(arguments.devices, 1, arguments.strategy, 1)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *"abcd"))
    text, valid = (encode_text(arguments.folder / f"{name}.txt", vocabulary) for name in ("text", "valid"))
    model = TransformerLanguageModel(
        ArchitectureSettings(layers=2, heads=2, width=8, maximum_tokens=16), len(vocabulary)
    )
    model.initialise(1)
    identity = training_identity(model, vocabulary, text, SETTINGS, 1)
    folder = WorkFolder(arguments.folder / "work", arguments.name, "a" * 64) if plan.is_first else None
    store = CheckpointStore(identity, folder)
    settings = SETTINGS.model_copy(update=arguments.changes)
    logged: list[int] = []
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(store):
        if plan.rank == arguments.terminated:
            patch.setattr(TrainingBatches, "__iter__", _terminated(TrainingBatches.__iter__))
        record = train(
            model, text, settings, 1, valid=valid, plan=plan, store=store, log_every_steps=1,
            on_log=lambda step, values: logged.append(step),
        )  # fmt: skip
    if not plan.is_first:
        assert not logged
        return
    result = {"curve": record.curve, "steps": record.steps, "tokens": record.tokens, "resumed": record.resumed_step}
    (arguments.folder / f"{arguments.name}.json").write_text(json.dumps(result), encoding="utf-8")
    save_file(dict(model.state_dict()), arguments.folder / f"{arguments.name}.safetensors")


def _terminated(iterate: Callable[..., Any]) -> Callable[..., Any]:
    def until(self: TrainingBatches) -> Any:
        for number, batch in enumerate(iterate(self)):
            if number == 7:
                signal.raise_signal(signal.SIGTERM)
            yield batch

    return until


def read(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    result = json.loads((arguments.folder / f"{arguments.name}.json").read_text(encoding="utf-8"))
    return result, load_file(arguments.folder / f"{arguments.name}.safetensors")


def run(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    if arguments.devices == 1:
        work(arguments)
    else:
        start_ranks(partial(work, arguments), TWO)
    return read(arguments)


def check_equal(first: tuple[dict[str, Any], dict], second: tuple[dict[str, Any], dict]) -> None:
    (one, weights), (two, others) = first, second
    assert (one["steps"], one["tokens"]) == (two["steps"], two["tokens"])
    assert len(one["curve"]) == len(two["curve"])
    for point, other in zip(one["curve"], two["curve"], strict=True):
        assert point.keys() == other.keys()
        for key, value in point.items():
            assert value == pytest.approx(other[key], abs=TOLERANCE)
    for name, value in weights.items():
        assert torch.allclose(value, others[name], atol=1e-4)


@needs_two_cores
def test_two_ranks_have_the_curve_of_one(tmp_path):
    one = run(job(tmp_path, devices=1, name="one"))
    assert len(one[0]["curve"]) > 10
    check_equal(one, run(job(tmp_path, name="two")))


@pytest.mark.slow
@needs_two_cores
@pytest.mark.parametrize(
    "options",
    [{"strategy": "fsdp"}, {"changes": {"accumulate": 3}}, {"strategy": "fsdp", "changes": {"accumulate": 2}}],
)
def test_every_way_to_divide_the_work_has_the_curve_of_one_rank(tmp_path, options):
    check_equal(run(job(tmp_path, devices=1, name="one")), run(job(tmp_path, name="two", **options)))


@pytest.mark.slow
@needs_two_cores
@pytest.mark.parametrize(
    ("before", "after"),
    [((1, "auto"), (2, "auto")), ((2, "auto"), (1, "auto")), ((1, "auto"), (2, "fsdp")), ((2, "fsdp"), (1, "auto"))],
)
def test_training_goes_on_with_another_number_of_ranks(tmp_path, before, after):
    whole = run(job(tmp_path, devices=1, name="whole"))
    interrupted = job(tmp_path, devices=before[0], strategy=before[1], terminated=0)
    with pytest.raises(SystemExit) as ended:
        run(interrupted)
    assert ended.value.code == 143
    resumed = run(job(tmp_path, devices=after[0], strategy=after[1]))
    assert resumed[0]["resumed"] in (6, 7)
    check_equal(whole, resumed)


@pytest.mark.slow
@needs_two_cores
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_ranks_go_on_to_the_same_curve_and_bytes_with_dropout(tmp_path, strategy):
    """Each rank's dropout draws go on where they were."""
    changes = {"dropout": 0.3, "patience": 50, "validate_every_steps": 2}
    whole, weights = run(job(tmp_path, name="whole", strategy=strategy, changes=changes))
    with pytest.raises(SystemExit):
        run(job(tmp_path, strategy=strategy, changes=changes, terminated=1))
    resumed, others = run(job(tmp_path, strategy=strategy, changes=changes))
    assert resumed["resumed"] in (6, 7)
    assert resumed["curve"] == whole["curve"]
    assert all(torch.equal(value, others[name]) for name, value in weights.items())


def test_who_trains_together():
    plan = plan_ranks(1, 1, "auto", 1, {})
    assert plan == RankPlan()
    assert plan.is_first
    environment = {"RANK": "5", "WORLD_SIZE": "6", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    expected = RankPlan(rank=5, world_size=6, devices=2, nodes=3, strategy="ddp")
    if len(os.sched_getaffinity(0)) >= 2:
        plan = plan_ranks(2, 1, "fsdp", 1, {})
        assert plan == RankPlan(world_size=2, devices=2, strategy="fsdp", to_be_started=True)
        # What torchrun says holds.
        assert plan_ranks(1, 1, "auto", 1, environment) == expected
        assert plan_ranks(2, 3, "ddp", 1, environment) == expected
    with pytest.raises(ParameterError, match="torchrun started 2 processes on each of 3 machines"):
        plan_ranks(2, 2, "auto", 1, environment)
    with pytest.raises(ResourceError, match=r"devices is 5000 and this machine has room for \d+ processes"):
        plan_ranks(5000, 1, "auto", 1, {})
    with pytest.raises(ResourceError, match="give 1 or fewer, or fewer threads"):
        plan_ranks(2, 1, "auto", len(os.sched_getaffinity(0)), {})
    with pytest.raises(ParameterError, match="start the command on each machine with torchrun"):
        plan_ranks(2, 2, "auto", 1, {})
    with pytest.raises(ParameterError, match="strategy 'fsdp' is for several devices and there is one"):
        plan_ranks(1, 1, "fsdp", 1, {})


@pytest.mark.parametrize("context", ["sentence", "packed", "stream"])
def test_the_parts_of_a_step_are_its_targets_once(tmp_path, context):
    arguments = job(tmp_path)
    text = encode_text(arguments.folder / "text.txt", Vocabulary((*SPECIAL_TOKENS, *"abcd")))
    architecture = ArchitectureSettings(layers=1, heads=1, width=8, maximum_tokens=16, context=context)

    def steps(plan: RankPlan, accumulate: int) -> tuple[dict[int, list[int]], int]:
        settings = SETTINGS.model_copy(update={"epochs": 1.0, "batch_tokens": 40, "accumulate": accumulate})
        made: dict[int, list[int]] = {}
        parts = list(TrainingBatches(text, architecture, settings, 1, plan))
        for part in parts:
            made.setdefault(part.index, []).extend(part.batch.targets.tolist())
        return made, len(parts)

    whole, number = steps(RankPlan(), 1)
    for ranks in (1, 2, 3, 5):
        for accumulate in (1, 4):
            divided: dict[int, list[int]] = {}
            for rank in range(ranks):
                mine, parts = steps(RankPlan(rank, ranks, ranks, strategy="ddp"), accumulate)
                assert parts == number * accumulate
                for index, targets in mine.items():
                    divided.setdefault(index, []).extend(targets)
            assert {index: sorted(targets) for index, targets in divided.items()} == {
                index: sorted(targets) for index, targets in whole.items()
            }
