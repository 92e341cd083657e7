"""A Transformer decoder for words: pre-norm blocks, learned positions, tied embeddings (paper 4.2).

The block is GPT-2's (Radford et al. 2019), so weights can be copied to and from that model and results compared. The
only difference is that attention weights have no dropout. Positions may be rotary, and the expected next language may
be an input (``languages_and_positions``).

On disk, a Transformer is a folder with ``model.safetensors``, ``vocabulary.txt`` and ``settings.json``. One that
predicts the language of the next word first also has ``languages.safetensors``.

``settings.json`` holds the kind of model, its architecture, and the SHA-256 of weights and vocabulary. So a damaged or
mixed-up folder is detected when it is read. Nothing is pickled.
"""

import hashlib
import json
import math
from pathlib import Path

import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes
from torch import Tensor, nn
from torch.nn import functional

from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.language_model.language_factors import LANGUAGES, LanguageFactors, read_factors, write_factors
from tasks.language_model.model_folder import (
    SETTINGS,
    VOCABULARY,
    WEIGHTS,
    check_file,
    check_replaceable,
    checked_content,
    read_settings,
)
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.languages_and_positions import (
    LanguageTables,
    RotaryPositions,
    StateFusion,
    Turns,
    turned,
)
from tasks.language_model.vocabulary import Vocabulary, read_vocabulary
from tasks.settings.checks import as_plain, check_settings

_INITIAL_DEVIATION = 0.02


