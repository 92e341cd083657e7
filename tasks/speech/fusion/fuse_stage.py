"""The stage ``fuse``: weights, hypotheses for the test set, and their word errors."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasks.speech.audio.utterance_lines import given_languages, placed_languages
from tasks.speech.fusion.fusion_weights import NAMES, fusion_scorers, read_weights, tuned_weights, weighted
from tasks.speech.recogniser.encoded_speech import TranscribedSpeech, read_transcribed
from tasks.speech.recogniser.folder import load_recogniser
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest
from tasks.speech.rescoring.settings import FuseSettings
from tasks.speech.search.beam_search import Hypothesis, recognise
from tasks.speech.word_errors.error_counts_file import measure_errors
from tasks.speech.word_errors.references import measure_overlap
from tasks.speech.word_errors.word_error_rate_command import listing_path
from tasks.speech.word_errors.word_errors import EQUAL, align_words

if TYPE_CHECKING:
    from tasks.speech.fusion.fuse_command import FuseFiles


def fused_numbers(files: "FuseFiles", settings: FuseSettings) -> dict[str, Any]:
    """All numbers of the stage; writes the requested files."""
    recogniser = load_recogniser(files.recogniser)
    test = read_transcribed(files.test, files.test_manifest, recogniser)
    measured: dict[str, Any] = {
        **dict.fromkeys(NAMES),
        "internal_lm": settings.fusion.internal_lm if files.model else None,
        "recogniser_hash": recogniser.hash,
        "units_hash": recogniser.units.hash,
        "synthetic_speech": test.encoded.synthetic,
        "overlap": None,
    }
    # Cheap steps that can fail come before the search.
    groups = files.word_groups(test.references, files.test_manifest, settings.word_errors)
    if files.training_text:
        measured["overlap"] = measure_overlap(test.references.values(), files.training_text)
    fusion = None
    if files.model:
        given = read_weights(files.weights, settings, recogniser) if files.weights else None
        scorers, vocabulary = fusion_scorers(files.model, settings.fusion.internal_lm, recogniser)
        measured["model_vocabulary_hash"] = vocabulary
        if given is None:
            dev = read_transcribed(str(files.dev), str(files.dev_manifest), recogniser)
            given, measured["dev"] = tuned_weights(scorers, dev, settings, recogniser)
        measured |= given.by_name
        fusion = weighted(scorers, given.by_name)
    units = recogniser.units
    started = time.perf_counter()
    lists = recognise(recogniser, test.frames, settings.search, fusion)
    seconds = time.perf_counter() - started
    best = {name: hypotheses[0].units for name, hypotheses in zip(test.encoded.utterance_ids, lists, strict=True)}
    texts = {name: units.decode(ids) for name, ids in best.items()}
    if units.languages:
        recognised = {name: (texts[name], units.languages_of(ids)) for name, ids in best.items()}
        said = given_languages(files.test_manifest, units.languages)
        measured |= token_language_numbers(test.references, said, recognised, units.languages)
    errors = files.count(test.references, texts, groups, listing_path(files.output))
    measured |= measure_errors(errors, settings.word_errors)
    write_nbest(files.output, _as_nbest(test, lists, recogniser))
    audio_seconds = sum(test.encoded.seconds.values())
    return measured | {
        "audio_seconds": audio_seconds,
        "decode_seconds": seconds,
        "real_time_factor": seconds / audio_seconds if audio_seconds else None,
    }


def token_language_numbers(
    references: Mapping[str, str],
    given: Mapping[str, Sequence[str | None]],
    found: Mapping[str, tuple[str, Sequence[str]]],
    languages: Collection[str],
) -> dict[str, Any]:
    """Number of recognised words in one of the ``languages`` by the references, and the share whose units have that
    language.

    By utterance id, ``given``: the language of each white-space word of the reference; ``found``: the text and the
    language of each of its words.
    """
    known = [name for name in given if name in found]
    said = [placed_languages(references[name], given[name]) for name in known]
    heard = [found[name] for name in known]
    aligned = align_words([words for words, _ in said], [text.split() for text, _ in heard]).alignments if known else []
    pairs = [
        (expected[at], emitted[there])
        for chunks, (_, expected), (_, emitted) in zip(aligned, said, heard, strict=True)
        for chunk in chunks
        if chunk.type == EQUAL
        for at, there in enumerate(range(chunk.hyp_start_idx, chunk.hyp_end_idx), chunk.ref_start_idx)
        if expected[at] in languages
    ]
    right = sum(language == emitted for language, emitted in pairs)
    return {"token_languages": len(pairs), "token_languages_right": right / len(pairs) if pairs else None}


def _as_nbest(test: TranscribedSpeech, lists: list[list[Hypothesis]], recogniser: Recogniser) -> list[NbestList]:
    """The lists in the order of the encoded speech; units that spell the same words are merged, best score first."""
    found = []
    for name, hypotheses in zip(test.encoded.utterance_ids, lists, strict=True):
        texts: dict[str, float] = {}
        for hypothesis in hypotheses:
            texts.setdefault(recogniser.units.decode(hypothesis.units), hypothesis.score)
        entries = tuple(ScoredHypothesis(text, score) for text, score in texts.items())
        found.append(NbestList(name, test.references[name], entries))
    return found
