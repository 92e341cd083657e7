"""Processes that train or score together: who they are, the cause of a failure, and equal scores."""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing

from tasks.errors import ParameterError, ResourceError, StageError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer import scoring
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.training.ranks import RankPlan, plan_ranks, start_ranks

TWO = RankPlan(world_size=2, devices=2, strategy="ddp", to_be_started=True)


def _fail(endings: dict[str, str]) -> None:
    distributed.init_process_group("gloo")
    what = endings[os.environ["RANK"]]
    if what == "lost":
        distributed.barrier()  # fails once the other process has ended
    if what == "defect":
        raise KeyError("private words")
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("endings", "kind", "message"),
    [
        ({"0": "lost", "1": "defect"}, StageError, "rank 1 of 2 ended with exit status 70; its own message"),
        ({"0": "lost", "1": "killed"}, ResourceError, "rank 1 of 2 was ended by SIGKILL"),
    ],
)
def test_the_cause_is_reported_and_not_its_consequences(endings, kind, message, capfd):
    started, handlers = time.monotonic(), [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(kind, match=message):
        start_ranks(partial(_fail, endings), TWO)
    assert time.monotonic() - started < 60
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert "private words" not in capfd.readouterr().err


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


def _score(rank: int, address: str, output: str, model: TransformerLanguageModel, text: EncodedText) -> None:
    torch.set_num_threads(1)
    scoring.BATCH_TOKENS = 16
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        scores = scoring.score_targets(model, text)
        np.save(f"{output}{rank}.npy", np.stack([scores.log_probability, scores.marker_log_probability]))
    finally:
        distributed.destroy_process_group()


def test_two_processes_score_as_one(tmp_path, encoded, small_model, monkeypatch):
    monkeypatch.setattr(scoring, "BATCH_TOKENS", 16)
    model = small_model(seed=5)
    text = encoded(["a b c", "d unheard", "a b c d a b c d a b c d", "c", "d a", "b b b b b b"])
    alone = scoring.score_targets(model, text)
    output = str(tmp_path / "rank")
    multiprocessing.spawn(_score, (f"file://{tmp_path / 'meeting'}", output, model, text), nprocs=2)
    for rank in (0, 1):
        found = np.load(f"{output}{rank}.npy")
        assert np.array_equal(found[0], alone.log_probability)
        assert np.array_equal(found[1], alone.marker_log_probability)
    assert (alone.log_probability < 0).all()
