"""A Whisper model that is ready to decode: from the hub, a folder, a package, or an original checkpoint."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tasks.errors import ModelError, ParameterError
from tasks.language_model.normalisation import normalise
from tasks.model_source import PACKAGE_PREFIX, locate_model, unreachable
from tasks.speech.whisper.beam_search import SearchSpace
from tasks.speech.whisper.original_checkpoint import end_of_text, load_original
from tasks.spelling import nearest
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
    from transformers import PreTrainedTokenizerBase as Tokenizer

_READ_ALOUD = "%$&+=#@€£¥¢§°½¼¾²³"
"""Signs that stand for a word and that the normalisation takes for punctuation."""


class WhisperPieces:
    """The ordinary pieces by id; the ids from ``len(pieces)`` on are marks, the first of them the end of the text."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)

    def __len__(self) -> int:
        return len(self._pieces)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ordinary pieces; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self._pieces[piece] for piece in ids).decode("utf-8", errors="replace").strip()

    def with_digits(self) -> list[int]:
        """Ids of the pieces that hold a digit or a sign that is read aloud.

        A sign of several bytes (€) may be split over two pieces; those stay.
        """
        texts = [piece.decode("utf-8", errors="replace") for piece in self._pieces]
        return [number for number, text in enumerate(texts) if has_digits(text)]


def has_digits(text: str) -> bool:
    """Whether a text holds a digit of any script, or a sign that is read aloud."""
    return any(character.isdigit() or character in _READ_ALOUD for character in text)


def read_ranks(path: str | Path) -> WhisperPieces:
    """Pieces of a ``.tiktoken`` file, as OpenAI's package has them: a piece in base 64 and its rank on each line.

    Raises ``ModelError`` where the file is missing or is none.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError:
        raise ModelError(
            f"vocabulary {str(path)!r} does not exist or cannot be read; give the .tiktoken file of OpenAI's package"
        ) from None
    try:
        pairs = [line.split() for line in lines if line]
        # OpenAI's multilingual file has an empty piece, written as a single "=".
        ranks = {int(rank): base64.b64decode(piece, validate=piece != b"=") for piece, rank in pairs}
    except (ValueError, binascii.Error):
        ranks = {}
    if not ranks or sorted(ranks) != list(range(len(ranks))):
        raise ModelError(f"vocabulary {str(path)!r} is no .tiktoken file: a piece in base 64 and its rank on each line")
    return WhisperPieces([ranks[rank] for rank in range(len(ranks))])


def pieces_of_tokenizer(tokenizer: "Tokenizer", count: int, model: str) -> WhisperPieces:
    """The first ``count`` pieces of a tokenizer of Hugging Face's, which writes each byte as a letter.

    Raises ``ModelError`` where it lacks some of them.
    """
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    byte_of = {letter: byte for byte, letter in bytes_to_unicode().items()}
    names = {number: name for name, number in tokenizer.get_vocab().items()}
    missing = [number for number in range(count) if number not in names]
    foreign = [n for n in range(count) if n in names and any(letter not in byte_of for letter in names[n])]
    if missing or foreign:
        raise ModelError(
            f"model {model!r}: its tokenizer lacks {len(missing)} of {count} pieces and has {len(foreign)} that are no "
            "bytes; fetch vocab.json, merges.txt and tokenizer.json of the model too"
        )
    return WhisperPieces([bytes(byte_of[letter] for letter in names[number]) for number in range(count)])


SAMPLE_RATE = 16_000
_SAMPLES_OF_A_FRAME = 320
"""Samples behind one frame of the encoder's output."""
_CHECKPOINT_ENDINGS = (".pt", ".pth")
_PUBLISHED_RANKS = "package:whisper/assets/{}.tiktoken"


@dataclass(frozen=True, slots=True)
class WhisperRecogniser:
    """The model with what belongs to it."""

    model: "WhisperForConditionalGeneration"
    pieces: WhisperPieces
    features: "WhisperFeatureExtractor"
    """transformers' feature extractor: samples to log-mel features."""
    commit: str | None = None
    """Of a model from the hub."""

    @property
    def longest(self) -> int:
        """Samples of one window: 30 s."""
        return int(self.model.config.max_source_positions) * _SAMPLES_OF_A_FRAME

    def words_of(self, pieces: Sequence[int]) -> str:
        """The words of pieces, normalised; the last one may be unfinished."""
        return " ".join(normalise(self.pieces.decode(pieces)))

    @torch.inference_mode()
    def encode(self, windows: Sequence[torch.Tensor]) -> torch.Tensor:
        """The encoder's output for recordings (samples,) of at most ``longest`` samples: (B, S, D)."""
        found = self.features([window.numpy() for window in windows], sampling_rate=SAMPLE_RATE, return_tensors="pt")
        features = found["input_features"].to(self.model.device, self.model.dtype)  # (B, bands, frames)
        return self.model.model.encoder(features).last_hidden_state

    def search_space(self, language: str, *, no_digits: bool = False) -> SearchSpace:
        """Where decoding of a language begins, without time stamps, and what it may not write.

        Raises ``ParameterError`` for a language that the model does not know.
        """
        generation: Any = self.model.generation_config
        end = len(self.pieces)
        prompt = [generation.decoder_start_token_id]
        if getattr(generation, "is_multilingual", False):
            languages = {name.strip("<|>"): number for name, number in generation.lang_to_id.items()}
            if language not in languages:
                raise ParameterError(
                    f"language {language!r} is not known to this model{nearest(language, languages)}; "
                    f"known: {', '.join(sorted(languages))}"
                )
            prompt += [languages[language], generation.task_to_id["transcribe"]]
        elif language != "en":
            raise ParameterError(f"language {language!r} is not allowed: this model knows English ('en') only")
        prompt.append(generation.no_timestamps_token_id)
        size = int(self.model.config.vocab_size)
        forbidden = {*(generation.suppress_tokens or []), *range(end + 1, size)} - {end}
        if no_digits:
            forbidden.update(self.pieces.with_digits())
        return SearchSpace(
            prompt=tuple(prompt),
            end=end,
            forbidden=tuple(sorted(piece for piece in forbidden if 0 <= piece < size)),
            forbidden_first=tuple(sorted(piece for piece in generation.begin_suppress_tokens or [] if piece < size)),
        )


