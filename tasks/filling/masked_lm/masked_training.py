"""Training of a masked LM to predict whole masked words, and its accuracy on held-out text.

Only words of a single piece are masked, always by the mask token: a marker never replaces a part of a word. Entries
that the filler never writes (``candidate_words``) are no targets. Accuracy compares training runs of one filler. It
does not measure the quality of substitutes.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tasks.batches import padded_batches
from tasks.errors import CorpusError, ModelError
from tasks.filling.fillers.settings import MaskedTraining
from tasks.filling.fillers.tuning import BETAS, endless
from tasks.filling.masked_lm.candidate_words import candidate_words, continues_word, holds_word, without_sign
from tasks.filling.masked_lm.marker_scores import earliest_cut, scores_at
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.torch_setup import has_bfloat16, set_dropout
from tasks.training.steps import Steps, linear

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer

_POOL_SENTENCES = 8192
"""Number of sentences that are sorted by length together; their batches are then shuffled."""


class WordMasker:
    """Makes batches with masked words from one model's pieces."""

    def __init__(self, language_model: MaskedLanguageModel) -> None:
        self._tokenizer = tokenizer = language_model.tokenizer
        self._longest = language_model.longest
        candidates = candidate_words(tokenizer, name=language_model.name)
        unsigned, continuing = without_sign(tokenizer), continues_word(tokenizer)
        if unsigned and tokenizer.unk_token_id is not None:
            # In such a vocabulary it replaces a character, which may be a letter.
            continuing.append(tokenizer.unk_token_id)

        def mask(*entries: int) -> np.ndarray:
            found = np.zeros(language_model.vocabulary_size, dtype=bool)  # (V,)
            found[list(entries)] = True
            return found

        self._maskable = mask(*candidates.spaced, *candidates.glued)
        self._continues, self._without_sign = mask(*continuing), mask(*unsigned)
        self._holds_word = mask(*holds_word(tokenizer))

    def sentences(self, lines: Sequence[str], settings: MaskedTraining, random: np.random.Generator) -> list[list[int]]:
        """A random part of the text that is long enough for all steps, as pieces (``encode``). Raises ``CorpusError``
        if no line has a word to mask."""
        wanted, longest = settings.steps * settings.batch_pieces, min(settings.longest_sentence, self._longest)
        chosen: list[str] = []
        for index in random.permutation(len(lines)).tolist():
            if wanted <= 0:
                break
            chosen.append(lines[index])
            # A line has at least as many pieces as words.
            wanted -= min(len(lines[index].split()), longest)
        sentences = self.encode(chosen, longest)
        if not sentences:
            raise CorpusError("the training text has no line with a word to mask")
        return sentences

    def encode(self, lines: Sequence[str], longest_sentence: int) -> list[list[int]]:
        """Pieces of each line with a word to mask, with special ones at its ends, cut to ``longest_sentence`` pieces or
        to the model's limit."""
        encoded = self._tokenizer(
            list(lines),
            truncation=True,
            max_length=min(longest_sentence, self._longest),
            return_attention_mask=False,
            split_special_tokens=True,
        )["input_ids"]
        return [pieces for pieces in encoded if self.maskable(np.array([pieces])).any()]

    def maskable(self, pieces: np.ndarray) -> np.ndarray:
        """``(B, T)`` booleans: which of ``(B, T)`` pieces are whole words."""
        following = np.zeros_like(pieces)
        following[:, :-1] = pieces[:, 1:]
        inside = np.zeros(pieces.shape, dtype=bool)
        inside[:, 1:] = self._without_sign[pieces[:, 1:]] & self._holds_word[pieces[:, :-1]]
        return self._maskable[pieces] & ~inside & ~self._continues[following]

    def masked(
        self, sentences: Sequence[Sequence[int]], share: float, random: np.random.Generator
    ) -> tuple[torch.Tensor, ...]:
        """Mask about ``share`` of all pieces, and at least one word of every sentence.

        Returns ``(B, T)`` pieces with mask tokens in place, ``(B, T)`` 1 at pieces and 0 at padding, and for the masked
        places their sentences, positions and pieces, ``(N,)`` each.
        """
        longest = max(map(len, sentences))
        padding = self._tokenizer.pad_token_id
        pieces = np.full((len(sentences), longest), padding if padding is not None else 0)
        attention = np.zeros_like(pieces)
        for row, sentence in enumerate(sentences):
            pieces[row, : len(sentence)] = sentence
            attention[row, : len(sentence)] = 1
        maskable = self.maskable(pieces) & (attention == 1)
        # Mask the maskable words with the smallest tickets in each sentence, so every sentence has at least one.
        tickets = np.where(maskable, random.random(pieces.shape), np.inf)
        wanted = np.clip(np.round(share * attention.sum(axis=1)), 1, maskable.sum(axis=1)).astype(int)  # (B,)
        ranks = tickets.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        rows, positions = np.nonzero(maskable & (ranks < wanted[:, None]))
        targets = pieces[rows, positions]
        pieces[rows, positions] = self._tokenizer.mask_token_id
        return tuple(map(torch.from_numpy, (pieces, attention, rows, positions, targets)))