class PartNorm(nn.LayerNorm):
    """Layer norm of each of ``parts`` equal parts of the width separately, for a model that joins several."""

    def __init__(self, width: int, parts: int):
        super().__init__(width)
        self.parts = parts

    def forward(self, hidden: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        if self.parts == 1:
            return super().forward(hidden)
        divided = hidden.unflatten(-1, (self.parts, -1))
        plain = functional.layer_norm(divided, divided.shape[-1:], eps=self.eps).flatten(-2)
        return plain * self.weight + self.bias


class SteeredNorm(PartNorm):
    """The last layer norm, followed by h + h down up, a low-rank map (LM-Steer; ``joined.steered``)."""

    def __init__(self, width: int, parts: int, rank: int):
        super().__init__(width, parts)
        self.steering_down = nn.Parameter(torch.zeros(width, rank))
        self.steering_up = nn.Parameter(torch.zeros(rank, width))

    def forward(self, hidden: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        found = super().forward(hidden)
        return found + (found @ self.steering_down) @ self.steering_up


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, each with a layer norm before it and a residual connection."""

    def __init__(self, width: int, heads: int, parts: int = 1):
        super().__init__()
        self.heads = heads
        self.attention_norm = PartNorm(width, parts)
        self.attention_input = nn.Linear(width, 3 * width)
        self.attention_output = nn.Linear(width, width)
        self.feed_forward_norm = PartNorm(width, parts)
        self.feed_forward_input = nn.Linear(width, 4 * width)
        self.feed_forward_output = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.0)

    def forward(self, hidden: Tensor, visible: Tensor | None = None, turns: Turns | None = None) -> Tensor:
        """One layer: (B, T, D) to (B, T, D); ``visible`` and ``turns`` as for ``attend``."""
        hidden = hidden + self.dropout(self.attend(self.attention_norm(hidden), visible, turns))
        inner = functional.gelu(self.feed_forward_input(self.feed_forward_norm(hidden)), approximate="tanh")
        return hidden + self.dropout(self.feed_forward_output(inner))  # (B, T, D)

    def attend(self, hidden: Tensor, visible: Tensor | None = None, turns: Turns | None = None) -> Tensor:
        """Each position's mixture of itself and the positions before it: (B, T, D) to (B, T, D).

        ``visible`` (B, 1, T, T) says which positions (last axis) each position attends to; by default all up to itself.
        Without a gradient it may be the float added to the scores: 0, or -inf for hidden positions. ``turns`` are the
        turns of rotary positions.
        """
        batch, length, width = hidden.shape
        joined = self.attention_input(hidden).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = joined.permute(2, 0, 3, 1, 4)  # each (B, H, T, D/H)
        if turns is not None:
            query, key = turned(query, turns), turned(key, turns)
        if hidden.is_cuda or not torch.is_grad_enabled():
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=visible, is_causal=visible is None
            )
        else:
            mixed = causal_attention(query, key, value, visible)
        return self.attention_output(mixed.transpose(1, 2).reshape(batch, length, width))


def causal_attention(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None = None) -> Tensor:
    """Causal attention of (B, H, T, D/H), as two matrix products; ``visible`` as in ``Block.attend``.

    On a processor and in bfloat16, the backward pass of PyTorch's fused kernel takes five to eight times as long for
    sentences. The (B, H, T, T) weights stored here are small compared with the hidden states.
    """
    length = query.shape[-2]
    if visible is None:
        hidden = torch.full((length, length), -math.inf, dtype=query.dtype, device=query.device).triu(1)
    else:
        hidden = torch.zeros(visible.shape, dtype=query.dtype, device=query.device).masked_fill_(~visible, -math.inf)
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + hidden  # (B, H, T, T)
    return torch.softmax(scores, dim=-1).to(value.dtype) @ value


def within_segments(segments: Tensor) -> Tensor:
    """Mask (B, 1, T, T) of attention within a segment, up to the position itself; padding attends to padding."""
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return same.tril()


class TransformerLanguageModel(nn.Module):
    """Maps words to hidden states; callers apply the output projection, which is the word embedding.

    Sequences are padded on the right: no position attends to a later one, so padding needs no mask.
    """

    def __init__(self, architecture: ArchitectureSettings, vocabulary_size: int):
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Embedding(vocabulary_size, architecture.width)
        self.positions: nn.Embedding | RotaryPositions
        if architecture.positions == "learned":
            self.positions = nn.Embedding(architecture.maximum_tokens, architecture.width)
        else:
            self.positions = RotaryPositions(architecture, vocabulary_size)
        self.dropout = nn.Dropout(0.0)
        width, parts = architecture.width, architecture.parts
        self.blocks = nn.ModuleList(Block(width, architecture.heads, parts) for _ in range(architecture.layers))
        steering = architecture.steering
        self.final_norm = SteeredNorm(width, parts, steering) if steering else PartNorm(width, parts)
        self.state: StateFusion | None = None
        if architecture.languages and not architecture.positions.startswith("switching"):
            self.state = StateFusion(len(architecture.languages), vocabulary_size, architecture.width)
        self.languages: LanguageFactors | None = None
        """Factors for the language of the next word in scoring; ``None``: not used. No training changes them."""

    @property
    def is_stepwise(self) -> bool:
        """Whether a word's input is its vector and its position's vector alone, so that histories can be shared."""
        return self.architecture.positions == "learned" and self.state is None

    def know(self, factors: LanguageFactors) -> None:
        """Give the statistics of languages to the modules that use them."""
        for part in self.modules():
            if isinstance(part, LanguageTables):
                part.know(factors)

    def initialise(self, seed: int) -> None:
        """Draw all weights at random (GPT-2's scheme: residual branches are scaled down with depth)."""
        generator = torch.Generator().manual_seed(seed)
        branch_deviation = _INITIAL_DEVIATION / math.sqrt(2 * len(self.blocks))
        for name, parameter in self.named_parameters():
            if name.endswith("bias") or name == "state.weight":
                nn.init.zeros_(parameter)
            elif "norm" in name or name == "positions.pairs":
                nn.init.ones_(parameter)
            else:
                deviation = branch_deviation if "_output." in name else _INITIAL_DEVIATION
                nn.init.normal_(parameter, std=deviation, generator=generator)

    def forward(self, tokens: Tensor, places: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Hidden states (B, T, D) of token ids (B, T); position t predicts token t + 1.

        In rows of several windows, ``places`` (B, T) is each token's position in its window and ``segments`` (B, T) the
        window's number. No window attends to another, so the hidden states equal windows in separate rows.
        """
        hidden, turns = self.embedding(tokens), None  # (B, T, D)
        if isinstance(self.positions, RotaryPositions):
            turns = self.positions(tokens)
        else:
            hidden = hidden + (self.positions.weight[: tokens.shape[1]] if places is None else self.positions(places))
        hidden = self.dropout(hidden)
        visible = None if segments is None else within_segments(segments)
        for block in self.blocks:
            hidden = block(hidden, visible, turns)
        hidden = self.final_norm(hidden)
        return hidden if self.state is None else hidden + self.state(tokens)

    def logits(self, tokens: Tensor) -> Tensor:
        """Scores (B, T, V) of every next token. All are in memory at once, so use it for short texts."""
        return functional.linear(self.forward(tokens), self.embedding.weight)

    def parameter_count(self) -> int:
        """Number of trained parameters; the tied embedding counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


KIND = "transformer"
FORMAT = 1


def save_model(folder: str | Path, model: TransformerLanguageModel, vocabulary: Vocabulary) -> None:
    """Write a model folder; an earlier one is unchanged until the new one is complete.

    The folder has mode 0700 and its files 0600. Raises ``ModelError`` where the folder holds something else.
    """
    folder = Path(folder)
    check_replaceable(folder)
    with atomic_folder(folder, private=True) as fresh:
        weights = tensors_as_bytes({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
        document = {
            "format": FORMAT,
            "kind": KIND,
            "architecture": as_plain(model.architecture),
            "vocabulary": vocabulary.hash,
            "weights": hashlib.sha256(weights).hexdigest(),
            **write_factors(fresh, model.languages),
        }
        if model.languages is not None:
            document["files"] = [LANGUAGES]
        with atomic_writer(fresh / WEIGHTS, private=True, binary=True) as stream:
            stream.write(weights)
        vocabulary.write(fresh / VOCABULARY, private=True)
        with atomic_writer(fresh / SETTINGS, private=True) as stream:
            stream.write(json.dumps(document, indent=2) + "\n")


def load_model(folder: str | Path) -> tuple[TransformerLanguageModel, Vocabulary]:
    """Read a model folder; the model is in evaluation mode.

    Raises ``ModelError`` where the folder is missing, incomplete, or of another kind or format. It is also raised, with
    both hashes, where weights or vocabulary differ from the saved ones.
    """
    folder = Path(folder)
    document = read_settings(folder, KIND, FORMAT, ["architecture", "vocabulary", "weights"])
    check_file(folder / VOCABULARY, document["vocabulary"])
    vocabulary = read_vocabulary(folder / VOCABULARY)
    weights = checked_content(folder / WEIGHTS, document["weights"])
    architecture = check_settings(ArchitectureSettings, document["architecture"], f"{folder / SETTINGS}: architecture")
    model = TransformerLanguageModel(architecture, len(vocabulary))
    model.load_state_dict(read_tensors(weights))
    model.languages = read_factors(folder, document)
    return model.eval(), vocabulary
