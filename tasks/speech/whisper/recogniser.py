"""Loads a Whisper model for decoding, from the hub, a folder or a package."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tasks.errors import ModelError, ParameterError
from tasks.model_source import locate_model, unreachable
from tasks.speech.whisper.beam_search import SearchSpace
from tasks.spelling import nearest
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer

_READ_ALOUD = "%$&+=#@€£¥¢§°½¼¾²³"
"""Signs that are read as words but that the normalisation treats as punctuation."""


def has_digits(text: str) -> bool:
    """Whether a text holds a digit of any script, or a sign that is read aloud."""
    return any(character.isdigit() or character in _READ_ALOUD for character in text)


SAMPLE_RATE = 16_000
_SAMPLES_OF_A_FRAME = 320
"""Samples of one frame of the encoder's output."""


@dataclass(frozen=True, slots=True)
class WhisperRecogniser:
    """A Whisper model with its tokenizer and feature extractor."""

    model: "WhisperForConditionalGeneration"
    tokenizer: "WhisperTokenizer"
    features: "WhisperFeatureExtractor"
    """transformers' feature extractor: samples to log-mel features."""
    commit: str | None = None
    """Commit on the hub, for a model from there."""

    @property
    def end(self) -> int:
        """Id of the end of the text; ordinary pieces have lower ids, and marks have higher ones."""
        config: Any = self.model.config
        return int(config.eos_token_id)

    @property
    def longest(self) -> int:
        """Samples of one window: 30 s."""
        return int(self.model.config.max_source_positions) * _SAMPLES_OF_A_FRAME

    def text_of(self, pieces: Iterable[int]) -> str:
        """The text of ordinary pieces; invalid UTF-8 becomes U+FFFD."""
        return str(self.tokenizer.decode(list(pieces), clean_up_tokenization_spaces=False)).strip()

    def pieces_with_digits(self) -> list[int]:
        """Ids of the pieces with a digit or a sign that is read aloud.

        A sign of several bytes (€) may be split over two pieces, which are not among them.
        """
        return [piece for piece in range(self.end) if has_digits(self.text_of([piece]))]

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """The encoder's output (S, D) for a recording (samples,) of at most ``longest`` samples."""
        found = self.features(samples.numpy(), sampling_rate=SAMPLE_RATE, return_tensors="pt")
        features = found["input_features"].to(self.model.device, self.model.dtype)  # (1, bands, frames)
        return self.model.model.encoder(features).last_hidden_state[0]

    def search_space(self, language: str, *, no_digits: bool = False) -> SearchSpace:
        """Prompt and forbidden tokens to decode a language without time stamps.

        Raises ``ParameterError`` for a language that the model does not have.
        """
        generation: Any = self.model.generation_config
        end = self.end
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
            forbidden.update(self.pieces_with_digits())
        return SearchSpace(
            prompt=tuple(prompt),
            end=end,
            forbidden=tuple(sorted(piece for piece in forbidden if 0 <= piece < size)),
            forbidden_first=tuple(sorted(piece for piece in generation.begin_suppress_tokens or [] if piece < size)),
        )


def load_whisper(model: str) -> WhisperRecogniser:
    """Load a model for decoding, on a GPU if there is one.

    ``model`` is a name on the hub, a folder, or ``package:NAME/PATH``. Raises ``ModelError``.
    """
    stand_in_for_torchaudio_extension()  # transformers' code of Whisper imports torchaudio
    import transformers
    from transformers import AutoConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer

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
    if len(tokenizer) < config.eos_token_id:
        raise ModelError(
            f"model {model!r}: its tokenizer has {len(tokenizer)} of {config.eos_token_id} pieces; fetch vocab.json, "
            "merges.txt and tokenizer.json of the model too"
        )
    # All Whisper models compute the same features, with different numbers of bands.
    seconds = config.max_source_positions * _SAMPLES_OF_A_FRAME // SAMPLE_RATE
    features = WhisperFeatureExtractor(feature_size=config.num_mel_bins, chunk_length=seconds)
    if torch.cuda.is_available():
        loaded.cuda()
    return WhisperRecogniser(loaded, tokenizer, features, getattr(config, "_commit_hash", None))
