"""A Whisper model (Radford et al. 2022) and its transcripts with scores, by transformers' beam search; the windows of
long recordings, and the best combinations of their transcripts.

The log-probability of a transcript is the sum over its pieces and the end of the text, in nats. Forbidden pieces
(marks, non-speech, and those of the settings) retain their probability, so a score does not depend on them. The search
ranks transcripts by the mean over their pieces, times the length of the best transcript (decision 0028).
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from tasks.errors import ModelError, ParameterError
from tasks.language_model.normalisation import normalise
from tasks.model_source import locate_model, unreachable
from tasks.speech.rescoring.nbest_lists import ScoredHypothesis
from tasks.speech.rescoring.settings import WhisperSettings
from tasks.spelling import nearest
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from transformers import (
        GenerationConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperTokenizer,
    )

SAMPLE_RATE = 16_000
_SAMPLES_OF_A_FRAME = 320
"""Samples of one frame of the encoder's output."""
_MOST_PIECES = 224
"""Maximum of word pieces in one window of 30 s, as in Whisper's own code."""
_READ_ALOUD = "%$&+=#@€£¥¢§°½¼¾²³"
"""Signs that are read as words but that the normalisation treats as punctuation."""
Search: TypeAlias = "tuple[list[int], GenerationConfig]"
"""Prompt of the decoder, and transformers' settings of its search."""


def has_digits(text: str) -> bool:
    """Whether a text holds a digit of any script, or a sign that is read aloud."""
    return any(character.isdigit() or character in _READ_ALOUD for character in text)


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
    def longest(self) -> int:
        """Samples of one window: 30 s."""
        return int(self.model.config.max_source_positions) * _SAMPLES_OF_A_FRAME

    def text_of(self, pieces: Iterable[int]) -> str:
        """The text of ordinary pieces; invalid UTF-8 becomes U+FFFD."""
        return str(self.tokenizer.decode(list(pieces), clean_up_tokenization_spaces=False)).strip()

    @torch.inference_mode()
    def decode(self, samples: torch.Tensor, search: "Search") -> list[ScoredHypothesis]:
        """Transcripts of a recording (samples,) of at most ``longest`` samples, the best first, as many as the beam is
        wide. If none ended within the allowed number of pieces, they are the unfinished ones."""
        from transformers.generation import GenerationMixin
        from transformers.modeling_outputs import BaseModelOutput

        found = self.features(samples.numpy(), sampling_rate=SAMPLE_RATE, return_tensors="pt")
        features = found["input_features"].to(self.model.device, self.model.dtype)  # (1, bands, frames)
        prompt, settings = search
        # Whisper's own ``generate`` looks for time stamps, cuts long recordings, and does not return scores of all
        # beams.
        generated: Any = GenerationMixin.generate(
            self.model,  # type: ignore[arg-type]  # the type of a model of transformers is no model of its own mixin
            encoder_outputs=BaseModelOutput(self.model.model.encoder(features).last_hidden_state),
            decoder_input_ids=torch.tensor([prompt], device=self.model.device),
            generation_config=settings,
            num_return_sequences=settings.num_beams,
            return_dict_in_generate=True,
            output_scores=True,
        )
        end, rows = settings.eos_token_id, generated.sequences[:, len(prompt) :].tolist()
        scored = list(zip(rows, generated.sequences_scores.tolist(), strict=True))
        ended = [(ids[: ids.index(end)], mean) for ids, mean in scored if end in ids]
        best = ended or scored
        scale = len(best[0][0]) + bool(ended)
        return [ScoredHypothesis(self.text_of(pieces), mean * scale) for pieces, mean in best]

    def search(self, settings: WhisperSettings) -> "Search":
        """Prompt and search to decode a language without time stamps.

        Raises ``ParameterError`` for a language that the model does not have.
        """
        from transformers import GenerationConfig

        config: Any = self.model.config
        own: Any = self.model.generation_config
        prompt = [own.decoder_start_token_id]
        if getattr(own, "is_multilingual", False):
            languages = {name.strip("<|>"): number for name, number in own.lang_to_id.items()}
            if settings.language not in languages:
                raise ParameterError(
                    f"language {settings.language!r} is not known to this model{nearest(settings.language, languages)}"
                )
            prompt += [languages[settings.language], own.task_to_id["transcribe"]]
        elif settings.language != "en":
            raise ParameterError(f"language {settings.language!r} is not allowed: this model knows English ('en') only")
        prompt.append(own.no_timestamps_token_id)
        # Ordinary pieces have lower ids than the end of the text, and marks have higher ones.
        end, size = int(config.eos_token_id), int(config.vocab_size)
        forbidden = {*(own.suppress_tokens or []), *range(end + 1, size)} - {end}
        if settings.no_digits:
            # A sign of several bytes may be divided over two pieces, which are not among these.
            forbidden.update(piece for piece in range(end) if has_digits(self.text_of([piece])))
        return prompt, GenerationConfig(
            num_beams=settings.beam_width,
            max_new_tokens=min(_MOST_PIECES, int(config.max_target_positions) - len(prompt)),
            suppress_tokens=sorted(piece for piece in forbidden if 0 <= piece < size),
            begin_suppress_tokens=sorted(piece for piece in own.begin_suppress_tokens or [] if piece < size),
            eos_token_id=end,
            pad_token_id=end,
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
        if config.model_type != "whisper":
            raise ModelError(
                f"model {model!r} is of the kind {config.model_type!r}; this command needs a Whisper model"
            )
        loaded = WhisperForConditionalGeneration.from_pretrained(source, dtype=torch.float32).eval()
        tokenizer = WhisperTokenizer.from_pretrained(source)
    except ModelError:
        raise
    except Exception as error:
        raise unreachable(model, error) from None
    if getattr(loaded.generation_config, "no_timestamps_token_id", None) is None:
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


_MARGIN_MS = 200
"""Sound before and after speech that stays, in milliseconds."""


def windows_of(samples: torch.Tensor, longest: int, sample_rate: int) -> list[torch.Tensor]:
    """The parts of a recording (samples,) with speech, of at most ``longest`` samples; itself if it is no longer.

    Silero's voice detector finds speech. A window has as much of it as fits, and the pauses between. The longer pauses
    around windows are left out: Whisper invents words there.
    """
    if len(samples) <= longest:
        return [samples]
    from torchaudio.functional import resample

    detector = _detector()
    from silero_vad import get_speech_timestamps

    found = get_speech_timestamps(
        resample(samples, sample_rate, SAMPLE_RATE),
        detector,
        sampling_rate=SAMPLE_RATE,
        max_speech_duration_s=longest / sample_rate,
        speech_pad_ms=_MARGIN_MS,
    )
    windows: list[tuple[int, int]] = []
    for each in found:
        start, end = (each[key] * sample_rate // SAMPLE_RATE for key in ("start", "end"))
        if windows and end - windows[-1][0] <= longest:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, min(end, start + longest)))  # by rounding alone: the detector counts the margins
    return [samples[start:end] for start, end in windows]


