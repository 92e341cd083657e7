"""How long an experiment takes, step by step: the work that the settings ask for over the rates of this machine.

It is an estimate, good to a factor of two or three: it decides between an hour, a day and a month.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.doctor.machine import Machine
from tasks.doctor.parameter_counts import hub_parameters, transformer_parameters
from tasks.doctor.rates import PIECES_PER_MARKER, SCORING_FACTOR, TRAINING_FACTOR, Rates
from tasks.doctor.text_sizes import TextSize, masked_share
from tasks.parameters.parameter_file import Parameters

_START_SECONDS, _MODEL_START_SECONDS = 2.0, 6.0
"""Of every stage: the process, its imports and the hashes of its files; with PyTorch it takes longer."""
_MODEL_LOAD_BYTES_PER_SECOND = 1e9
_CLEANING_WORDS_PER_SECOND = 500_000
_DUMP_BYTES, _DUMP_BYTES_PER_SECOND = 15e9, 4.5e6
"""Of a month of Reddit comments, compressed."""
_PIECES_PER_WORD = 1.3
_CAUSAL_PIECES_PER_MARKER = 60
"""Left-hand context, and the pieces of the candidates with what follows them."""
_BOOTSTRAP_SECONDS = 1.0
_DETECTOR_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step of the graph."""

    step: str
    stages: int
    seconds: float
    """Of all its stages, one after the other."""
    basis: str

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Workload:
    """What the estimates are made from."""

    parameters: Parameters
    sizes: dict[str, TextSize]
    rates: Rates
    machine: Machine
    root: Path

    @property
    def training_devices(self) -> int:
        """Devices that one training uses: those asked for, and no more than there are."""
        return min(self.parameters.resources.devices, max(len(self.machine.gpus), 1))


def estimate_steps(work: Workload, cells: dict[str, list[dict[str, Any]]]) -> list[StepEstimate]:
    """One estimate per step that has stages, in the order of the graph."""
    estimates = []
    for step, items in cells.items():
        if not items:
            continue
        model = _model_of(step, items[0], work)
        seconds = sum(model.start_seconds + model.seconds_of(item) for item in items)
        estimates.append(StepEstimate(step, len(items), seconds, model.basis))
    return estimates


@dataclass(frozen=True, slots=True)
class _StepModel:
    """How the time of one stage of a step is estimated."""

    needs: tuple[str, ...]
    """Keys of a stage's item that the estimate is made from."""
    seconds_of: Callable[[dict[str, Any]], float]
    basis: str
    start_seconds: float = _START_SECONDS


_UNKNOWN_STEP = _StepModel((), lambda item: 0.0, "assumed: little work")


def _model_of(step: str, item: dict[str, Any], work: Workload) -> _StepModel:
    """By the beginning of the step's name, which its variants have in common; an unknown step is thought short."""
    rates, kind = work.rates, work.parameters.language_model.kind
    training = f"training: {rates.training.basis}"
    language_model = training if kind == "transformer" else f"{kind}: assumed"
    filling, start = f"filling: {rates.filling.basis}", _MODEL_START_SECONDS
    scoring = f"scoring, at the rate of filling: {rates.filling.basis}"
    known = {
        "generic": _StepModel((), lambda item: _corpus("generic", work), "assumed"),
        "corpus": _StepModel(("key",), lambda item: _corpus(item["key"], work), "assumed"),
        "word_counts": _StepModel((), lambda item: _corpus("generic", work), "assumed"),
        "mask": _StepModel(
            ("dataset", "technique"), lambda item: _mask(item, work), f"masking: {rates.list_masking.basis}"
        ),
        "train_filler": _StepModel(("filler",), lambda item: _train_filler(item["filler"], work), training, start),
        "tune_filler": _StepModel(("tuning",), lambda item: _tune_filler(item["tuning"], work), training, start),
        "fill_control": _StepModel(
            ("dataset", "technique"),
            lambda item: _markers(item, work) / rates.control_filling.value,
            f"filling: {rates.control_filling.basis}",
        ),
        "fill": _StepModel(("dataset", "technique", "filler"), lambda item: _fill(item, work), filling, start),
        "pretrain": _StepModel((), lambda item: _pretrain(work), language_model, start),
        "adapt": _StepModel(("dataset",), lambda item: _adapt(item["dataset"], work), language_model, start),
        "evaluate_masking": _StepModel((), lambda item: _DETECTOR_SECONDS, "assumed"),
        "train_tagger": _StepModel(("tagger",), lambda item: _train_tagger(item["tagger"], work), "assumed"),
        "evaluate": _StepModel(("dataset",), lambda item: _evaluate(item["dataset"], work), scoring, start),
    }
    # The longest name that fits: fill_control is no fill, and adapt_oracle is an adapt.
    for prefix in sorted(known, key=len, reverse=True):
        if (step == prefix or step.startswith(f"{prefix}_")) and item.keys() >= set(known[prefix].needs):
            return known[prefix]
    return _UNKNOWN_STEP


def _corpus(name: str, work: Workload) -> float:
    settings = work.parameters.generic if name == "generic" else work.parameters.corpora[name]
    size = work.sizes.get(name)
    if size is None:
        return 0.0
    # The source is read twice.
    seconds = 2 * size.train_words / _CLEANING_WORDS_PER_SECOND
    if settings.kind == "pushshift":
        # All of a dump is decompressed, whatever is taken of it.
        place = work.root / settings.source
        files = [place] if place.is_file() else list(place.rglob("RC_*"))
        seconds += 2 * (sum(file.stat().st_size for file in files) or _DUMP_BYTES) / _DUMP_BYTES_PER_SECOND
    return seconds


