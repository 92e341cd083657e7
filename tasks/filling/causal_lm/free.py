"""Free filling with a causal LM, as in the paper (3.2): the model gets the prompt and writes the whole sentence.

A model may change words that it should copy, or write none or two at a marker. ``Alignment`` compares every sentence
with its masked form, and gives a sentence up at once that no longer matches. Such a sentence is written again by
sampling, and finally filled by another method. A report counts these cases.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import regex
import torch
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria

from tasks.batches import batches_that_fit
from tasks.corpora.masked_text import MASK
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.prompts import INSTRUCTION, CausalPrompt, EncodedSentence, encode_sentences
from tasks.filling.filled_lines import Filler
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import is_word
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_sentence import Fill, MaskedSentence

if TYPE_CHECKING:
    from tasks.filling.methods.free import Free

_LONGEST_FILL = 40
_UNFINISHED = "\ufffd"
"""The decoded text of the first bytes of a character."""
_MOST_CACHED_PIECES = 16384
_SPARE_PIECES = 8
"""Pieces that a sentence may have beyond its known text: this number for each slot, and once more."""
_STREAM = 1 << 24
"""First random stream of further attempts; lower streams belong to ``candidates``."""


class Alignment:
    """Comparison of texts with one masked sentence.

    A sentence matches if every known character is unchanged (white space may differ) and each marker has one word. The
    rules for words are in ``candidate_words``. The marker's own name is no word, since models copy it.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """``texts``: the ``n + 1`` known texts around ``n`` slots."""
        inside = list(texts)
        inside[0] = inside[0].lstrip()
        inside[-1] = inside[-1].rstrip()
        known = [r"\s+".join(map(regex.escape, regex.split(r"\s+", text))) for text in inside]
        # Not a lazy repetition: with one, regex finds a partial match in any text.
        self._pattern = regex.compile(r"\s*" + rf"(\S{{1,{_LONGEST_FILL}}})".join(known) + r"\s*")

    def words(self, text: str) -> list[str] | None:
        """The words at the slots, or ``None`` if the text is another sentence or has no word at a slot."""
        match = self._pattern.fullmatch(text)
        if match is None or not all(is_word(word) and MASK not in word for word in match.groups()):
            return None
        return list(match.groups())

    def is_possible(self, text: str) -> bool:
        """Whether a continuation of the text can still match the sentence."""
        return self._pattern.fullmatch(text.rstrip(_UNFINISHED), partial=True) is not None


class _Sentences(StoppingCriteria):
    """Ends each sentence of a batch that is complete, or that no longer matches; and has the words of the complete."""

    def __init__(self, language_model: CausalLanguageModel, batch: Sequence[EncodedSentence], start: int) -> None:
        """``start``: number of columns before the sentences."""
        self._language_model, self._batch, self._start = language_model, batch, start
        self._alignments = [Alignment(encoded.sentence.texts) for encoded in batch]
        self._ended = [False] * len(batch)
        self.words: list[list[str] | None] = [None] * len(batch)
        """The words at the slots of each sentence; ``None`` if it is another sentence."""

    def __call__(self, input_ids: torch.Tensor, _: object, **_options: object) -> torch.Tensor:
        """``(B,)`` booleans: which sentences have ended."""
        for row, written in enumerate(input_ids[:, self._start :].tolist()):
            if self._ended[row]:
                continue
            sentence, line_end, _ = self._language_model.decode(written).partition("\n")
            alignment, longest = self._alignments[row], _longest(self._batch[row])
            complete = written[-1] == self._language_model.end or line_end or len(written) >= longest
            if complete:
                self.words[row] = alignment.words(sentence)
            self._ended[row] = bool(complete) or not alignment.is_possible(sentence)
        return torch.tensor(self._ended, device=input_ids.device)


class _Draws(LogitsProcessor):
    """Leaves one sampled piece to each sentence. It depends on the seed, sentence, attempt and position, not on the
    rest of the batch."""

    def __init__(
        self,
        batch: Sequence[EncodedSentence],
        start: int,
        randomness: MarkerRandomness,
        stream: int,
        temperature: float,
    ) -> None:
        self._places = [Place(each.sentence.number, each.sentence.slots[0].first_marker) for each in batch]
        self._start, self._randomness, self._stream, self._temperature = start, randomness, stream, temperature

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """``(B, V)`` scores: 0 for the sampled piece, minus infinity for all others."""
        weights = torch.softmax(scores.double() / self._temperature, dim=1).cpu().numpy()
        left = torch.full_like(scores, -torch.inf)
        for row, place in enumerate(self._places):
            generator = self._randomness.at(place, stream=self._stream, step=input_ids.shape[1] - self._start)
            clocks = generator.standard_exponential(weights.shape[1])
            left[row, int(np.argmax(weights[row] / np.maximum(clocks, np.finfo(np.float64).tiny)))] = 0.0
        return left


