"""Putting the check of classes together: tagger, words by class, and what wraps a filler's choice and the filler."""

from collections.abc import Sequence

from tasks.filling.casing import Casing, usual_forms
from tasks.filling.choices.choice import Choice
from tasks.filling.filled_corpus import Filler
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.settings import ClassCheck
from tasks.filling.surrogates.class_check import ChoiceOfClass, ClassCheckedFiller, WordsOfClassByFrequency
from tasks.filling.surrogates.class_check_words import ClassWords
from tasks.filling.surrogates.surrogate import SurrogateFiller
from tasks.filling.surrogates.surrogate_values import SurrogateValues
from tasks.masking.taggers.tagger_kinds import load_tagger


class ClassChecks:
    """What one filler needs so that its fills have the class of their markers."""

    def __init__(
        self,
        settings: ClassCheck,
        threads: int,
        randomness: MarkerRandomness,
        kept: KeptWords,
        frequencies: WordFrequencies | None,
        keep_clear: bool,
    ) -> None:
        """Loads the tagger; ``ModelError`` where it cannot be found or used. ``keep_clear``: no fill may be the
        original."""
        forms = usual_forms(zip(frequencies.words, frequencies.counts.tolist(), strict=True)) if frequencies else {}
        values = SurrogateValues()
        self._words = ClassWords(load_tagger(settings.tagger, threads), values, forms)
        self._attempts, self._kept, self._frequencies = settings.attempts, kept, frequencies
        self._randomness = randomness
        self._surrogates = SurrogateFiller(randomness, frequencies, kept, values=values, keep_clear=keep_clear)
        self._keep_clear = keep_clear
        self._choice: ChoiceOfClass | None = None

    def restricted(self, choice: Choice, words: Sequence[str]) -> Choice:
        """The choice that the filler shall use instead; ``words`` are its ``W`` candidates."""
        self._choice = ChoiceOfClass(choice, words, self._words.allowed(words))
        return self._choice

    def checked(self, filler: Filler, casing: Casing) -> ClassCheckedFiller:
        """The filler with its fills checked; ``casing`` writes them as the filled text will have them."""
        by_frequency = None
        if self._choice is None and self._frequencies is not None:
            off_list = self._kept.off_list(self._frequencies.words)
            by_frequency = WordsOfClassByFrequency(self._frequencies, off_list, self._words, self._randomness)
        return ClassCheckedFiller(
            filler,
            casing,
            self._words,
            self._surrogates,
            attempts=self._attempts,
            choice=self._choice,
            by_frequency=by_frequency,
            keep_clear=self._keep_clear,
        )
