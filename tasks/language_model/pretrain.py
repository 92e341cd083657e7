"""Train a language model on generic text: a word-level Transformer, or a model of another kind.

The result is a folder with weights (safetensors), the vocabulary and the architecture. To train it
further on private or obfuscated text, use 'palimpsest adapt'. To measure how well it predicts a
text, use 'palimpsest perplexity'.

Two other kinds are possible:

- --set kind=ngram estimates an n-gram model with modified Kneser-Ney smoothing. It takes seconds,
  and the result is an ARPA file.
- --set kind=causal_lm takes a causal language model of Hugging Face as it is. The folder says where
  the weights are. No text is needed.

examples:
  palimpsest pretrain --input generic.txt --valid held-out.txt --vocabulary vocabulary.txt --output models/pretrained
  palimpsest pretrain --set kind=ngram --input generic.txt --vocabulary vocabulary.txt --output models/ngram
  palimpsest pretrain --set kind=causal_lm --set causal_lm.model=gpt2 --output models/gpt2
"""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

from tasks.corpora.text_lines import refuse_empty
from tasks.errors import ParameterError
from tasks.language_model.settings import CausalStage, NgramStage, PretrainSettings
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.training.stage import NO_CURVE, Curve, TrainedFolder, TrainingCommand, usual_kind

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "train a language model on generic text"


class PretrainFiles(TrainedFolder):
    """Files that pretraining reads and writes."""

    input: Annotated[str | None, READ] = None
    """text to train on, one sentence a line; kind causal_lm reads none"""
    vocabulary: Annotated[str | None, READ] = None
    """vocabulary file of 'palimpsest vocabulary'; kind causal_lm has its own"""
    valid: Annotated[str | None, READ] = None
    """plain text to measure progress on; with patience, the result depends on it"""


def pretrain(
    settings: PretrainSettings, files: PretrainFiles, cell: Cell, resources: ResourceSettings, curve: Curve = NO_CURVE
) -> Report:
    """Initialise a model, train it and write it; or make a model of another kind.

    Raises ``ParameterError`` where a required text or vocabulary is missing.
    """
    if isinstance(settings, CausalStage):
        from tasks.language_model.causal_lm.stages import pretrain as pretrain_causal_lm

        return pretrain_causal_lm(settings.causal_lm, files, resources)
    text, vocabulary_path = files.input, files.vocabulary
    if text is None or vocabulary_path is None:
        raise ParameterError(f"a model of kind {settings.kind!r} learns from a text; give --input and --vocabulary")
    refuse_empty(text)
    if isinstance(settings, NgramStage):
        from tasks.language_model.ngram.stages import pretrain as pretrain_ngram

        return pretrain_ngram(settings.ngram, text, vocabulary_path, files.valid, files.output)
    from tasks.language_model.model_folder import check_replaceable
    from tasks.language_model.training import train_transformer
    from tasks.ready_made import ready_made

    found = ready_made("pretrain", settings, [text, vocabulary_path, files.valid])
    if found:
        check_replaceable(files.output)
        found.copy_to(files.output)
        print(f"pretrain: comes with palimpsest, trained on this text; model in {files.output}", file=sys.stderr)
        return Report(seed=settings.pretraining.seed).measure(**found.measured)

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.transformer.model import TransformerLanguageModel
        from tasks.language_model.vocabulary import read_vocabulary

        vocabulary = read_vocabulary(vocabulary_path)
        model = TransformerLanguageModel(settings.architecture, len(vocabulary))
        model.initialise(settings.pretraining.seed)
        if settings.architecture.languages:
            from tasks.language_model.encoded_text import encode_text
            from tasks.language_model.language_factors import TextLanguages

            words = encode_text(text, vocabulary)
            model.know(TextLanguages(settings.architecture.languages, words, vocabulary).factors(words))
        return model, vocabulary

    return train_transformer(
        "pretrain",
        settings.pretraining,
        build,
        (text, files.valid),
        files,
        resources,
        curve,
        languages=settings.transformer.languages,
    )


COMMAND = TrainingCommand(
    name="pretrain",
    stage=pretrain,
    settings=PretrainSettings,
    files=PretrainFiles,
    section="language_model",
    parts=("architecture", "pretraining", "kind", "{kind}"),
    defaults=partial(usual_kind, "transformer"),
)
