"""The units that a recogniser emits: SentencePiece pieces of normalised words, followed by the blank."""

import hashlib
import io
import itertools
from collections.abc import Iterable, Sequence

from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise

WORD_BEGIN = "\u2581"
"""Marker of a piece that begins a word."""


class Units:
    """Pieces of one SentencePiece model, or of one model for each language in consecutive blocks, so that a unit has a
    language (Dhawan and others, 2023, "Unified model for code-switching speech recognition and language identification
    based on concatenated tokenizer"). The blank is the id after the last piece."""

    def __init__(self, *models: bytes, languages: Sequence[str] = ()):
        """``models`` are serialised SentencePiece models: one, or one for each of the ``languages``."""
        from sentencepiece import SentencePieceProcessor

        self.models, self.languages = models, tuple(languages)
        self.pieces: list[str] = []
        self._processors, self._begins, self._without_text = [], list[int](), set[int]()
        for model in models:
            processor = SentencePieceProcessor(model_proto=model)
            self._processors.append(processor)
            self._begins.append(begin := len(self.pieces))
            for i in range(processor.get_piece_size()):
                self.pieces.append(processor.id_to_piece(i))
                if processor.is_unknown(i) or processor.is_control(i) or processor.is_unused(i):
                    self._without_text.add(begin + i)

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def blank(self) -> int:
        """The id of the blank."""
        return len(self.pieces)

    @property
    def hash(self) -> str:
        """SHA-256 of the SentencePiece models."""
        return hashlib.sha256(b"".join(self.models)).hexdigest()

    def encode(self, text: str, languages: Sequence[str | None] | None = None) -> list[int]:
        """Ids of the pieces of a text, which is normalised first.

        ``languages``: of each white-space word, if units have languages; a word without one takes the previous one.
        """
        if not self.languages:
            found: list[int] = self._processors[0].encode(" ".join(normalise(text)))
            return found
        tokens = zip(text.split(), languages or (), strict=True)
        spoken = [(language, word) for token, language in tokens for word in normalise(token)]
        blocks = [self.languages.index(language) for language, _ in spoken if language in self.languages]
        ids: list[int] = []
        block = blocks[0] if blocks else 0
        for language, run in itertools.groupby(spoken, key=lambda word: word[0]):
            block = self.languages.index(language) if language in self.languages else block
            text = " ".join(word for _, word in run)
            ids += [self._begins[block] + i for i in self._processors[block].encode(text)]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The words spelled by pieces; blanks, unknown and control pieces are ignored."""
        text = [self.pieces[i] for i in ids if i != self.blank and i not in self._without_text]
        return " ".join("".join(text).replace(WORD_BEGIN, " ").split())


_MOST_SENTENCES = 100_000
"""Number of first training sentences that the pieces are trained on."""


def train_language_units(
    texts: Iterable[tuple[str, Sequence[str | None]]], languages: Sequence[str], size: int
) -> Units:
    """``size`` pieces in all, equally many for each language, trained on its stretches in the texts.

    Each text comes with the languages of its white-space words. Raises the errors of ``train_units``.
    """
    stretches: dict[str, list[str]] = {language: [] for language in languages}
    for text, of_words in itertools.islice(texts, _MOST_SENTENCES):
        words = zip(of_words, text.split(), strict=True)
        for language, run in itertools.groupby(words, key=lambda word: word[0]):
            if language in stretches:
                stretches[language].append(" ".join(word for _, word in run))
    models = [train_units(stretches[language], size // len(languages)).models[0] for language in languages]
    return Units(*models, languages=languages)


def train_units(sentences: Iterable[str], size: int) -> Units:
    """Train ``size`` pieces (unigram model) on sentences, which are normalised first.

    Raises ``SpeechError`` if there is no word, or not enough text for so many pieces.
    """
    from sentencepiece import SentencePieceTrainer

    texts = [
        text for sentence in itertools.islice(sentences, _MOST_SENTENCES) if (text := " ".join(normalise(sentence)))
    ]
    if not texts:
        raise SpeechError("the training text has no words to learn units from")
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size,
            model_type="unigram",
            character_coverage=1.0,
            # The text is normalised already; SentencePiece's own rules would normalise it again.
            normalization_rule_name="identity",
            bos_id=-1,
            eos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError:
        # SentencePiece's message may quote the text.
        raise SpeechError(
            f"{size!r} units cannot be learned from {len(texts)} sentences; give a smaller size (more than the "
            "characters of the text), or more text"
        ) from None
    return Units(model.getvalue())
