"""A prepared fill: method, words and learned state, ready to fill its corpus and other lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.text_lines import read_corpus, read_lines
from tasks.corpora.words import fold
from tasks.errors import ParameterError
from tasks.filling.fill_files import CorpusFiles, FillFiles
from tasks.filling.filled_lines import FilledPart, Kinds, Part, fill_part
from tasks.filling.fillers.filler_folder import is_causal, located
from tasks.filling.fillers.settings import misfit
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies, domain_frequencies
from tasks.filling.marker_randomness import MarkerRandomness, fill_secret
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.opened_filler import OpenedFiller, Words
from tasks.filling.settings import KINDS, SHIPPED_FILLER, CountingMethod, FillingMethod, LanguageAware
from tasks.masking.settings import TechniqueSettings
from tasks.model_source import unreachable
from tasks.parts import Advance, Work, nothing
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell

if TYPE_CHECKING:
    from tasks.filling.masked_lm.weighing import PreparedWeighing
    from tasks.filling.place_languages import PlaceLanguages


@dataclass(frozen=True)
class Learned:
    """State that a method learns before the first line."""

    frequencies: WordFrequencies | None = None
    """Word frequencies, if they differ from the word counts."""
    weighing: "PreparedWeighing | None" = None
    """Weights for a masked language model's scores."""
    word_factors: dict[str, float] | None = None
    """From folded words to terms for a causal language model's scores, in nats."""
    languages: "PlaceLanguages | None" = None
    """Languages of places and words, if fills follow them."""
    measured: dict[str, Any] = field(default_factory=dict)
    """Figures for the report."""


@dataclass(frozen=True)
class MaskedLines:
    """Masked lines with their masked spans."""

    lines: list[str]
    spans: list[list[MaskedSpan]]


@dataclass(frozen=True)
class PlantedLines(MaskedLines):
    """Lines of an attack whose masked words are counted with the corpus's, if the method counts words. The attack
    releases only figures. So these counts have separate noise, are never stored, and use no budget of the corpus."""

    documents: list[str]
    """Document of each line."""
    corpus_documents: str | None
    """File with the document of each line of the corpus."""


@dataclass(frozen=True)
class Corpus:
    """Inputs that a fill learns from."""

    files: FillFiles
    """Files that the method reads."""
    cell: Cell
    release: ReleaseSettings
    """Limits of releases of the corpus, for noisy counts."""
    planted: PlantedLines | None = None
    """Lines of an attack, counted with the corpus."""

    @cached_property
    def masked(self) -> Sequence[str]:
        """All lines of the masked text, for learning before the first line is filled."""
        return list(read_lines(self.files.input))

    def lines(self) -> Iterable[str]:
        """The lines of the masked text, read during filling unless ``masked`` has them."""
        return self.__dict__.get("masked") or read_lines(self.files.input)


@dataclass(frozen=True)
class PreparedFill:
    """Everything that workers need to fill lines. Each worker builds its own filler from it."""

    method: FillingMethod
    words: Words
    learned: Learned
    seed: int
    secret: bytes
    """Secret of the draws, empty unless they follow the masked words. Computed once for all workers: a sidecar that is
    replaced meanwhile would give different draws."""

    @property
    def randomness(self) -> MarkerRandomness:
        """Randomness of the filler; by the seed alone with matched classes, since only surrogates follow originals."""
        return MarkerRandomness(self.seed, b"" if self.method.matches_classes else self.secret)

    @property
    def kinds(self) -> Kinds | None:
        """Languages, or classes and forms, if fills follow them."""
        if self.method.matches_classes:
            return self.words.opened.class_words(self.words.counts)
        return self.learned.languages

    def work(self) -> Work:
        """The function that fills a part, on one device."""
        filler, casing = self.method.build(self)
        if self.method.matches_classes:
            from tasks.filling.surrogates.class_check import checked

            filler = checked(self, filler, casing)
        merge_markers, kinds = self.method.merges_markers, self.kinds

        def fill(part: Part, advance: Advance) -> FilledPart:
            return fill_part(part, filler, casing, merge_markers=merge_markers, kinds=kinds, advance=advance)

        return fill

    def fill(self, part: Part) -> list[str]:
        """Fills of lines outside the corpus, such as made-up sentences of a page or canaries of an audit."""
        lines: list[str] = self.work()(part, nothing).lines
        return lines


def prepare_fill(method: FillingMethod, corpus: Corpus, opened: OpenedFiller) -> PreparedFill:
    """Read the inputs of a fill, and learn from the corpus.

    Raises ``ParameterError`` if the method does not run with the kind of filler, and ``CorpusError`` if a file cannot
    be read.
    """
    files = corpus.files
    if files.filler:
        _refuse_misfit(method, files.filler)
    words = Words(opened, AllowedWords.read(files.allowed_words), opened.counts(method))
    secret = fill_secret(files.sidecar) if files.sidecar and method.follows_originals else b""
    seed = 1 if corpus.cell.seed is None else corpus.cell.seed
    return PreparedFill(method, words, _learned(method, words, corpus), seed, secret)


