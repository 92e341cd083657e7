"""Training a language model with Lightning: pretraining and adaptation are the same loop on other text."""

import copy

from tasks.errors import ParameterError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training.batches import TrainingBatches, ValidBatches
from tasks.language_model.training.compilation import compile_model
from tasks.language_model.training.module import LanguageModelTraining
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.training.checkpoints.store import CheckpointStore
from tasks.training.fitting import fit
from tasks.training.live_curve import Log, log_nothing
from tasks.training.ranks.plan import RankPlan
from tasks.training.record import TrainingRecord


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
    plan = plan or RankPlan()
    batches = TrainingBatches(text, model.architecture, settings, seed, plan)
    valid_batches = None if valid is None else ValidBatches(valid, model.architecture, plan)
    model.set_dropout(settings.dropout)
    # A model that was read from a folder is in evaluation mode, and Lightning would leave it there: without dropout.
    model.train()
    # FSDP replaces the weights by parts of them.
    trained = copy.deepcopy(model) if plan.strategy == "fsdp" else model
    with compile_model(trained, compiled):
        training = fit(
            lambda run: LanguageModelTraining(trained, settings, batches, valid_batches, run),
            batches.total_steps(),
            title=title,
            seed=seed,
            on_log=on_log,
            log_every_steps=log_every_steps,
            plan=plan,
            store=store,
            accumulate=settings.accumulate,
        )
    kept = training.best_weights or training.final_weights
    if kept is not None:
        model.load_state_dict(kept)
    model.cpu().eval()
    return training.record
