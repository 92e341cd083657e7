"""Which tagger belongs to which settings."""

from tasks.errors import ModelError
from tasks.masking.settings import TaggerSettings
from tasks.masking.taggers.tagger import Tagger


def load_tagger(settings: TaggerSettings, threads: int) -> Tagger:
    """Load the model that the settings name; ``ModelError`` where it cannot be found or used."""
    match settings.kind:
        case "spacy":
            from tasks.masking.taggers.spacy_tagger import SpacyModel

            return SpacyModel(settings)
        case "transformers":
            from tasks.masking.taggers.transformers_tagger import TransformersModel

            return TransformersModel(settings, threads)
        case "presidio":
            from tasks.masking.taggers.presidio_tagger import PresidioModel

            return PresidioModel(settings, threads)
        case "crf":
            from tasks.masking.taggers.crf_tagger import CrfModel

            return CrfModel(settings)
        case _:
            raise ModelError(f"no tagger of kind {settings.kind!r}")
