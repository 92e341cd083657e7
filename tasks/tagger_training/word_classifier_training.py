"""Training of a classifier of words on labelled text, and on soft labels that other classifiers give to unlabelled
text.

The loss is the cross entropy of each token's class. If a corpus does not annotate a class, a word outside may be of it:
the loss then takes the sum of the probabilities of outside and the open classes. Soft labels (Hinton, Vinyals, Dean
2015) teach the names of people, places, organisations and works, which generated text writes in too few forms. They do
not cover classes recognisable by form, which count as outside there.

At every step some pieces are masked, so that the model uses the context. Some lines change case: lower, upper or title.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from tasks.tagger_training.settings import BY_FORM, WordClassifierTraining
from tasks.torch_setup import has_bfloat16, set_dropout
from tasks.training.steps import Steps, linear

_UNSURE = -1
"""Label of a token of unknown class."""
_CASE_SHARES = (("lower", 0.1), ("upper", 0.02), ("title", 0.03))
_SORTED_TOGETHER = 4096
_SOFT_AT_ONCE = 4
"""Factor of the size of soft batches: soft labels have no random errors, but there are many of them."""
_WARM_UP = 0.08
_WEIGHT_DECAY = 0.01
_LONGEST_LINE = 160
"""Longest line in pieces; later pieces are not used for training."""


@dataclass(frozen=True)
class Example:
    """A labelled line for training."""

    line: LabelledLine
    open_classes: frozenset[str] = frozenset()
    """Classes that its corpus does not annotate: a word outside may be of them."""
    unsure_classes: frozenset[str] = frozenset()
    """Classes whose words are not used for training."""


@dataclass(frozen=True)
class SoftExample:
    """A text and soft labels of its tokens: probabilities of outside and the classes, ``(T, C)``."""

    text: str
    probabilities: np.ndarray


@dataclass(frozen=True)
class _Learned:
    """An example in the form of the network's input."""

    text: EncodedText
    labels: np.ndarray
    """Labels: ``(T,)`` classes, or ``(T, C)`` probabilities."""
    open_classes: tuple[int, ...] = ()

    @property
    def is_soft(self) -> bool:
        return self.labels.ndim > 1


