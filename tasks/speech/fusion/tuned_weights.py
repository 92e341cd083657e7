"""Weights of a fusion that are tuned on dev, and the file that carries them to other language models.

Language models are compared with one set of weights. Weights that each model tunes on few utterances differ by chance,
and the word error rates then differ by that chance too.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tasks.corpora.text_lines import write_lines
from tasks.errors import ParameterError
from tasks.settings.base import Settings
from tasks.settings.checks import check_settings
from tasks.speech.fusion.fused_model import FusedModel
from tasks.speech.fusion.shallow_fusion import FusionWeights
from tasks.speech.fusion.transcribed_speech import TranscribedSpeech, errors_of_units
from tasks.speech.fusion.tuning import at_edge_of_grid, tune
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.settings import InternalModel, TuneFusionSettings
from tasks.speech.search.beam_search import recognise
from tasks.speech.search.predictor_states import Hypothesis
from tasks.speech.word_errors.word_errors import count_errors


class TunedWeights(Settings):
    """Weights, with the recogniser, the internal model and the scale of scores that they belong to."""

    lm_weight: float = Field(ge=0)
    insertion_bonus: float
    internal_lm_weight: float = Field(default=0.0, ge=0)
    internal_lm: InternalModel
    length_normalisation: Literal["always", "final", "never"]
    recogniser_hash: str

    @property
    def fusion(self) -> FusionWeights:
        """The weights as the beam search takes them."""
        return FusionWeights(self.lm_weight, self.insertion_bonus, self.internal_lm_weight)

    def write(self, path: str | Path) -> None:
        """Write a private file of one line of JSON."""
        write_lines(path, [json.dumps(self.model_dump(mode="json"))], private=True)


def read_weights(path: str | Path, settings: TuneFusionSettings, recogniser: Recogniser) -> TunedWeights:
    """The weights of a file that ``TunedWeights.write`` wrote.

    Raises ``ParameterError`` where it is no such file, or belongs to another recogniser or other settings.
    """
    try:
        found: TunedWeights = check_settings(
            TunedWeights, json.loads(Path(path).read_bytes()), f"weights {str(path)!r}"
        )
    except (OSError, ValueError) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else "is no file of fusion weights"
        raise ParameterError(f"--weights: {str(path)!r} {reason}; 'palimpsest tune-fusion' writes one") from None
    for name, tuned, asked in (
        ("recogniser", found.recogniser_hash[:12], recogniser.hash[:12]),
        ("fusion.internal_lm", found.internal_lm, settings.fusion.internal_lm),
        ("search.length_normalisation", found.length_normalisation, settings.search.length_normalisation),
    ):
        if tuned != asked:
            raise ParameterError(
                f"--weights: {str(path)!r} was tuned with {name} {tuned!r}, and here it is {asked!r}; tune again by "
                "'palimpsest tune-fusion'"
            )
    return found


def tuned_weights(
    model: FusedModel, dev: TranscribedSpeech, settings: TuneFusionSettings, recogniser: Recogniser
) -> tuple[TunedWeights, dict[str, Any]]:
    """The weights with the fewest word errors on resamples of dev, and how they were found, for the report."""
    fusion, search = settings.fusion, settings.search
    names, frames = dev.encoded.utterance_ids, dev.frames
    references = [dev.references[name] for name in names]
    wide = search.model_copy(update={"nbest": search.beam_width})
    started = time.perf_counter()

    def decode(weights: FusionWeights) -> list[list[Hypothesis]]:
        return recognise(recogniser, frames, wide, model.fusion(weights))

    def errors_of(hypotheses: Sequence[tuple[int, tuple[int, ...]]]) -> list[int]:
        return errors_of_units(hypotheses, references, recogniser.units)

    counts = count_errors({name: dev.references[name] for name in names}, {})
    words = int(counts.words.sum())
    found = tune(fusion, decode, model.completed, errors_of, words, search.length_normalisation != "never")
    rates = {FusionWeights(*list(point.values())[:3]): point["wer"] for point in found.decoded}
    weights = TunedWeights(
        **asdict(found.weights),
        internal_lm=fusion.internal_lm,
        length_normalisation=search.length_normalisation,
        recogniser_hash=recogniser.hash,
    )
    return weights, {
        "wer": rates[found.weights],
        "wer_alone": rates[FusionWeights(0.0, 0.0)],
        "deviations": found.deviation,
        "utterances": len(names),
        "words": words,
        "at_edge_of_grid": at_edge_of_grid(fusion, found.best),
        "empty_references": counts.empty_references,
        "not_encoded": len(dev.references) - len(names),
        "grid": found.grid,
        "decoded": found.decoded,
        "tuning_seconds": time.perf_counter() - started,
    }
