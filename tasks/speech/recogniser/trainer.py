"""Training a recogniser with Lightning, by the same rules of ranks and checkpoints as the language model."""

from tasks.speech.recogniser.module import RecogniserTrainingModule
from tasks.speech.recogniser.network import RecogniserNetwork
from tasks.speech.recogniser.record import RecogniserRecord
from tasks.speech.recogniser.settings import RecogniserTraining
from tasks.speech.recogniser.speech_batches import SpeechBatches
from tasks.speech.recogniser.validation import ValidSpeech
from tasks.training.checkpoints.store import CheckpointStore
from tasks.training.fitting import fit
from tasks.training.live_curve import Log, log_nothing
from tasks.training.ranks.plan import RankPlan


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
    network.train()
    training = fit(
        lambda run: RecogniserTrainingModule(network, settings, batches, valid, run),
        batches.total_steps,
        title="train-recogniser",
        seed=settings.seed,
        on_log=on_log,
        log_every_steps=log_every_steps,
        plan=plan or RankPlan(),
        store=store,
    )
    network.cpu().eval()
    return training.record
