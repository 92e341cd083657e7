"""Running a training with Lightning: the trainer's options, the bar, the generators, and how it ends."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from lightning.pytorch import Trainer

from tasks.training.checkpoints import CheckpointStore
from tasks.training.ranks.group import RankGroup, lost_ranks_named
from tasks.training.ranks.plan import RankPlan
from tasks.training.resumable_training import ResumableTraining, TrainingRun
from tasks.training.stage import Log, log_nothing
from tasks.training.tensors import rank_seed

Training = TypeVar("Training", bound=ResumableTraining)
_TIMEOUT = timedelta(minutes=30)
"""Longest time that a rank waits for another one that is alive."""


def fit(
    make: Callable[[TrainingRun], Training],
    total_steps: int,
    *,
    title: str,
    seed: int,
    on_log: Log,
    log_every_steps: int,
    plan: RankPlan,
    store: CheckpointStore | None,
    accumulate: int = 1,
) -> Training:
    """Make a training, run it to its end and give it back; the model stays where it was trained.

    Dropout is a function of ``seed``, and no generator of the caller's is moved. ``accumulate`` is the number of
    batches that make a step. All ranks of ``plan`` call this together. Raises ``ModelError`` where the loss is no
    longer a number, and ``SystemExit`` with 143 after SIGTERM, when a checkpoint has been written.
    """
    from tqdm import tqdm

    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    with (
        tqdm(total=total_steps, desc=title, unit="step", disable=None if plan.is_first else True, leave=False) as bar,
        torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", module="lightning")
        torch.manual_seed(rank_seed(seed, plan.rank))
        run = TrainingRun(
            group=RankGroup(plan),
            total_steps=total_steps,
            store=store,
            on_log=on_log if plan.is_first else log_nothing,
            log_every_steps=log_every_steps,
            on_progress=bar.update,
        )
        training = make(run)
        trainer = Trainer(
            accelerator="auto",
            **_trainer_options(plan),
            precision="bf16-mixed" if training.arithmetic == torch.bfloat16 else "32-true",
            # All epochs are one to Lightning: where each ends, and where to begin again, the batches say.
            max_epochs=1,
            accumulate_grad_batches=accumulate,
            limit_val_batches=0,
            num_sanity_val_steps=0,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        with _interrupt_as_exception(), lost_ranks_named(plan):
            trainer.fit(training, train_dataloaders=training.batches)
    return training


@contextmanager
def _interrupt_as_exception() -> Iterator[None]:
    """Leave as any process that an interrupt ends: Lightning exits with 1."""
    try:
        yield
    except SystemExit as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def _trainer_options(plan: RankPlan) -> dict[str, Any]:
    """Arguments of Lightning's ``Trainer`` for a plan."""
    if plan.strategy == "single":
        return {"devices": 1}
    from lightning.pytorch.plugins.environments import TorchElasticEnvironment
    from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy

    strategy: DDPStrategy | ModelParallelStrategy
    if plan.strategy == "ddp":
        strategy = DDPStrategy(timeout=_TIMEOUT)
    else:
        # Lightning's own "fsdp" refuses a processor; this one leaves the division to configure_model.
        strategy = ModelParallelStrategy(data_parallel_size=plan.world_size, tensor_parallel_size=1, timeout=_TIMEOUT)
    return {
        "devices": plan.devices,
        "num_nodes": plan.nodes,
        "strategy": strategy,
        "plugins": [TorchElasticEnvironment()],
    }