def train_word_classifier(
    examples: Iterable[Example | SoftExample],
    class_of: Callable[[str], str | None],
    settings: WordClassifierTraining,
    output: str | Path,
    entity_types: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Train, write the model's folder, and return the measurements.

    ``entity_types``: the classes in the order of the soft examples' probabilities; without soft examples, the classes
    of the labels. ``CorpusError`` if no token is labelled, ``ModelError`` if the base is no encoder, lacks the layers,
    or the loss is not finite.
    """
    check_tagger_folder(output)
    given = list(examples)
    if entity_types is None:
        lines = [example.line for example in given if isinstance(example, Example)]
        entity_types = sorted({name for line in lines for span in line.spans if (name := class_of(span.label))})
    classes = [OUTSIDE, *entity_types]
    torch.manual_seed(settings.seed)
    network, encoder = load_base(settings.base, len(classes))
    longest = min(_LONGEST_LINE, network.most_pieces)
    learned = [each for example in given if (each := _learned(example, class_of, classes, encoder, longest))]
    labelled = sum(int((each.labels > 0).sum()) for each in learned if not each.is_soft)
    if not labelled:
        raise CorpusError("the labelled text has no labelled word; a tagger needs some to learn from")
    set_dropout(network, settings.dropout)
    if settings.rank:
        _add_update(network, settings.rank)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).train()
    with plain_attention(network.body):
        loss = _train(network, encoder, learned, classes, settings, device)
    description = {"kind": KIND, "features": VERSION, "base": settings.base, "entity_types": list(entity_types)}
    write_tagger_folder(output, {WEIGHTS_FILE: _weights_of(network)}, description)
    return {
        "lines": len(learned),
        "tokens": sum(len(each.labels) for each in learned),
        "labelled_tokens": labelled,
        "entity_types": list(entity_types),
        "loss": loss,
    }


def _learned(
    example: Example | SoftExample,
    class_of: Callable[[str], str | None],
    classes: list[str],
    encoder: WordEncoder,
    longest: int,
) -> _Learned | None:
    """The network's input for a line; ``None`` if it has no token."""
    open_classes: tuple[int, ...] = ()
    if isinstance(example, SoftExample):
        text, labels = encoder(example.text), example.probabilities
    else:
        text = encoder(example.line.text)
        _, names = tokens_and_labels(example.line, class_of)
        bare = [name[2:] or OUTSIDE for name in names]
        labels = np.array([_UNSURE if name in example.unsure_classes else classes.index(name) for name in bare])
        open_classes = tuple(classes.index(name) for name in example.open_classes if name in classes)
    if not len(text.firsts):
        return None
    kept = int((text.firsts < longest).sum())
    short = EncodedText(text.pieces[:longest], text.kinds[:longest], text.firsts[:kept])
    return _Learned(short, labels[:kept], open_classes)


def _train(
    network: WordClassifierNetwork,
    encoder: WordEncoder,
    learned: Sequence[_Learned],
    classes: list[str],
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

    by_form = [0, *(classes.index(name) for name in BY_FORM if name in classes)]
    names = [index for index in range(len(classes)) if index not in by_form]
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
        log_probabilities = scores.float().log_softmax(dim=-1)
        labels = torch.from_numpy(np.concatenate([each.labels for each in some])).to(device)
        if some[0].is_soft:
            return _soft_loss(log_probabilities, labels, names, by_form)
        return _loss(log_probabilities, labels, some)

    losses = Steps(optimiser, next_loss, linear(len(plan), _WARM_UP), remedy="lower learning_rate").run(len(plan))
    last = losses[-max(1, len(plan) // 10) :]
    return sum(last) / len(last)


def _batches(learned: Sequence[_Learned], most: int, random: np.random.Generator) -> list[list[int]]:
    """Batches of examples in a new order, by similar length, soft ones separate; hard ones have at most ``most``
    pieces, with padding."""
    batches: list[list[int]] = []
    lengths = [len(each.text.pieces) + 2 for each in learned]
    order = random.permutation(len(learned))
    for begin in range(0, len(order), _SORTED_TOGETHER):
        some = order[begin : begin + _SORTED_TOGETHER].tolist()
        for soft, size in ((False, most), (True, _SOFT_AT_ONCE * most)):
            of_kind = [index for index in some if learned[index].is_soft is soft]
            batches += padded_batches(of_kind, lengths.__getitem__, size)
    random.shuffle(batches)
    return batches


def _loss(log_probabilities: torch.Tensor, labels: torch.Tensor, some: Sequence[_Learned]) -> torch.Tensor:
    """The mean loss over the tokens of known class, from ``(N, C)`` and ``(N,)``."""
    wanted = torch.nn.functional.one_hot(labels.clamp(min=0), log_probabilities.shape[1]).bool()  # (N, C)
    begin = 0
    for each in some:
        if each.open_classes:
            rows = slice(begin, begin + len(each.labels))
            wanted[rows, list(each.open_classes)] |= (labels[rows] == 0)[:, None]
        begin += len(each.labels)
    losses = -log_probabilities.masked_fill(~wanted, -torch.inf).logsumexp(dim=-1)
    known = labels != _UNSURE
    return losses[known].sum() / known.sum().clamp(min=1)


def _soft_loss(
    log_probabilities: torch.Tensor, wanted: torch.Tensor, names: Sequence[int], others: Sequence[int]
) -> torch.Tensor:
    """The cross entropy of ``(N, C)`` over the classes of names and the sum of all others."""
    wanted = wanted / wanted.sum(dim=-1, keepdim=True)
    named = (wanted[:, names] * log_probabilities[:, names]).sum(dim=-1)
    rest = wanted[:, others].sum(dim=-1) * log_probabilities[:, others].logsumexp(dim=-1)
    return -(named + rest).mean()


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