@cache
def _detector() -> torch.nn.Module:
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of torch.jit.load, which the package calls
        from silero_vad import load_silero_vad

        detector: torch.nn.Module = load_silero_vad()
    torch.set_num_threads(threads)  # the import sets one
    return detector


def hypotheses_of(
    recogniser: WhisperRecogniser, samples: torch.Tensor, search: Search, at_most: int
) -> list[ScoredHypothesis]:
    """Hypotheses of a recording (samples,), best first.

    Texts of successive windows are concatenated, and their scores added. Without speech: one hypothesis of no word.
    """
    joined = [ScoredHypothesis("", 0.0)]
    for window in windows_of(samples, recogniser.longest, SAMPLE_RATE):
        after = merge_spellings(recogniser.decode(window, search))
        pairs = [ScoredHypothesis(f"{a.text} {b.text}".strip(), a.score + b.score) for a in joined for b in after]
        joined = sorted(pairs, key=lambda hypothesis: -hypothesis.score)[:at_most]
    return joined


def merge_spellings(hypotheses: Iterable[ScoredHypothesis]) -> list[ScoredHypothesis]:
    """One hypothesis for each sequence of words, with its best score; best first.

    Whisper writes case and punctuation, and many hypotheses of a beam differ in these only.
    """
    best: dict[tuple[str, ...], ScoredHypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda one: -one.score):
        best.setdefault(tuple(normalise(hypothesis.text)), hypothesis)
    return list(best.values())