def load_whisper(model: str, vocabulary: str | None = None) -> WhisperRecogniser:
    """Load a model for decoding, on the GPU where there is one.

    ``model`` is a name on the hub, a folder, ``package:NAME/PATH``, or the file of an original checkpoint. Such a file
    has no vocabulary: ``vocabulary`` names the ``.tiktoken`` file, by default that of the installed package
    ``openai-whisper``. Raises ``ModelError``.
    """
    stand_in_for_torchaudio_extension()  # transformers' code of Whisper imports torchaudio
    if model.endswith(_CHECKPOINT_ENDINGS):
        found = _from_checkpoint(model, vocabulary)
    elif vocabulary is not None:
        raise ParameterError(f"vocabulary {vocabulary!r} is for a checkpoint (.pt); a folder has its own tokenizer")
    else:
        found = _from_folder(model)
    if torch.cuda.is_available():
        found.model.cuda()  # type: ignore[call-arg]  # its decorator forgets self
    return found


def _from_checkpoint(model: str, vocabulary: str | None) -> WhisperRecogniser:
    path = Path(locate_model(model) if model.startswith(PACKAGE_PREFIX) else model)
    if not path.is_file():
        raise ModelError(f"model file {model!r} does not exist; give a checkpoint, a folder or a name on the hub")
    loaded = load_original(path)
    end = end_of_text(loaded.config.vocab_size)
    pieces = read_ranks(vocabulary if vocabulary is not None else _published_ranks(end))
    if len(pieces) != end:
        raise ModelError(
            f"the vocabulary has {len(pieces)} pieces and model {model!r} needs {end}: gpt2.tiktoken is for the "
            "English-only models (.en), multilingual.tiktoken for the others"
        )
    return WhisperRecogniser(loaded, pieces, _features_of(loaded.config))


def _published_ranks(end: int) -> str:
    name = "gpt2" if end == end_of_text(0) else "multilingual"
    try:
        return locate_model(_PUBLISHED_RANKS.format(name))
    except ModelError:
        raise ModelError(
            f"an original checkpoint has no vocabulary; name its file with --set vocabulary={name}.tiktoken, or "
            "install OpenAI's package, which has it, with 'pip install --no-deps openai-whisper'"
        ) from None


def _from_folder(model: str) -> WhisperRecogniser:
    import transformers
    from transformers import AutoConfig, WhisperForConditionalGeneration, WhisperTokenizer

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    source = locate_model(model)
    try:
        config = AutoConfig.from_pretrained(source)
    except Exception as error:
        raise unreachable(model, error) from None
    if config.model_type != "whisper":
        raise ModelError(f"model {model!r} is of the kind {config.model_type!r}; this command needs a Whisper model")
    try:
        loaded = WhisperForConditionalGeneration.from_pretrained(source, dtype=torch.float32).eval()
        tokenizer = WhisperTokenizer.from_pretrained(source)
    except Exception as error:
        raise unreachable(model, error) from None
    generation = loaded.generation_config
    needed = ["no_timestamps_token_id"]
    if getattr(generation, "is_multilingual", False):
        needed += ["lang_to_id", "task_to_id"]
    if any(getattr(generation, name, None) is None for name in needed):
        raise ModelError(f"model {model!r} has no generation_config.json of a Whisper model; fetch that file too")
    pieces = pieces_of_tokenizer(tokenizer, int(config.eos_token_id), model)
    return WhisperRecogniser(loaded, pieces, _features_of(config), getattr(config, "_commit_hash", None))


def _features_of(config: "PreTrainedConfig") -> "WhisperFeatureExtractor":
    """All Whisper models compute their features alike; they differ in the number of bands."""
    from transformers import WhisperFeatureExtractor

    seconds = config.max_source_positions * _SAMPLES_OF_A_FRAME // SAMPLE_RATE
    return WhisperFeatureExtractor(feature_size=config.num_mel_bins, chunk_length=seconds)
