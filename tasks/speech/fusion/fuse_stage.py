"""The stage ``fuse``: weights from dev, hypotheses for test, and what went wrong in them."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.language_model.causal_lm.next_words import WholeWords
from tasks.language_model.language_models import open_language_model
from tasks.settings.checks import as_plain
from tasks.speech.audio.utterance_lines import given_languages, placed_languages
from tasks.speech.fusion.completed_words import CompletedWords
from tasks.speech.fusion.prefix_score import (
    PrefixScore,
    SpelledUnits,
    ZeroEncoder,
    sentence_log_probabilities,
    unit_bigram,
)
from tasks.speech.fusion.shallow_fusion import FusionWeights, ShallowFusion
from tasks.speech.fusion.subword_fusion import SubwordScore, is_of_units
from tasks.speech.fusion.tuning import TuningResult, at_edge_of_grid, tune
from tasks.speech.fusion.word_lookahead import WordLookahead
from tasks.speech.recogniser.encoded_speech import EncodedSpeech, read_encoded
from tasks.speech.recogniser.folder import load_recogniser
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.recogniser.units import Units
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, check_vocabulary, write_nbest
from tasks.speech.rescoring.settings import FuseSettings, FusionSettings, SearchSettings
from tasks.speech.search.beam_search import recognise
from tasks.speech.search.predictor_states import Hypothesis
from tasks.speech.word_errors.error_counts_file import measure_errors
from tasks.speech.word_errors.references import check_overlap, measure_overlap, read_references
from tasks.speech.word_errors.word_error_rate_command import listing_beside
from tasks.speech.word_errors.word_errors import EQUAL, align_words, count_errors

if TYPE_CHECKING:
    from tasks.speech.fusion.fuse_command import FuseFiles


@dataclass(frozen=True)
class _Speech:
    """Encoded speech with what was said."""

    encoded: EncodedSpeech
    references: Mapping[str, str]

    @property
    def frames(self) -> list[Tensor]:
        return [self.encoded.frames(name) for name in self.encoded.utterance_ids]


def fused_numbers(files: "FuseFiles", settings: FuseSettings) -> dict[str, Any]:
    """All numbers of the stage; writes the files that were asked for."""
    recogniser = load_recogniser(files.recogniser)
    test = _read(files.test, files.test_manifest, recogniser)
    measured: dict[str, Any] = {
        "lm_weight": None,
        "insertion_bonus": None,
        "internal_lm": settings.fusion.internal_lm if files.model else None,
        "internal_lm_weight": None,
        "recogniser_hash": recogniser.hash,
        "units_hash": recogniser.units.hash,
        "synthetic_speech": test.encoded.synthetic,
        "overlap": None,
    }
    # The cheap things that can fail come before the search.
    groups = files.word_groups(test.references, files.test_manifest, settings.word_errors)
    if files.training_text:
        measured["overlap"] = measure_overlap(test.references.values(), files.training_text)
        check_overlap(measured["overlap"], settings.fusion)
    fusion = None
    if files.model:
        parts = _Parts(files, settings.fusion, recogniser)
        measured["model_vocabulary_hash"] = parts.vocabulary_hash
        found, tuned = parts.tuned(_read(str(files.dev), str(files.dev_manifest), recogniser), settings.search)
        measured |= as_plain(tuned)
        fusion = parts.fusion(found.weights)
    units = recogniser.units
    started = time.perf_counter()
    lists = recognise(recogniser, test.frames, settings.search, fusion)
    seconds = time.perf_counter() - started
    best = {name: hypotheses[0].units for name, hypotheses in zip(test.encoded.utterance_ids, lists, strict=True)}
    texts = {name: units.decode(ids) for name, ids in best.items()}
    if units.languages:
        told = {name: (texts[name], units.languages_of(ids)) for name, ids in best.items()}
        given = given_languages(files.test_manifest, units.languages)
        measured |= token_language_numbers(test.references, given, told, units.languages)
    errors = files.count(test.references, texts, groups, listing_beside(files.output))
    measured |= measure_errors(errors, settings.word_errors)
    write_nbest(files.output, _as_nbest(test, lists, recogniser, measured.get("model_vocabulary_hash")))
    audio_seconds = sum(test.encoded.seconds.values())
    return measured | {
        "audio_seconds": audio_seconds,
        "decode_seconds": seconds,
        "real_time_factor": seconds / audio_seconds if audio_seconds else None,
    }


def _read(encoded: str, manifest: str, recogniser: Recogniser) -> _Speech:
    """Encoded speech and its references; ``SpeechError`` where they are not of the same utterances."""
    speech, references = read_encoded(encoded), read_references(manifest)
    speech.check_recogniser(recogniser.hash)
    foreign = [name for name in speech.utterance_ids if name not in references]
    if foreign:
        raise SpeechError(
            f"{len(foreign)} utterances of {encoded!r} have no reference in {manifest!r}, such as {foreign[0]!r}; give "
            "the manifest that was encoded"
        )
    return _Speech(speech, references)


class _Parts:
    """The language models that are fused."""

    def __init__(self, files: "FuseFiles", settings: FusionSettings, recogniser: Recogniser) -> None:
        self.recogniser, self.settings = recogniser, settings
        self.units = SpelledUnits(recogniser.units)
        self.language_model, self.vocabulary_hash = self._score(str(files.model))
        check_vocabulary(self.vocabulary_hash, files.vocabulary_hash, str(files.model))
        self.internal: PrefixScore | None = None
        match settings.internal_lm:
            case "density_ratio":
                self.internal, _ = self._score(str(files.source))
            case "lodr":
                lines = list(read_lines(str(files.source)))
                self.internal = unit_bigram(recogniser.units.encode_all(lines), recogniser.units.blank)
            case "zero_encoder":
                self.internal = ZeroEncoder()

    def _score(self, folder: str) -> tuple[PrefixScore, str]:
        """A language model of whatever kind as part of the search, and the hash of its vocabulary."""
        language_model = open_language_model(folder)
        words, vocabulary = language_model.next_words(), language_model.vocabulary_hash
        if isinstance(words, WholeWords):
            return CompletedWords(words, self.units), vocabulary
        if is_of_units(words.vocabulary):
            return SubwordScore(words, self.recogniser.units.pieces), vocabulary
        return WordLookahead(words, self.units, self.settings.unknown_log_share), vocabulary

    def fusion(self, weights: FusionWeights) -> ShallowFusion:
        return ShallowFusion(weights, self.units, self.language_model, self.internal)

    def tuned(self, dev: _Speech, search: SearchSettings) -> tuple[TuningResult, dict[str, Any]]:
        """The weights, and what the report says of how they were found."""
        units = self.recogniser.units
        names, frames = dev.encoded.utterance_ids, dev.frames
        wide = search.model_copy(update={"nbest": search.beam_width})
        started = time.perf_counter()

        def decode(weights: FusionWeights) -> list[list[Hypothesis]]:
            return recognise(self.recogniser, frames, wide, self.fusion(weights))

        def errors_of(hypotheses: Sequence[tuple[int, tuple[int, ...]]]) -> list[int]:
            return _word_errors(hypotheses, [dev.references[name] for name in names], units)

        counts = count_errors({name: dev.references[name] for name in names}, {})
        words = int(counts.words.sum())
        normalised = search.length_normalisation != "never"
        found = tune(self.settings, decode, self._completed, errors_of, words, normalised)
        rates = {tuple(point.values())[:3]: point["wer"] for point in found.decoded}
        chosen = found.weights
        return found, {
            "lm_weight": chosen.lm_weight,
            "insertion_bonus": chosen.insertion_bonus,
            "internal_lm_weight": chosen.internal_lm_weight,
            "dev": {
                "wer": rates[chosen.lm_weight, chosen.insertion_bonus, chosen.internal_lm_weight],
                "wer_alone": rates[0.0, 0.0, 0.0],
                "utterances": len(names),
                "words": words,
                "at_edge_of_grid": at_edge_of_grid(self.settings, chosen),
                "empty_references": counts.empty_references,
                "not_encoded": len(dev.references) - len(names),
                "grid": found.grid,
                "decoded": found.decoded,
                "tuning_seconds": time.perf_counter() - started,
            },
        }

    def _completed(self, lists: list[list[Hypothesis]], weights: FusionWeights) -> list[list[Hypothesis]]:
        """Fill in what the search left out because its weight was 0."""
        flat = [found for hypotheses in lists for found in hypotheses]
        model, blank = self.recogniser.model, self.recogniser.units.blank
        sequences = [found.units for found in flat]
        changes: dict[str, np.ndarray] = {}
        if not weights.lm_weight:
            changes["language_model"] = sentence_log_probabilities(self.language_model, sequences, model, blank)
        if self.internal is not None and not weights.internal_lm_weight:
            changes["internal"] = sentence_log_probabilities(self.internal, sequences, model, blank)
        if not changes:
            return lists
        whole = iter(
            replace(found, **{name: float(values[index]) for name, values in changes.items()})  # type: ignore[arg-type]
            for index, found in enumerate(flat)
        )
        return [[next(whole) for _ in hypotheses] for hypotheses in lists]


def _word_errors(
    hypotheses: Sequence[tuple[int, tuple[int, ...]]], references: Sequence[str], units: Units
) -> list[int]:
    """Word errors of hypotheses, each with the index of its reference; one for each word where there is no reference
    to speak of is left to the rates: they leave the utterance out, and so does this."""
    names = [f"{place:09d}" for place in range(len(hypotheses))]
    said = {name: references[index] for name, (index, _) in zip(names, hypotheses, strict=True)}
    heard = {name: units.decode(found) for name, (_, found) in zip(names, hypotheses, strict=True)}
    if not names:
        return []
    counts = count_errors(said, heard)
    of_name = dict(zip(counts.utterance_ids, counts.errors.tolist(), strict=True))
    return [of_name.get(name, 0) for name in names]


def token_language_numbers(
    references: Mapping[str, str],
    given: Mapping[str, Sequence[str | None]],
    found: Mapping[str, tuple[str, Sequence[str]]],
    languages: Collection[str],
) -> dict[str, Any]:
    """Of the recognised words that are said to be of one of the ``languages``: how many there are, and the share with
    units of it.

    By utterance id, ``given``: what is said of the white-space words of the references; ``found``: the text and the
    language of each of its words.
    """
    known = [name for name in given if name in found]
    said = [placed_languages(references[name], given[name]) for name in known]
    heard = [found[name] for name in known]
    alignments = align_words([words for words, _ in said], [text.split() for text, _ in heard])
    pairs = [
        (expected[at], told[there])
        for stretches, (_, expected), (_, told) in zip(alignments, said, heard, strict=True)
        for stretch in stretches
        if stretch.kind == EQUAL
        for at, there in zip(stretch.reference, stretch.hypothesis, strict=True)
        if expected[at] in languages
    ]
    right = sum(language == told for language, told in pairs)
    return {"token_languages": len(pairs), "token_languages_right": right / len(pairs) if pairs else None}


def _as_nbest(
    test: _Speech, lists: list[list[Hypothesis]], recogniser: Recogniser, vocabulary: str | None
) -> list[NbestList]:
    """The lists in the order of the encoded speech; of units that spell the same words the best score stays."""
    found = []
    for name, hypotheses in zip(test.encoded.utterance_ids, lists, strict=True):
        texts: dict[str, float] = {}
        for hypothesis in hypotheses:
            texts.setdefault(recogniser.units.decode(hypothesis.units), hypothesis.score)
        entries = tuple(ScoredHypothesis(text, score) for text, score in texts.items())
        found.append(NbestList(name, test.references[name], entries, vocabulary))
    return found
