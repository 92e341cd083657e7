"""Training a language model with Lightning: pretraining and adaptation are the same loop on other text."""

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning.pytorch import Trainer

from tasks.errors import ParameterError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.live_curve import Log, log_nothing
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training.batches import TrainingBatches, ValidBatches
from tasks.language_model.training.checkpoints.state import rank_seed
from tasks.language_model.training.checkpoints.store import CheckpointStore
from tasks.language_model.training.compilation import compile_model
from tasks.language_model.training.module import LanguageModelTraining
from tasks.language_model.training.ranks.group import RankGroup, lost_ranks_named
from tasks.language_model.training.ranks.plan import RankPlan
from tasks.language_model.training.ranks.strategy import trainer_options
from tasks.language_model.training.record import TrainingRecord
from tasks.language_model.transformer.model import TransformerLanguageModel


def train(
    model: TransformerLanguageModel,
    text: EncodedText,
    settings: TrainingSettings,
    seed: int,
    *,
    valid: EncodedText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    title: str = "training",
    plan: RankPlan | None = None,
    store: CheckpointStore | None = None,
    compiled: bool = False,
) -> TrainingRecord:
    """Train ``model`` in place and say what was done.

    The order of the batches and dropout are functions of ``seed``. ``on_log`` is called every ``log_every_steps``
    steps and after each validation. With a ``store``, training goes on from its checkpoint, if there is one, and
    writes others on the way. All ranks of ``plan`` call this together, and all have the trained model in the end.

    Raises ``ModelError`` where the loss is no longer a number, ``ParameterError`` where early stopping has nothing to
    go by, and ``SystemExit`` with 143 after SIGTERM, when a checkpoint has been written.
    """
    if settings.patience and valid is None:
        raise ParameterError(
            f"patience is {settings.patience!r} and there is no valid text to stop by; give --valid, or patience 0"
        )
    from tqdm import tqdm

    plan = plan or RankPlan()
    batches = TrainingBatches(text, model.architecture, settings, seed, plan)
    model.set_dropout(settings.dropout)
    # A model that was read from a folder is in evaluation mode, and Lightning would leave it there: without dropout.
    model.train()
    # FSDP replaces the weights by parts of them.
    trained = copy.deepcopy(model) if plan.strategy == "fsdp" else model
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    total = batches.total_steps()
    with (
        tqdm(total=total, desc=title, unit="step", disable=None if plan.is_first else True, leave=False) as bar,
        torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        warnings.catch_warnings(),
        compile_model(trained, compiled),
    ):
        warnings.filterwarnings("ignore", module="lightning")
        torch.manual_seed(rank_seed(seed, plan.rank))
        module = LanguageModelTraining(
            trained,
            settings,
            batches,
            None if valid is None else ValidBatches(valid, model.architecture, plan),
            RankGroup(plan),
            store,
            on_log if plan.is_first else log_nothing,
            log_every_steps,
            bar.update,
        )
        trainer = Trainer(
            accelerator="auto",
            **trainer_options(plan),
            precision="bf16-mixed" if module.arithmetic == torch.bfloat16 else "32-true",
            # All epochs are one to Lightning: where each ends, and where to begin again, the batches say.
            max_epochs=1,
            accumulate_grad_batches=settings.accumulate,
            limit_val_batches=0,
            num_sanity_val_steps=0,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        with _interrupt_as_exception(), lost_ranks_named(plan):
            trainer.fit(module, train_dataloaders=batches)
    kept = module.best_weights or module.final_weights
    if kept is not None:
        model.load_state_dict(kept)
    model.cpu().eval()
    return module.record


@contextmanager
def _interrupt_as_exception() -> Iterator[None]:
    """Leave as any process that an interrupt ends: Lightning exits with 1."""
    try:
        yield
    except SystemExit as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
