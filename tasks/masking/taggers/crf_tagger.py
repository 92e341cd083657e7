"""A conditional random field (Lafferty, McCallum, Pereira 2001) as tagger; ``palimpsest train-tagger`` makes one.

A word is tagged where the probability that it belongs to any entity, one minus its marginal probability of being
outside, is at least ``minimum_probability``. The most probable path alone would miss too much: missing a private word
is worse than masking one too many. The F2 measure says so, and is highest far below one half: for true probabilities a
word is worth masking from F2 / 5 on (Lipton, Elkan, Narayanaswamy 2014 show it for F1: F1 / 2). Its type is the most
probable one; neighbours of one type are one entity, whose score is the mean of its words' probabilities.
"""

from collections.abc import Iterable, Iterator

from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_features import CrfFeatures, tokens_of
from tasks.masking.taggers.crf_folder import read_crf_folder
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.masking.taggers.windows import windows
from tasks.model_source import PACKAGE_PREFIX, locate_model

OUTSIDE = "O"
_LONGEST = 4000
_OVERLAP = 200


def _located(model: str) -> str:
    """A folder inside a package is looked up; any other path is taken as it is, since no hub has such models."""
    return locate_model(model) if model.startswith(PACKAGE_PREFIX) else model


_Tagged = tuple[int, int, str, float]
"""Start, end, entity type and probability of a word."""


class CrfModel(Tagger):
    """A loaded model."""

    def __init__(self, settings: CrfTagger) -> None:
        """``ModelError`` where the model is not there, damaged, or of other features."""
        import pycrfsuite

        folder = read_crf_folder(_located(settings.model))
        shipped = settings.model == CrfTagger(kind="crf").model
        self.name = "crf:shipped" if shipped else f"crf:{settings.model}"
        self.languages = ("en",) if shipped else ()
        self._minimum = settings.minimum_probability
        self._types = folder.entity_types
        self._features = CrfFeatures(folder.clusters)
        self._model = pycrfsuite.Tagger()
        self._model.open(str(folder.model))
        known = set(self._model.labels())
        self._labels = [
            (entity_type, [label for label in (f"B-{entity_type}", f"I-{entity_type}") if label in known])
            for entity_type in self._types
        ]

    @property
    def entity_types(self) -> list[str]:
        """The types that the model was trained with."""
        return sorted(self._types)

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its entities; long lines are seen in overlapping windows."""
        for line in lines:
            tagged: list[_Tagged] = []
            for window in windows(line, _LONGEST, _OVERLAP):
                for start, end, entity_type, probability in self._words(line[window.start : window.end]):
                    if window.core_start <= window.start + start < window.core_end:
                        tagged.append((window.start + start, window.start + end, entity_type, probability))
            yield line, _entities(line, tagged)

    def _words(self, text: str) -> Iterator[_Tagged]:
        """The words of a text that are tagged."""
        tokens = tokens_of(text)
        if not any(is_word for _, _, is_word in tokens):
            return
        model = self._model
        model.set(self._features(text, tokens))
        for index, (start, end, is_word) in enumerate(tokens):
            if not is_word:
                continue
            probability = 1.0 - model.marginal(OUTSIDE, index)
            if probability >= self._minimum:
                _, entity_type = max(
                    (sum(model.marginal(label, index) for label in labels), name) for name, labels in self._labels
                )
                yield start, end, entity_type, min(probability, 1.0)


def _entities(line: str, tagged: list[_Tagged]) -> list[EntitySpan]:
    """Neighbouring words of one type, with nothing but white space between them, as one entity."""
    spans: list[EntitySpan] = []
    run: list[_Tagged] = []
    for word in tagged:
        if run and (word[2] != run[0][2] or not line[run[-1][1] : word[0]].isspace()):
            spans.append(_entity(run))
            run = []
        run.append(word)
    if run:
        spans.append(_entity(run))
    return spans


def _entity(run: list[_Tagged]) -> EntitySpan:
    return EntitySpan(run[0][0], run[-1][1], run[0][2], sum(word[3] for word in run) / len(run))