def _scores(model: "PreTrainedModel", cut: torch.nn.Module, masked: Sequence[torch.Tensor]) -> torch.Tensor:
    """``(N, V)`` scores of all pieces at masked places (``WordMasker.masked``); ``cut``: as for ``scores_at``."""
    pieces, attention, rows, positions, _ = masked
    return scores_at(model, rows, positions, cut=cut, input_ids=pieces, attention_mask=attention)


_WEIGHT_DECAY = 0.01


def train_on_masked_words(
    model: "PreTrainedModel",
    masker: WordMasker,
    sentences: Sequence[Sequence[int]],
    settings: MaskedTraining,
    groups: Sequence[dict[str, Any]],
    random: np.random.Generator,
    *,
    remedy: str,
) -> None:
    """Train in place, on a GPU if there is one.

    ``sentences``: pieces, from ``WordMasker.encode``; ``groups``: weights (``params``) with their peak rates (``lr``).
    Raises ``ModelError`` with the ``remedy`` if the loss stops being a number.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)  # type: ignore[arg-type]  # its decorator forgets self
    optimiser = torch.optim.AdamW(list(groups), betas=BETAS, weight_decay=_WEIGHT_DECAY, fused=True)
    # For short sentences, plain attention takes half the time of fused attention in training.
    attention = model.config._attn_implementation
    model.set_attn_implementation("eager")
    model.train(settings.dropout > 0)
    set_dropout(model, settings.dropout)
    cut = earliest_cut(model)
    batches = endless(
        sentences, _POOL_SENTENCES, lambda pool: list(padded_batches(pool, len, settings.batch_pieces)), random
    )

    def next_loss() -> torch.Tensor:
        masked = [part.to(device) for part in masker.masked(next(batches), settings.masked_share, random)]
        with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16()):
            return torch.nn.functional.cross_entropy(_scores(model, cut, masked).float(), masked[-1])

    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(settings.seed)
        factor = linear(settings.steps, settings.warm_up_share)
        Steps(optimiser, next_loss, factor, remedy=remedy).run(settings.steps)
    model.cpu().eval().requires_grad_(True)
    model.set_attn_implementation(attention)


_TESTED_SHARE = 0.12
_TEST_SEED = 1
LONGEST_SENTENCE = 128
_TEST_SENTENCES = 32


def masked_accuracy(
    model: "PreTrainedModel", tokenizer: "Tokenizer", lines: Sequence[str], *, name: str
) -> dict[str, Any]:
    """Accuracy at masked words of held-out lines, the same words in every call, in float32.

    Returns ``valid_words`` (number), ``valid_loss`` (nats per word over the whole vocabulary), ``valid_perplexity``,
    ``valid_top_1_accuracy`` and ``valid_top_10_accuracy`` (shares). Raises ``CorpusError`` if no line has a word to
    mask, and ``ModelError`` if the model's scores are not finite.
    """
    masker = WordMasker(MaskedLanguageModel(model, tokenizer, name))
    sentences = masker.encode(lines, LONGEST_SENTENCE)
    if not sentences:
        raise CorpusError(
            f"none of the {len(lines):,} held-out lines (--valid) has a word that filler {name!r} can mask; take "
            "running text in its language and script"
        )
    return accuracy_of_pieces(model, masker, sentences, name=name)


def accuracy_of_pieces(
    model: "PreTrainedModel", masker: WordMasker, sentences: Sequence[Sequence[int]], *, name: str
) -> dict[str, Any]:
    """As ``masked_accuracy``, for encoded sentences; their mask tokens are context."""
    random = np.random.default_rng(_TEST_SEED)
    loss = 0.0
    words = first = among_ten = 0
    model.eval()
    cut = earliest_cut(model)
    by_length = sorted(sentences, key=len)
    for start in range(0, len(by_length), _TEST_SENTENCES):
        masked = masker.masked(by_length[start : start + _TEST_SENTENCES], _TESTED_SHARE, random)
        targets = masked[-1]  # (N,)
        with torch.inference_mode():
            scores = _scores(model, cut, masked)  # (N, V)
        loss += float(torch.nn.functional.cross_entropy(scores, targets, reduction="sum"))
        best = scores.topk(10).indices  # (N, 10)
        words += len(targets)
        first += int((best[:, 0] == targets).sum())
        among_ten += int((best == targets[:, None]).any(dim=1).sum())
    if not math.isfinite(loss):
        raise ModelError(
            f"filler {name!r} gives scores that are not numbers (NaN or infinity) for the validation text; its weights "
            "are damaged: fetch the model again, or train it with a lower learning rate"
        )
    return {
        "valid_words": words,
        "valid_loss": loss / words,
        "valid_perplexity": math.exp(loss / words),
        "valid_top_1_accuracy": first / words,
        "valid_top_10_accuracy": among_ten / words,
    }
