"""Parts of speech and forms of words, as a spaCy pipeline tags them in their sentence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tasks.errors import ModelError


@dataclass(frozen=True, slots=True)
class WordForm:
    """What a word is where it stands."""

    start: int
    end: int
    part_of_speech: str
    """Of Universal Dependencies: ``NOUN``."""
    form: str
    """The tag of the pipeline's own set, which tells number and tense too: ``NNS``."""


class WordForms:
    """Tags lines, with a pipeline that is loaded once."""

    def __init__(self, pipeline: str) -> None:
        """Raises ``ModelError`` where the pipeline cannot be loaded, or tags no parts of speech."""
        from tasks.masking.taggers.spacy_tagger import read_pipeline

        self._pipeline = read_pipeline(pipeline)
        needless = {"ner", "parser", "lemmatizer", "senter", "textcat", "entity_ruler"}
        for name in needless & set(self._pipeline.pipe_names):
            self._pipeline.disable_pipe(name)
        if not {"tagger", "morphologizer"} & set(self._pipeline.pipe_names):
            raise ModelError(
                f"spaCy pipeline {pipeline!r} tags no parts of speech; it has "
                f"{', '.join(self._pipeline.pipe_names) or 'nothing'}: name one with a tagger as fluency.tagger"
            )

    def of(self, lines: Iterable[str]) -> Iterator[list[WordForm]]:
        """The words of each line."""
        for document in self._pipeline.pipe(lines, batch_size=256):
            yield [
                WordForm(token.idx, token.idx + len(token), token.pos_, token.tag_)
                for token in document
                if not token.is_space
            ]


def form_at(forms: Sequence[WordForm], start: int, end: int) -> WordForm | None:
    """That of a stretch of the line: of its longest word, the first of those; ``None`` where it holds none."""
    inside = [form for form in forms if form.start < end and form.end > start]
    return max(inside, key=lambda form: form.end - form.start, default=None)
