"""Find the weights of fusion on dev, once for all language models that are compared.

The command decodes dev with one language model at several weights. It writes the weights with the
fewest word errors to a small private file, for 'palimpsest fuse --weights FILE'. If each model has
its own weights, they differ by chance, and so do the word error rates.

example:
  palimpsest tune-fusion --recogniser models/recogniser --dev dev.safetensors --dev-manifest dev.jsonl
      --model models/oracle --output weights.json
"""

import json
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.corpora.text_lines import write_lines
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import TuneFusionSettings

SUMMARY = "find the weights of fusion for all language models of a comparison"


class TuneFusionFiles(StageFiles):
    """Encoded speech with its references, the models, and where the weights go."""

    recogniser: Annotated[str, READ]
    """recogniser that encoded the speech"""
    model: Annotated[str, READ_MODEL]
    """language model to find the weights with: folder of any kind, package:NAME/FOLDER or name on the hub"""
    dev: Annotated[str, READ]
    """encoded speech to find the weights on"""
    dev_manifest: Annotated[str, READ]
    """manifest or n-best lists with the references of --dev"""
    output: Annotated[str, WRITE]
    """file for the weights (JSON), private"""


def tune_fusion(
    settings: TuneFusionSettings, files: TuneFusionFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Decode dev at several weights and write the best ones."""
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    from tasks.speech.fusion.fusion_weights import fusion_scorers, tuned_weights
    from tasks.speech.recogniser.encoded_speech import read_transcribed
    from tasks.speech.recogniser.recogniser import load_recogniser
    from tasks.speech.word_errors.error_report import dev_warnings

    recogniser = load_recogniser(files.recogniser)
    dev = read_transcribed(files.dev, files.dev_manifest, recogniser)
    scorers = fusion_scorers(files.model, settings.fusion.internal_lm, recogniser)
    weights, numbers = tuned_weights(scorers, dev, settings, recogniser)
    found = weights.model_dump(mode="json")
    write_lines(files.output, [json.dumps(found)], private=True)
    shown = (
        f"LM weight {weights.lm_weight:g}, insertion bonus {weights.insertion_bonus:g}: word error rate on dev "
        f"{numbers['wer']:.2%}, without a language model {numbers['wer_alone']:.2%}"
    )
    return Report(found | {"dev": numbers}, dev_warnings(numbers), shown=shown)


SECTIONS = {"search": "speech.search", "fusion": "speech.fusion"}
COMMAND = StageCommand(
    "tune-fusion", tune_fusion, TuneFusionSettings, TuneFusionFiles, SECTIONS, labels=("dataset",), seed=None
)