def _learned(method: FillingMethod, words: Words, corpus: Corpus) -> Learned:
    """Learn from the corpus: languages of places, word frequencies, and terms of scores."""
    found = Learned()
    if isinstance(method, LanguageAware) and method.languages:
        from tasks.filling.place_languages import PlaceLanguages

        found = replace(found, languages=PlaceLanguages(method.languages, corpus.masked))
    if not isinstance(method, CountingMethod):
        return found
    public, wanted, measured = words.frequencies, words.frequencies, dict[str, Any]()
    if method.has_domain_prior:
        generic = words.opened.generic_text(str(corpus.files.generic_text), public)
        domain = domain_frequencies(public, corpus.masked, generic)
        wanted, measured["domain_frequencies"] = domain.frequencies, domain.measured
    if method.counts is not None:
        from tasks.filling.frequencies.counted_frequencies import count_masked_words

        counted = count_masked_words(words, corpus, wanted, method.counts)
        wanted, measured["counted_frequencies"] = counted.frequencies, counted.measured
    found = replace(found, frequencies=wanted, measured=measured)
    if not isinstance(method, LogLinear):
        return found
    weights = method.weights.values()
    if not words.opened.is_causal:
        from tasks.filling.masked_lm.weighing import prepared_weighing

        weighing = prepared_weighing(
            words.opened.masked,
            words.candidates,
            words.allowed_words,
            wanted,
            method,
            _tuning_lines(corpus.files) if weights["average"] else None,
            corpus.masked if method.counts_masked_words else None,
            public=public,
        )
        measured["log_linear"] = weighing.measured
        return replace(found, weighing=weighing)
    measured["log_linear"] = {"weights": weights}
    logs = [np.log(of / of.sum()) for of in (wanted.counts, public.counts)]
    factors = weights["frequency"] * logs[0] - weights["average"] * logs[1]
    # Among the spellings of a word, the first and most frequent one counts.
    of_word = dict(zip(map(fold, reversed(public.words)), reversed(factors.tolist()), strict=True))
    return replace(found, word_factors=of_word)


def _tuning_lines(files: FillFiles) -> Sequence[str] | None:
    """Generic text for the filler's mean probabilities; ``None`` for the shipped filler, whose averages ship too."""
    if files.tuning_text:
        return read_corpus(files.tuning_text)
    if files.filler != SHIPPED_FILLER:
        raise ParameterError(
            "method 'log_linear' needs the filler's mean probabilities on generic text; give --generic with its "
            "folder, leave --filler out, or set weights.average to 0 in params.yaml"
        )
    return None


def _refuse_misfit(method: FillingMethod, filler: str) -> None:
    """Raise ``ParameterError`` if a method does not run with the kind of a filler, ``ModelError`` if it is missing."""
    kind = "causal_lm" if is_causal(filler) else "masked_lm"
    found = misfit(method, kind)
    if found is None:
        return
    if kind == "masked_lm":
        # A missing filler has no kind.
        source = located(filler)
        from transformers import PretrainedConfig

        try:
            PretrainedConfig.get_config_dict(source)
        except Exception as error:
            raise unreachable(filler, error) from error
    example = {"masked": "bert-base-uncased", "causal": "gpt2"}[found.needs]
    raise ParameterError(
        f"{found.what} needs a {found.needs} language model, and filler {filler!r} is a {KINDS[kind]} one; "
        f"{found.remedy}, or take a filler such as {example!r}"
    )


def mask_lines(
    technique: TechniqueSettings, lines: Sequence[str], word_counts: str | None, threads: int
) -> MaskedLines:
    """Mask lines by a technique, equal lines once."""
    from tasks.masking.technique import MaskingTally

    loaded, markers, different = technique.build(word_counts, threads), technique.markers, list(dict.fromkeys(lines))
    masked = loaded.mask(different, markers.style, MaskingTally(), with_spans=True, merge=markers.merge)
    found = dict(zip(different, masked, strict=True))
    return MaskedLines([found[line][0] for line in lines], [list(found[line][1]) for line in lines])


def prepare_like_corpus(
    method: FillingMethod,
    masked: Path,
    files: CorpusFiles,
    cell: Cell,
    opened: OpenedFiller,
    planted: PlantedLines | None = None,
) -> PreparedFill:
    """The fill of the corpus in the folder ``masked``, for other lines.

    A method that counts masked words counts the corpus and ``planted``. Without ``planted`` it uses ``prior: domain``,
    and the sidecar is not read.
    """
    counts = method.counts_masked_words and planted is not None
    if method.counts_masked_words and not counts:
        method = method.model_copy(update={"prior": "domain", "counts": None})
    given = FillFiles(
        input=str(masked / "text.txt"),
        output="-",
        filler=files.filler if method.uses_filler else None,
        allowed_words=str(masked / "allowed_words.txt"),
        word_counts=files.word_counts,
        generic=files.generic,
        sidecar=str(masked / "sidecar.jsonl") if counts else None,
        documents=planted.corpus_documents if planted else None,
    )
    corpus = Corpus(given.read_by(method), cell, ReleaseSettings(), planted if counts else None)
    return prepare_fill(method, corpus, opened)