def _train_tagger(name: str, work: Workload) -> float:
    per_sentence = {"crf": 0.005, "spacy": 0.03}[work.parameters.taggers[name].kind]
    return per_sentence * work.parameters.labelled_text.sentences


def _mask(item: dict[str, Any], work: Workload) -> float:
    return _masking_seconds(work.parameters.masking[item["technique"]], work.sizes[item["dataset"]].train_words, work)


def _masking_seconds(technique: Any, words: int, work: Workload) -> float:
    if technique.kind == "combination":
        return sum(_masking_seconds(part, words, work) for part in technique.parts)
    if technique.kind != "entity_tagger":
        return words / work.rates.list_masking.value
    tagger = technique.tagger
    if tagger.kind != "transformers":
        return words / work.rates.tagging[tagger.kind].value
    count = hub_parameters(tagger.model, work.root) or 110_000_000
    return SCORING_FACTOR * count * words * _PIECES_PER_WORD / work.rates.filling.value


def _filler_size(name: str, work: Workload) -> int:
    return hub_parameters(work.parameters.fillers[name].model, work.root) or 110_000_000


def _base(name: str, work: Workload) -> str:
    """The filler of ``fillers`` that a tuned one goes back to."""
    bases = {
        tuning.filler: tuning.base
        for tuning in (*work.parameters.compare.tunings, *work.parameters.compare.tunings_again)
    }
    while name in bases and name not in work.parameters.fillers:
        name = bases[name]
    return name


def _train_filler(name: str, work: Workload) -> float:
    filler, count = work.parameters.fillers[name], _filler_size(name, work)
    loading = 4 * count / _MODEL_LOAD_BYTES_PER_SECOND
    if filler.kind == "masked_lm":
        training = filler.train_head
        pieces = training.steps * training.batch_pieces if training else 0
    else:
        lora = filler.lora
        pieces = lora.steps * lora.batch_sentences * lora.longest_sentence if lora else 0
    return loading + TRAINING_FACTOR * count * pieces / work.rates.training.value


def _tune_filler(tuning: dict[str, str], work: Workload) -> float:
    settings = work.parameters.tuned_fillers[tuning["filler"]]
    count = _filler_size(_base(tuning["base"], work), work)
    if settings.kind == "masked_lm":
        pieces = settings.steps * settings.batch_pieces
    else:
        pieces = settings.steps * settings.batch_sentences * settings.longest_sentence
    return 4 * count / _MODEL_LOAD_BYTES_PER_SECOND + TRAINING_FACTOR * count * pieces / work.rates.training.value


def _markers(item: dict[str, Any], work: Workload) -> float:
    dataset, technique = item["dataset"], work.parameters.masking[item["technique"]]
    share = masked_share(work.parameters.corpora[dataset].kind, technique.kind)
    return share * work.sizes[dataset].train_words


def _fill(item: dict[str, Any], work: Workload) -> float:
    name = _base(item["filler"], work)
    count = _filler_size(name, work)
    causal = work.parameters.fillers[name].kind == "causal_lm"
    pieces = _CAUSAL_PIECES_PER_MARKER if causal else PIECES_PER_MARKER
    loading = (2 if causal else 4) * count / _MODEL_LOAD_BYTES_PER_SECOND
    return loading + _markers(item, work) * pieces * SCORING_FACTOR * count / work.rates.filling.value


def _language_model_size(work: Workload) -> int:
    settings = work.parameters.language_model
    if settings.kind == "causal_lm" and settings.causal_lm:
        return hub_parameters(settings.causal_lm.model, work.root) or 110_000_000
    return transformer_parameters(settings)


def _pretrain(work: Workload) -> float:
    settings, size = work.parameters.language_model, work.sizes["generic"]
    tokens = size.train_words + size.train_sentences
    if settings.kind == "ngram":
        return tokens / 1e5
    if settings.kind == "causal_lm":
        return 4 * _language_model_size(work) / _MODEL_LOAD_BYTES_PER_SECOND
    operations = TRAINING_FACTOR * _language_model_size(work) * tokens * settings.pretraining.epochs
    return operations / work.rates.training.value / work.training_devices


def _adapt(dataset: str, work: Workload) -> float:
    settings, size = work.parameters.language_model, work.sizes[dataset]
    tokens = size.train_words + size.train_sentences
    if settings.kind == "ngram":
        return tokens / 1e5
    causal = settings.causal_lm if settings.kind == "causal_lm" else None
    training = causal.adaptation if causal else settings.adaptation
    passes = training.epochs / (1 - getattr(training, "generic_share", 0.0))
    operations = TRAINING_FACTOR * _language_model_size(work) * tokens * passes
    return operations / work.rates.training.value / work.training_devices


def _evaluate(dataset: str, work: Workload) -> float:
    size = work.sizes[dataset]
    tokens = size.test_words + size.test_sentences
    if work.parameters.language_model.kind == "ngram":
        return _BOOTSTRAP_SECONDS + tokens / 1e5
    operations = SCORING_FACTOR * _language_model_size(work) * tokens
    return _BOOTSTRAP_SECONDS + operations / work.rates.filling.value