def _longest(encoded: EncodedSentence) -> int:
    return sum(map(len, encoded.known)) + _SPARE_PIECES * (1 + len(encoded.sentence.slots))


class FreeFiller:
    """Filler for sentences that lets one causal LM write them whole."""

    def __init__(
        self, language_model: CausalLanguageModel, settings: "Free", randomness: MarkerRandomness, fallback: Filler
    ) -> None:
        """``fallback`` fills the sentences that fail every attempt."""
        self._language_model, self._settings = language_model, settings
        self._randomness, self._fallback = randomness, fallback
        # Without the settings of the model's author, such as penalties for repeated words.
        ends = {"eos_token_id": language_model.end, "pad_token_id": language_model.padding}
        language_model.model.generation_config = GenerationConfig(do_sample=False, **ends)
        self._prompt = CausalPrompt(language_model, language_model.instruction or INSTRUCTION)
        self._halving = BatchHalving(language_model.name)
        self.candidate_count = fallback.candidate_count
        """Number of words that the fallback chooses from; the model may write any word."""
        names = ("free_sentences", "free_malformed", "free_rewritten", "free_handed_over", "free_too_long")
        self._counts = dict.fromkeys(names, 0)

    @property
    def forward_seconds(self) -> float:
        """Seconds in the model so far."""
        return self._language_model.seconds

    @property
    def counts(self) -> dict[str, int]:
        """Counts for a report. Of all ``free_sentences``, the ``free_malformed`` ones failed the first attempt. A later
        attempt succeeded for ``free_rewritten`` of these; ``free_handed_over`` went to the fallback. The
        ``free_too_long`` ones went there without an attempt."""
        own = Counter({**self._counts, **self._halving.counts})
        own.update(getattr(self._fallback, "counts", {}))
        return own

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled."""
        fills: list[list[Fill]] = [[] for _ in sentences]
        with_slots = [index for index, sentence in enumerate(sentences) if sentence.slots]
        given = [sentences[index] for index in with_slots]
        encoded = encode_sentences(self._language_model, self._prompt, given, following_words=0)
        waiting = dict(zip(with_slots, encoded, strict=True))
        fitting = {
            index: each for index, each in waiting.items() if self._pieces(each) <= self._language_model.positions
        }
        self._counts["free_sentences"] += len(waiting)
        self._counts["free_too_long"] += len(waiting) - len(fitting)
        for attempt in range(1 + self._settings.attempts):
            for index, words in self._written(fitting, attempt).items():
                fills[index] = [Fill(word) for word in words]
                advance(len(words))
                self._counts["free_rewritten"] += attempt > 0
                del fitting[index], waiting[index]
            if attempt == 0:
                self._counts["free_malformed"] += len(fitting)
        self._counts["free_handed_over"] += len(fitting)
        others = self._fallback.fill([sentences[index] for index in waiting], advance)
        for index, of_other in zip(waiting, others, strict=True):
            fills[index] = [replace(fill, fallback=True) for fill in of_other]
        return fills

    def _pieces(self, encoded: EncodedSentence) -> int:
        """Maximum number of pieces of a prompt with its output."""
        return len(self._prompt.head) + len(encoded.input) + _longest(encoded)

    def _written(self, sentences: dict[int, EncodedSentence], attempt: int) -> dict[int, list[str]]:
        """The words that the model writes at the slots of each sentence, for the sentences that match.

        Attempt 0 takes the likeliest piece every time. Later attempts sample pieces.
        """
        found: dict[int, list[str]] = {}
        most = max(_MOST_CACHED_PIECES, self._language_model.pieces_in_gpu)
        batches = batches_that_fit(
            sorted(sentences.items(), key=lambda item: item[1].length),
            lambda batch, item: (
                len(batch) < self._settings.batch_sentences and (len(batch) + 1) * self._pieces(item[1]) <= most
            ),
        )
        for batch in batches:
            parts = self._halving.run(batch, lambda part: self._write([each for _, each in part], attempt))
            words = (its_words for part in parts for its_words in part)
            found |= {index: each for (index, _), each in zip(batch, words, strict=True) if each is not None}
        return found

    def _write(self, batch: Sequence[EncodedSentence], attempt: int) -> list[list[str] | None]:
        language_model = self._language_model
        prompts = [[*self._prompt.head, *encoded.input] for encoded in batch]
        start = max(map(len, prompts))
        padded = [[*[language_model.padding] * (start - len(prompt)), *prompt] for prompt in prompts]
        mask = [[0] * (start - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        written = _Sentences(language_model, batch, start)
        draws = [_Draws(batch, start, self._randomness, _STREAM + attempt, self._settings.temperature)]
        started = time.perf_counter()
        language_model.model.generate(
            input_ids=torch.tensor(padded, device=language_model.model.device),
            attention_mask=torch.tensor(mask, device=language_model.model.device),
            max_new_tokens=max(map(_longest, batch)),
            stopping_criteria=[written],
            logits_processor=draws if attempt else [],
        )
        language_model.seconds += time.perf_counter() - started
        return written.words
