"""LoRA fine-tuning of a causal LM for infilling (paper 3.2).

Each sentence makes a prompt: the instruction, the sentence with a few random words replaced by [MASK], and the sentence
itself. The loss covers only the output. Only the LoRA matrices are trained; the model's weights are frozen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tasks.causal_model import lower_on_processor, plain_attention, with_update
from tasks.corpora.masked_text import count_markers
from tasks.corpora.words import word_spans
from tasks.errors import CorpusError
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.prompts import INSTRUCTION, CausalPrompt
from tasks.filling.fillers.settings import LoraTraining
from tasks.filling.fillers.tuning import BETAS, endless
from tasks.filling.masked_lm.candidate_words import is_word
from tasks.filling.masked_lm.marker_scores import scores_at
from tasks.parts import blocks
from tasks.training.steps import Steps, linear

if TYPE_CHECKING:
    from peft import PeftModel

    from tasks.causal_model import Network

_WEIGHT_DECAY = 0.0
_VALID_SENTENCES, _VALID_SEED, _VALID_BATCH = 100, 1, 8
_POOL_BATCHES = 64
"""Number of batches that are sorted by length together and then shuffled."""


@dataclass(frozen=True)
class PromptedSentence:
    """The pieces of a prompt with its output."""

    pieces: list[int]
    output_start: int
    """Index of the first piece of the output."""
    masked: list[range]
    """Indices of the pieces of each masked word in the output."""


def prompted(
    language_model: CausalLanguageModel, lines: Sequence[str], masked_share: float, random: np.random.Generator
) -> list[PromptedSentence]:
    """One prompt for each line that has a word to mask.

    Lines with markers, or with strings that look like markers, are left out. In a prompt such a string looks like a
    place to fill, and the output would teach the model to write markers.
    """
    prompt = CausalPrompt(language_model, INSTRUCTION)
    divided = [parts for line in lines if not count_markers(line) and (parts := _divided(line, masked_share, random))]
    inputs = prompt.inputs([parts[::2] for parts in divided])
    flat: list[str] = []
    for parts in divided:
        for known, masked in zip(parts[::2], parts[1::2], strict=False):
            # As in filling, the space before a masked word belongs to the word.
            space = known.endswith(" ")
            flat += [known[: len(known) - space], " " * space + masked]
        flat.append(parts[-1])
    pieces = iter(language_model.encode(flat))
    made = []
    for parts, given in zip(divided, inputs, strict=True):
        whole = [*prompt.head, *given]
        start, masked_words = len(whole), []
        for index in range(len(parts)):
            before = len(whole)
            whole += next(pieces)
            if index % 2:
                masked_words.append(range(before, len(whole)))
        made.append(PromptedSentence(whole + prompt.end, start, masked_words))
    return made


def _divided(line: str, masked_share: float, random: np.random.Generator) -> list[str]:
    """Known texts and masked words in turn; empty if no word can be masked."""
    spans = [span for span in word_spans(line) if is_word(line[span[0] : span[1]])]
    if not spans:
        return []
    count = min(len(spans), max(1, round(masked_share * len(spans))))
    parts, position = [], 0
    for index in sorted(random.choice(len(spans), count, replace=False).tolist()):
        start, end = spans[index]
        parts += [line[position:start], line[start:end]]
        position = end
    return [*parts, line[position:]]


def train_lora(
    language_model: CausalLanguageModel, lines: Sequence[str], settings: LoraTraining
) -> "tuple[PeftModel, dict[str, Any]]":
    """Tune; returns the peft model with its update, and the measurements.

    ``lines_left_out`` includes ``lines_with_marker_strings``: lines with markers, or with strings that look like them.

    Raises ``CorpusError`` if no line makes a prompt. Raises ``ModelError`` if peft cannot place the update, if two
    layers share its weight, or if the loss stops being a number. On one machine the result depends on the seed alone.
    """
    random = np.random.default_rng(settings.seed)
    prompts, measured = _prompts(language_model, lines, settings, random)
    torch.manual_seed(settings.seed)
    tuned = with_update(language_model.model, language_model.name, settings)
    inner: Any = tuned.get_base_model()
    weights = [weight for weight in tuned.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=settings.learning_rate, betas=BETAS, weight_decay=_WEIGHT_DECAY)
    tuned.train()
    size = settings.batch_sentences

    def divided(pool: list[PromptedSentence]) -> list[list[PromptedSentence]]:
        return list(blocks(sorted(pool, key=lambda prompt: len(prompt.pieces)), size))

    batches = endless(prompts, size * _POOL_BATCHES, divided, random)

    def next_loss() -> torch.Tensor:
        scores, expected = _output_scores(language_model, inner, next(batches))
        return torch.nn.functional.cross_entropy(scores, expected)

    with plain_attention(inner):
        factor = linear(settings.steps, settings.warm_up_share)
        Steps(optimiser, next_loss, factor, remedy="lower learning_rate").run(settings.steps)
    return tuned.eval(), {"steps": settings.steps, **measured}


def held_out_accuracy(language_model: CausalLanguageModel, lines: Sequence[str]) -> dict[str, Any] | None:
    """The loss on outputs of held-out prompts, and the accuracy at masked words with the known words forced. The
    prompts are the same in every call.

    Returns ``valid_loss`` (nats per output piece), ``valid_perplexity``, ``valid_masked_words`` and
    ``valid_top_1_accuracy``: the share of masked words whose every piece is the likeliest one after the pieces before.
    ``None`` if no line makes a prompt.
    """
    random = np.random.default_rng(_VALID_SEED)
    chosen = [lines[index] for index in random.permutation(len(lines))[:_VALID_SENTENCES].tolist()]
    made = prompted(language_model, chosen, LoraTraining().masked_share, random)
    fitting = (prompt for prompt in made if len(prompt.pieces) <= language_model.positions)
    loss, pieces, words, right = 0.0, 0, 0, 0
    for batch in blocks(sorted(fitting, key=lambda prompt: len(prompt.pieces)), _VALID_BATCH):
        with torch.inference_mode():
            scores, expected = _output_scores(language_model, language_model.model, batch)
        loss += float(torch.nn.functional.cross_entropy(scores, expected, reduction="sum"))
        pieces += len(expected)
        hits = iter((scores.argmax(dim=1) == expected).tolist())
        for prompt in batch:
            hit = dict(zip(range(prompt.output_start, len(prompt.pieces)), hits, strict=False))
            words += len(prompt.masked)
            right += sum(all(hit[index] for index in word) for word in prompt.masked)
    if not pieces:
        return None
    return {
        "valid_loss": loss / pieces,
        "valid_perplexity": math.exp(loss / pieces),
        "valid_masked_words": words,
        "valid_top_1_accuracy": right / words,
    }


def _prompts(
    language_model: CausalLanguageModel, lines: Sequence[str], settings: LoraTraining, random: np.random.Generator
) -> tuple[list[PromptedSentence], dict[str, int]]:
    """Prompts for all steps, or all prompts if they are fewer, and the numbers of lines left out."""
    wanted = settings.steps * settings.batch_sentences
    prompts: list[PromptedSentence] = []
    left_out = like_markers = 0
    order = random.permutation(len(lines))
    for start in range(0, len(order), 1024):
        some = [lines[index] for index in order[start : start + 1024].tolist()]
        made = [
            prompt
            for prompt in prompted(language_model, some, settings.masked_share, random)
            if len(prompt.pieces) - prompt.output_start <= settings.longest_sentence
            and len(prompt.pieces) <= language_model.positions
        ]
        left_out += len(some) - len(made)
        like_markers += sum(count_markers(line) > 0 for line in some)
        prompts += made
        if len(prompts) >= wanted:
            break
    if not prompts:
        raise CorpusError(
            "the training text has no line without markers that has a word to mask and at most "
            f"{settings.longest_sentence} pieces; {like_markers} of {len(lines)} lines have markers, or strings that "
            "look like them; take other text, or raise longest_sentence"
        )
    return prompts[:wanted], {"lines_left_out": left_out, "lines_with_marker_strings": like_markers}


def _output_scores(
    language_model: CausalLanguageModel, model: "Network", batch: Sequence[PromptedSentence]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores ``(N, V)`` float32 for the ``N`` pieces of the outputs, and these pieces ``(N,)``."""
    longest, device = max(len(prompt.pieces) for prompt in batch), model.device
    padding = [language_model.padding] * longest
    pieces = torch.tensor([[*prompt.pieces, *padding][:longest] for prompt in batch], device=device)  # (B, T)
    lengths = torch.tensor([len(prompt.pieces) for prompt in batch], device=device)  # (B,)
    attention = (torch.arange(longest, device=device) < lengths[:, None]).long()  # (B, T)
    places = [(row, index) for row, p in enumerate(batch) for index in range(p.output_start, len(p.pieces))]
    rows, targets = torch.tensor(places, device=device).unbind(dim=1)
    with torch.autocast("cpu", torch.bfloat16, enabled=lower_on_processor(model)):
        scores = scores_at(model, rows, targets - 1, input_ids=pieces, attention_mask=attention)  # (N, V)
    return scores.float(), pieces[rows, targets]
