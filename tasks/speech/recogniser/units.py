"""The units that a recogniser emits: SentencePiece's pieces of normalised words, and the blank behind them."""

import hashlib
import io
import itertools
from collections.abc import Iterable

from tasks.errors import ModelError, SpeechError
from tasks.language_model.normalisation import normalise

WORD_BEGIN = "\u2581"
"""Mark of a piece that begins a word."""


class Units:
    """Pieces of a SentencePiece model; the blank is the id behind the last piece."""

    def __init__(self, model: bytes):
        """``model`` is a serialised SentencePiece model. Raises ``ModelError`` where it is none."""
        from sentencepiece import SentencePieceProcessor

        self.model = model
        try:
            self._processor = SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise ModelError("the units are no SentencePiece model; fetch or make the recogniser again") from None
        self.pieces: list[str] = [self._processor.id_to_piece(i) for i in range(self._processor.get_piece_size())]
        self._without_text = {
            i
            for i in range(len(self.pieces))
            if self._processor.is_unknown(i) or self._processor.is_control(i) or self._processor.is_unused(i)
        }

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def blank(self) -> int:
        """The id of the blank."""
        return len(self.pieces)

    @property
    def hash(self) -> str:
        """SHA-256 of the SentencePiece model."""
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of a text, which is normalised first."""
        ids: list[int] = self._processor.encode(" ".join(normalise(text)))
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The words that pieces spell; blanks, unknown and control pieces spell nothing."""
        text = [self.pieces[i] for i in ids if i != self.blank and i not in self._without_text]
        return " ".join("".join(text).replace(WORD_BEGIN, " ").split())


def train_units(sentences: Iterable[str], size: int, limit: int) -> Units:
    """Learn ``size`` pieces (unigram model) from the first ``limit`` sentences, which are normalised first.

    Raises ``SpeechError`` where there is no word, or not enough text for so many pieces.
    """
    from sentencepiece import SentencePieceTrainer

    texts = [text for sentence in itertools.islice(sentences, limit) if (text := " ".join(normalise(sentence)))]
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
            # Text comes normalised; SentencePiece's own rules would be a second normalisation.
            normalization_rule_name="identity",
            bos_id=-1,
            eos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError:
        # Its message may quote the text.
        raise SpeechError(
            f"{size!r} units cannot be learned from {len(texts)} sentences; give a smaller size (more than the "
            "characters of the text), or more text"
        ) from None
    return Units(model.getvalue())
