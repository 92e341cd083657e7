"""The language model's benchmarks: shapes, a synthetic text, and Hugging Face's model of the same weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.turns import row
from tasks.records.stage_report import peak_memory_bytes

MAXIMUM_TOKENS = 128


@dataclass(frozen=True)
class Workload:
    """The shape of a model, and how much text it reads."""

    words: int
    width: int
    targets: int
    """Targets of the text, about."""
    layers: int = 3
    heads: int = 4


def resident_peak() -> float:
    """The most memory that this process has had, in MB."""
    return peak_memory_bytes() / 2**20


def example(workload: Workload) -> tuple[Any, Any]:
    """A model of random weights, and a text of Zipf-distributed words in sentences of 3 to 40 words."""
    from tasks.language_model.encoded_text import EncodedText
    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

    generator = np.random.default_rng(1)
    first = len(SPECIAL_TOKENS)
    frequencies = 1 / np.arange(1, workload.words - first + 1)
    sentences: list[list[int]] = []
    targets = 0
    while targets < workload.targets:
        words = generator.choice(
            workload.words - first, size=generator.integers(3, 41), p=frequencies / frequencies.sum()
        )
        sentences.append([START_ID, *(words + first), END_ID])
        targets += len(words) + 1
    lengths = np.array([len(sentence) for sentence in sentences])
    text = EncodedText(
        tokens=np.concatenate(sentences).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        lines=np.arange(1, len(sentences) + 1),
        empty_lines=0,
        marker_like=0,
        markers_are_targets=True,
    )
    architecture = ArchitectureSettings(
        layers=workload.layers, heads=workload.heads, width=workload.width, maximum_tokens=MAXIMUM_TOKENS
    )
    model = TransformerLanguageModel(architecture, workload.words)
    model.initialise(1)
    return model, text


def ratio_row(name: str, key: str, ours: dict[str, float], peer: dict[str, float], target: str) -> dict[str, Any]:
    """A row of two measures of the same ``key``; ``target`` is of their ratio."""
    ratio = ours[key] / peer[key]
    sign, limit = target.split()
    holds = ratio >= float(limit) if sign == ">=" else ratio <= float(limit)
    unit = {"tokens_per_second": "tokens/s", "megabytes": "MB"}[key]
    return row(name, round(ours[key], 1), round(peer[key], 1), unit, round(ratio, 3), target, holds)


def loss_row(name: str, ours: dict[str, float], peer: dict[str, float]) -> dict[str, Any]:
    """Whether two losses are the same to 4 decimals."""
    difference = abs(ours["loss"] - peer["loss"])
    name, unit = f"{name} (ratio: absolute difference)", "nats a token, float32"
    losses = round(ours["loss"], 6), round(peer["loss"], 6)
    return row(name, *losses, unit, round(difference, 7), "< 0.00005", difference < 0.00005)


def peer_model(workload: Workload, model: Any) -> Any:
    """``GPT2LMHeadModel`` with the weights of ``model``."""
    from transformers import GPT2Config, GPT2LMHeadModel

    configuration = GPT2Config(
        vocab_size=workload.words, n_positions=MAXIMUM_TOKENS + 1, n_embd=workload.width, n_layer=workload.layers,
        n_head=workload.heads, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=2, eos_token_id=3,
        use_cache=False,
    )  # fmt: skip
    peer = GPT2LMHeadModel(configuration)
    _copy_weights(model, peer)
    return peer


def as_labels(batch: Any) -> dict[str, Any]:
    """A batch as Hugging Face takes it: inputs (B, T + 1) and, shifted by the model itself, labels (B, T + 1)."""
    import torch

    rows, length = batch.tokens.shape
    following = torch.full((rows * length,), -100)
    following[batch.positions] = batch.targets
    following = following.view(rows, length)
    inputs = torch.cat([batch.tokens[:, :1], following.clamp(min=0)], dim=1)
    labels = torch.cat([torch.full((rows, 1), -100), following], dim=1)
    return {"input_ids": inputs, "labels": labels}


def _copy_weights(model: Any, peer: Any) -> None:
    import torch

    names = {
        "attention_norm": "ln_1", "attention_input": "attn.c_attn", "attention_output": "attn.c_proj",
        "feed_forward_norm": "ln_2", "feed_forward_input": "mlp.c_fc", "feed_forward_output": "mlp.c_proj",
    }  # fmt: skip
    state = peer.state_dict()
    with torch.no_grad():
        state["transformer.wte.weight"].copy_(model.embedding.weight)
        state["transformer.wpe.weight"][:MAXIMUM_TOKENS].copy_(model.positions.weight)
        for name, parameter in model.final_norm.named_parameters():
            state[f"transformer.ln_f.{name}"].copy_(parameter)
        for index, block in enumerate(model.blocks):
            for name, parameter in block.named_parameters():
                part, kind = name.split(".")
                # GPT-2 keeps its matrices transposed.
                source = parameter.t() if parameter.dim() == 2 else parameter
                state[f"transformer.h.{index}.{names[part]}.{kind}"].copy_(source)
