"""Training of a classifier of words on labelled text. The loss is the cross entropy of each token's class.

At every step some pieces are masked, so that the model uses the context. Some lines change case: lower, upper or title.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tasks.batches import padded_batches
from tasks.causal_model import plain_attention
from tasks.errors import CorpusError
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.taggers.crf_tagger import OUTSIDE
from tasks.masking.taggers.tagger_folder import check_tagger_folder, write_tagger_folder
from tasks.masking.taggers.word_classifier import (
    DOWN,
    KIND,
    UP,
    VERSION,
    WEIGHTS_FILE,
    EncodedText,
    WordClassifierNetwork,
    WordEncoder,
    batch_of,
    load_base,
    with_case,
)
from tasks.tagger_training.crf_training import tokens_and_labels
from tasks.tagger_training.settings import WordClassifierTraining
from tasks.torch_setup import has_bfloat16, set_dropout
from tasks.training.steps import Steps, linear

_CASE_SHARES = (("lower", 0.1), ("upper", 0.02), ("title", 0.03))
_SORTED_TOGETHER = 4096
_WARM_UP = 0.08
_WEIGHT_DECAY = 0.01
_LONGEST_LINE = 160
"""Longest line in pieces; later pieces are not used for training."""


class _Learned(NamedTuple):
    """A line as the network's input, and the class of each token ``(T,)``."""

    text: EncodedText
    labels: np.ndarray


def train_word_classifier(
    lines: Iterable[LabelledLine],
    class_of: Callable[[str], str | None],
    settings: WordClassifierTraining,
    output: str | Path,
) -> dict[str, Any]:
    """Train, write the model's folder, and return the measurements.

    ``CorpusError`` if no token is labelled, ``ModelError`` if the base is no encoder, lacks the layers, or the loss is
    not finite.
    """
    check_tagger_folder(output)
    lines = list(lines)
    entity_types = sorted({name for line in lines for span in line.spans if (name := class_of(span.label))})
    classes = [OUTSIDE, *entity_types]
    torch.manual_seed(settings.seed)
    network, encoder = load_base(settings.base, len(classes))
    longest = min(_LONGEST_LINE, network.most_pieces)
    learned = [each for line in lines if (each := _learned(line, class_of, classes, encoder, longest))]
    labelled = sum(int((each.labels > 0).sum()) for each in learned)
    if not labelled:
        raise CorpusError("the labelled text has no labelled word; a tagger needs some to learn from")
    set_dropout(network, settings.dropout)
    if settings.rank:
        _add_update(network, settings.rank)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).train()
    with plain_attention(network.body):
        loss = _train(network, encoder, learned, settings, device)
    description = {"kind": KIND, "features": VERSION, "base": settings.base, "entity_types": entity_types}
    write_tagger_folder(output, {WEIGHTS_FILE: _weights_of(network)}, description)
    return {
        "lines": len(learned),
        "tokens": sum(len(each.labels) for each in learned),
        "labelled_tokens": labelled,
        "entity_types": entity_types,
        "loss": loss,
    }


def _learned(
    line: LabelledLine,
    class_of: Callable[[str], str | None],
    classes: list[str],
    encoder: WordEncoder,
    longest: int,
) -> _Learned | None:
    """The network's input for a line; ``None`` if it has no token."""
    text = encoder(line.text)
    _, names = tokens_and_labels(line, class_of)
    labels = np.array([classes.index(name[2:] or OUTSIDE) for name in names])
    if not len(text.firsts):
        return None
    kept = int((text.firsts < longest).sum())
    short = EncodedText(text.pieces[:longest], text.kinds[:longest], text.firsts[:kept])
    return _Learned(short, labels[:kept])


def _train(
    network: WordClassifierNetwork,
    encoder: WordEncoder,
    learned: Sequence[_Learned],
    settings: WordClassifierTraining,
    device: torch.device,
) -> float:
    """The mean loss of the last tenth of the steps."""
    random = np.random.default_rng(settings.seed)
    plan = [batch for _ in range(settings.epochs) for batch in _batches(learned, settings.batch_pieces, random)]
    fresh = [*network.kinds.parameters(), *network.head.parameters()]
    body = [parameter for parameter in network.body.parameters() if parameter.requires_grad]
    rates = (settings.learning_rate, settings.new_learning_rate)
    groups = [{"params": part, "lr": rate} for part, rate in zip((body, fresh), rates, strict=True)]
    optimiser = torch.optim.AdamW(groups, weight_decay=_WEIGHT_DECAY, fused=True)

    lower = has_bfloat16()
    generator = torch.Generator(device).manual_seed(settings.seed)
    batches = iter(plan)

    def next_loss() -> torch.Tensor:
        some = [learned[index] for index in next(batches)]
        batch = batch_of([each.text for each in some], encoder, device)
        lines = torch.rand(len(some), device=device, generator=generator)
        kinds, least = batch.kinds, 0.0
        for case, share in _CASE_SHARES:
            kinds = with_case(kinds, case, (lines >= least) & (lines < least + share))
            least += share
        pieces = batch.pieces
        if encoder.mask is not None:
            hidden = torch.rand(pieces.shape, device=device, generator=generator) < settings.hidden_share
            pieces = torch.where(hidden & (batch.kinds > 0), encoder.mask, pieces)
        with torch.autocast(device.type, torch.bfloat16, enabled=lower):
            scores = network(batch._replace(pieces=pieces, kinds=kinds))
        labels = torch.from_numpy(np.concatenate([each.labels for each in some])).to(device)
        log_probabilities = scores.float().log_softmax(dim=-1)  # (N, C)
        return -log_probabilities.gather(1, labels[:, None]).sum() / len(labels)

    losses = Steps(optimiser, next_loss, linear(len(plan), _WARM_UP), remedy="lower learning_rate").run(len(plan))
    last = losses[-max(1, len(plan) // 10) :]
    return sum(last) / len(last)


def _batches(learned: Sequence[_Learned], most: int, random: np.random.Generator) -> list[list[int]]:
    """Batches of lines in a new order, by similar length, of at most ``most`` pieces with padding."""
    batches: list[list[int]] = []
    lengths = [len(each.text.pieces) + 2 for each in learned]
    order = random.permutation(len(learned))
    for begin in range(0, len(order), _SORTED_TOGETHER):
        some = order[begin : begin + _SORTED_TOGETHER].tolist()
        batches += padded_batches(some, lengths.__getitem__, most)
    random.shuffle(batches)
    return batches


def _add_update(network: WordClassifierNetwork, rank: int) -> None:
    """Train only a low-rank update of every matrix of the encoder's layers, and its vectors."""
    from peft import LoraConfig, inject_adapter_in_model

    configuration = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    inject_adapter_in_model(configuration, network.body)
    for name, parameter in network.body.named_parameters():
        parameter.requires_grad = "lora_" in name or parameter.ndim == 1


def _weights_of(network: WordClassifierNetwork) -> bytes:
    """The weights that training changed, in the format of ``apply_weights``."""
    from safetensors.torch import save

    weights = {}
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        weight = parameter.detach().float().cpu()
        name = name.replace(".base_layer", "")
        if ".lora_A." in name:
            name = name.replace(".lora_A.default.weight", ".weight" + DOWN)
        elif ".lora_B." in name:
            name, weight = name.replace(".lora_B.default.weight", ".weight" + UP), weight * 2
        weights[name] = weight.half().contiguous()
    return save(weights)
