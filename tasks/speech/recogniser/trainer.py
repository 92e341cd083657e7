"""Training a recogniser with Lightning, by the same rules of ranks and checkpoints as the language model."""

import logging
import warnings

import torch
from lightning.pytorch import Trainer

from tasks.language_model.live_curve import Log, log_nothing
from tasks.language_model.training.checkpoints.state import rank_seed
from tasks.language_model.training.checkpoints.store import CheckpointStore
from tasks.language_model.training.ranks.group import RankGroup, lost_ranks_named
from tasks.language_model.training.ranks.plan import RankPlan
from tasks.language_model.training.ranks.strategy import trainer_options
from tasks.speech.recogniser.module import RecogniserTrainingModule
from tasks.speech.recogniser.network import RecogniserNetwork
from tasks.speech.recogniser.record import RecogniserRecord
from tasks.speech.recogniser.settings import RecogniserTraining
from tasks.speech.recogniser.speech_batches import SpeechBatches
from tasks.speech.recogniser.validation import ValidSpeech


def train(
    network: RecogniserNetwork,
    batches: SpeechBatches,
    settings: RecogniserTraining,
    *,
    valid: ValidSpeech | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    plan: RankPlan | None = None,
    store: CheckpointStore | None = None,
) -> RecogniserRecord:
    """Train ``network`` in place and say what was done; it is on the processor and in evaluation mode afterwards.

    With a ``store``, training goes on from its checkpoint, if there is one, and writes others on the way. All ranks of
    ``plan`` call this together. Raises ``ModelError`` where the loss is no longer a number, and ``SystemExit`` with
    143 after SIGTERM, when a checkpoint has been written.
    """
    from tqdm import tqdm

    plan = plan or RankPlan()
    network.train()
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    with (
        tqdm(
            total=batches.total_steps,
            desc="train-recogniser",
            unit="step",
            disable=None if plan.is_first else True,
            leave=False,
        ) as bar,
        torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", module="lightning")
        torch.manual_seed(rank_seed(settings.seed, plan.rank))
        module = RecogniserTrainingModule(
            network,
            settings,
            batches,
            valid,
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
            limit_val_batches=0,
            num_sanity_val_steps=0,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        try:
            with lost_ranks_named(plan):
                trainer.fit(module, train_dataloaders=batches)
        except SystemExit as ended:
            # Lightning exits with 1 after an interrupt; leave as any process that an interrupt ends.
            if isinstance(ended.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
    network.cpu().eval()
    return module.record
