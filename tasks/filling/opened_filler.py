"""A filler and word counts, opened once for several fills, and the words of a fill."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.filling.fillers.filler_folder import is_causal
from tasks.filling.frequencies.word_frequencies import AllowedWords, GenericText, WordFrequencies
from tasks.filling.masked_sentence import Casing, small_words
from tasks.filling.settings import SHIPPED_FILLER, FillingMethod, LanguageAware
from tasks.torch_setup import set_up_torch

if TYPE_CHECKING:
    from tasks.filling.causal_lm.language_model import CausalLanguageModel
    from tasks.filling.masked_lm.candidate_words import CandidateWords
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
    from tasks.filling.place_languages import PlaceLanguages
    from tasks.filling.surrogates.class_words import ClassWords

Found = TypeVar("Found")


class OpenedFiller:
    """Models and words shared by several fills. Each part is made at its first use, in each worker."""

    def __init__(self, name: str | None, threads: int, word_counts: str | None = None) -> None:
        """``name``: hub name, folder or ``package:NAME/FOLDER``; ``word_counts``: a file."""
        self.name, self.threads, self._word_counts = name or "", threads, word_counts
        self._made: dict[tuple[object, ...], Any] = {}

    def __reduce__(self) -> tuple[type["OpenedFiller"], tuple[str, int, str | None]]:
        return OpenedFiller, (self.name, self.threads, self._word_counts)

    def _once(self, make: Callable[[], Found], *key: object) -> Found:
        if key not in self._made:
            self._made[key] = make()
        found: Found = self._made[key]
        return found

    @cached_property
    def is_causal(self) -> bool:
        """Whether the filler is a causal language model."""
        return is_causal(self.name)

    @cached_property
    def masked(self) -> "MaskedLanguageModel":
        """The masked language model. Raises ``ModelError`` if it cannot be used."""
        set_up_torch(self.threads)
        from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

        return MaskedLanguageModel.load(self.name)

    @cached_property
    def causal(self) -> "CausalLanguageModel":
        """The causal language model. Raises ``ModelError`` if it cannot be used."""
        set_up_torch(self.threads)
        from tasks.filling.causal_lm.language_model import CausalLanguageModel

        return CausalLanguageModel.load(self.name)

    def counts(self, method: FillingMethod) -> WordFrequencies | None:
        """The word counts for a method; the published ones if it needs some and none are given."""
        letters, languages = method.counts_masked_words, method.languages if isinstance(method, LanguageAware) else []
        if path := self._word_counts:
            return self._once(lambda: WordFrequencies.read(path, letters=letters), "counts", letters)
        if method.needs_word_counts or languages or (method.uses_filler and self.name == SHIPPED_FILLER):
            return self._once(
                lambda: WordFrequencies.published(languages, letters=letters), "published", letters, *languages
            )
        return None

    def generic_text(self, path: str, counts: WordFrequencies) -> GenericText:
        """The words of generic text that have counts."""
        return self._once(lambda: GenericText.read(read_lines(path), counts), "generic", path, id(counts))

    def candidates(self, counts: WordFrequencies | None) -> "CandidateWords":
        """The words that a masked language model can write."""
        from tasks.filling.masked_lm.candidate_words import candidate_words

        known = counts.folded if counts else None
        return self._once(
            lambda: candidate_words(self.masked.tokenizer, name=self.name, known_words=known), "candidates", id(counts)
        )

    def class_words(self, counts: WordFrequencies | None) -> "ClassWords":
        """Words by class. Raises ``ModelError`` if the tagger cannot be used."""
        from tasks.filling.surrogates.class_words import ClassWords
        from tasks.masking.settings import SpacyTagger
        from tasks.masking.taggers.entity_tagger import load_tagger

        def make() -> ClassWords:
            tagger = load_tagger(SpacyTagger(kind="spacy"), self.threads)
            return ClassWords(tagger, counts.usual_forms if counts else {})

        return self._once(make, "classes", id(counts))


@dataclass(frozen=True)
class Words:
    """The words of a fill: the never-masked words of the technique, and word frequencies."""

    opened: OpenedFiller
    allowed_words: AllowedWords
    counts: WordFrequencies | None

    @property
    def frequencies(self) -> WordFrequencies:
        """The word counts, for a method that needs them."""
        assert self.counts is not None, "the method says that it needs them"
        return self.counts

    @property
    def candidates(self) -> "CandidateWords":
        """The words that a masked language model can write."""
        return self.opened.candidates(self.counts)

    def casing(self, *, is_cased: bool) -> Casing:
        """The casing of a filler's words; ``is_cased``: whether the filler decides on capitals by its sentence."""
        small = small_words(self.counts.items()) if self.counts and is_cased else set()
        return Casing(self.counts.usual_forms if self.counts else {}, filler_is_cased=is_cased, small=small)

    def off_list(
        self, frequencies: WordFrequencies, languages: "PlaceLanguages | None"
    ) -> dict[str | None, WordFrequencies]:
        """Words not on the list of never-masked words, for each language if fills follow languages, else for ``None``.

        Raises ``CorpusError`` if a language has no word left.
        """
        words: dict[str | None, WordFrequencies] = {None: frequencies}
        if languages is not None:
            words = {each: frequencies.of_kind(languages, each) for each in languages.languages}
        left = {
            language: each.shared(self.allowed_words.off_list(each.words, language)) for language, each in words.items()
        }
        for language, each in left.items():
            if not each.words:
                raise CorpusError(
                    f"every word of the word counts{f' of language {language!r}' if language else ''} is on the list of"
                    " never-masked words: nothing to draw; give --word-counts of more text"
                )
        return left
