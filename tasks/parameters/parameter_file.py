"""``params.yaml`` as one frozen tree that refuses unknown keys and reports all problems at once.

A stage reads only the sections it depends on: ``read_sections(path, ["masking.allow_list"])``. The same key paths
stand under ``params:`` of that stage in ``dvc.yaml``, and a test holds the two against each other. Two sections
never change a number's meaning and are no dependency of any stage: ``resources`` (recorded in every report) and
``tracking``.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from tasks.corpora.settings import CorpusSettings, WordCountSettings
from tasks.errors import ParameterError
from tasks.filling.filler_settings import FillerSettings
from tasks.filling.settings import FillingSettings
from tasks.filling.training.tuning_settings import TuningSettings
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.language_model.settings import EvaluationSettings, LanguageModelSettings
from tasks.masking.settings import TechniqueSettings
from tasks.masking_evaluation.settings import MaskingEvaluationSettings
from tasks.parameters.method_problems import method_problems
from tasks.parameters.seeds import Seed
from tasks.parameters.setting_problems import describe_problems
from tasks.parameters.settings_base import Settings
from tasks.parameters.tunings import Tuning, tuning_problems
from tasks.reports.downstream_names import is_downstream
from tasks.reports.tracking.settings import TrackingSettings
from tasks.speech.settings import SpeechSection
from tasks.spelling import nearest
from tasks.tagger_training.settings import TaggerTrainingSettings

DEFAULT_PATH = "params.yaml"
AMBIENT_SECTIONS = ("resources", "tracking")
"""Sections that every stage may read and none depends on."""


class CompareSettings(Settings):
    """The dimensions of the experiment: what ``dvc.yaml`` builds its matrices from."""

    datasets: list[str] = Field(min_length=1)
    """Private corpora, keys of ``corpora``."""
    techniques: list[str] = Field(min_length=1)
    """Masking techniques, keys of ``masking``."""
    baselines: list[str]
    """Adaptation on the masked text itself: ``baseline0``, ``baseline1`` (paper 4.2)."""
    fillers: list[str]
    """Models that fill, keys of ``fillers``."""
    methods: list[str]
    """Ways to choose among a filler's candidates, keys of ``filling``."""
    language_model_methods: list[str] = Field(default_factory=list)
    """The same, for ways that ask the downstream language model too; their names begin with ``downstream``."""
    large_techniques: list[str] = Field(default_factory=list)
    """Those of ``techniques`` that the large fillers are for, which are too slow for all."""
    large_fillers: list[str] = Field(default_factory=list)
    """Other models that fill or are tuned, keys of ``fillers``."""
    large_methods: list[str] = Field(default_factory=list)
    """Ways to choose among their candidates, keys of ``filling``."""
    tunings: list[Tuning]
    """Fillers to fine-tune on each masked corpus (paper 3.2), from a base among ``fillers`` and ``large_fillers``."""
    tunings_again: list[Tuning]
    """Further rounds: the base is itself the filler of one of ``tunings`` or ``tunings_again``."""
    tuned_fillers: list[str]
    """Which of all these fill."""
    tuned_methods: list[str]
    """Ways to choose among their candidates, keys of ``filling``."""
    controls: list[str]
    """Ways to fill that use no model, keys of ``filling``."""
    seeds: list[Seed] = Field(min_length=1)
    """One complete repetition of filling and adaptation per seed."""
    speech_datasets: list[str] = Field(default_factory=list)
    """Those of ``datasets`` that have speech, keys of ``speech.corpora``: they have word error rates too."""
    rescored_datasets: list[str] = Field(default_factory=list)
    """Others of ``datasets``, which have n-best lists of another recogniser, keys of ``speech.nbest``: their word error
    rates come from rescoring."""
    recognisers: list[Literal["recogniser"]] = Field(default_factory=list)
    """``[recogniser]``: there is one to train; empty where no dataset has speech, or ``models/recogniser`` is yours."""
    taggers: list[str]
    """Taggers to train, keys of ``taggers``."""
    detectors: list[str]
    """Masking techniques that are held against labelled text, keys of ``masking``."""
    gold_sets: list[str]
    """Labelled texts, keys of ``masking_evaluation.gold_sets``."""


class ConcurrencySettings(Settings):
    """Steps that share something scarce, such as a GPU: a Prefect tag with a limit."""

    limit: int = Field(ge=1)
    """How many of these stages run at once, over all runs that report to the same Prefect server."""
    steps: list[str] = Field(min_length=1)
    """Names of steps in ``dvc.yaml``; ``*`` and ``?`` may stand in them."""


class ResourceSettings(Settings):
    """What a run may use of the machine."""

    threads: int = Field(ge=1)
    """Threads of one stage; recorded in reports, since the order of a sum can change its last digits."""
    parallel_stages: int = Field(ge=1)
    """How many stages ``palimpsest run`` runs at once."""
    concurrency: dict[str, ConcurrencySettings] = Field(default_factory=dict)
    """Further limits, by the Prefect tag that the steps get: ``{gpu: {limit: 1, steps: ["adapt_*", pretrain]}}``."""
    time_limits: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Seconds after which ``palimpsest run`` stops a stage, by step; the first entry that fits counts. Names may have
    ``*`` and ``?``: ``{pretrain: 7200, "*": 3600}``."""
    retries: int = Field(default=2, ge=0)
    """How often ``palimpsest run`` tries a stage again that failed of something that can pass: a lock, the network,
    memory."""
    retry_seconds: float = Field(default=10.0, ge=0)
    """Time before it is tried again; twice as long before each further time."""
    devices: int = Field(default=1, ge=1)
    """Devices of one machine that a language model is trained on: GPUs, or processes where there is none."""
    nodes: int = Field(default=1, ge=1)
    """Machines that it is trained on; with more than one, torchrun starts the command on each."""
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    """``ddp``: every device has the whole model; ``fsdp``: each has a part; ``auto``: ``ddp`` on several devices."""
    compile: bool = False
    """Whether training compiles the model first: a minute or two, which a long run earns back."""
    checkpoint_seconds: float = Field(default=600.0, ge=0)
    """Time between two checkpoints of a training run; 0: none by time."""
    checkpoint_steps: int = Field(default=0, ge=0)
    """Optimiser steps between two checkpoints of a training run; 0: none by steps."""


class Parameters(Settings):
    """The whole of ``params.yaml``."""

    compare: CompareSettings
    generic: CorpusSettings
    """The generic corpus."""
    word_counts: WordCountSettings
    """Frequencies of generic words: for the vocabulary threshold, the fill by frequency and the vocabulary."""
    corpora: dict[str, CorpusSettings]
    """Private corpora by name."""
    masking: dict[str, TechniqueSettings]
    """Masking techniques by name."""
    labelled_text: LabelledTextSettings
    """Labelled text made from templates."""
    taggers: dict[str, TaggerTrainingSettings]
    """Taggers by name, and how they are trained."""
    masking_evaluation: MaskingEvaluationSettings
    """Labelled texts that techniques are held against."""
    fillers: dict[str, FillerSettings]
    """Filler models by name."""
    tuned_fillers: dict[str, TuningSettings]
    """Fillers that are fine-tuned on a masked corpus, by name, and how."""
    filling: dict[str, FillingSettings]
    """Filling methods by name."""
    language_model: LanguageModelSettings
    evaluation: EvaluationSettings
    speech: SpeechSection
    resources: ResourceSettings
    tracking: TrackingSettings

    @model_validator(mode="after")
    def _names_exist(self) -> "Parameters":
        # It takes the dimensions from here.
        from tasks.reports.expected_cells import BASELINES, NO_LANGUAGE_MODEL, ORACLE, PRETRAINED

        compare = self.compare
        downstream = [name for name, settings in self.filling.items() if settings.kind == "downstream"]
        with_filler = [name for name, settings in self.filling.items() if settings.uses_filler]
        with_filler = [name for name in with_filler if name not in downstream]
        tuned = [tuning.filler for tuning in (*compare.tunings, *compare.tunings_again)]
        dimensions: list[tuple[str, Sequence[str], str, Iterable[str]]] = [
            ("datasets", compare.datasets, "corpora", self.corpora),
            ("techniques", compare.techniques, "masking", self.masking),
            ("baselines", compare.baselines, "", BASELINES),
            ("speech_datasets", compare.speech_datasets, "speech.corpora", self.speech.corpora),
            ("speech_datasets", compare.speech_datasets, "compare.datasets", compare.datasets),
            ("rescored_datasets", compare.rescored_datasets, "speech.nbest", self.speech.nbest),
            ("rescored_datasets", compare.rescored_datasets, "compare.datasets", compare.datasets),
            ("taggers", compare.taggers, "taggers", self.taggers),
            ("detectors", compare.detectors, "masking", self.masking),
            ("gold_sets", compare.gold_sets, "masking_evaluation.gold_sets", self.masking_evaluation.gold_sets),
            ("fillers", compare.fillers, "fillers", self.fillers),
            ("methods", compare.methods, "filling", with_filler),
            ("language_model_methods", compare.language_model_methods, "filling", downstream),
            ("large_techniques", compare.large_techniques, "compare.techniques", compare.techniques),
            ("large_fillers", compare.large_fillers, "fillers", [n for n in self.fillers if n not in compare.fillers]),
            ("large_methods", compare.large_methods, "filling", with_filler),
            ("controls", compare.controls, "filling", [n for n, s in self.filling.items() if not s.uses_filler]),
            ("tuned_fillers", compare.tuned_fillers, "", tuned),
            ("tuned_methods", compare.tuned_methods, "filling", with_filler),
        ]
        problems = [*tuning_problems(self), *method_problems(self)]
        # Stages tell these methods from others by their names.
        problems += [
            f"filling: {name!r} is of kind {settings.kind!r}; names that begin with 'downstream' are for kind "
            "'downstream', and no others"
            for name, settings in self.filling.items()
            if is_downstream(name) != (settings.kind == "downstream")
        ]
        references = (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE, *BASELINES)
        problems += [
            f"filling: {name!r} is what tables call one of the models that methods are compared with "
            f"({', '.join(references)}); name the method otherwise"
            for name in self.filling
            if name in references
        ]
        for dimension, names, section, allowed in dimensions:
            allowed = sorted(allowed)
            for name in names:
                if name not in allowed:
                    where = f"no key of {section!r} that fits" if section else "not known"
                    problems.append(
                        f"compare.{dimension}: {name!r} is {where}{nearest(name, allowed)}; "
                        f"allowed: {', '.join(allowed) or 'none'}"
                    )
        for dimension, names in compare:
            if len(set(names)) != len(names):
                problems.append(f"compare.{dimension}: a name stands twice in {names!r}")
        problems += [
            f"compare.rescored_datasets: {name!r} is one of compare.speech_datasets too; a data set has one recogniser"
            for name in compare.rescored_datasets
            if name in compare.speech_datasets
        ]
        for name in [
            *self.corpora,
            *self.masking,
            *self.taggers,
            *self.masking_evaluation.gold_sets,
            *self.fillers,
            *self.tuned_fillers,
            *self.filling,
            *self.speech.corpora,
            *self.speech.nbest,
        ]:
            if not name.replace("_", "").isalnum() or not name.isascii():
                problems.append(f"{name!r}: a name in params.yaml has letters, digits and underscores only")
        if problems:
            raise ValueError("\n".join(problems))
        return self


def read_parameters(path: str | Path = DEFAULT_PATH) -> Parameters:
    """Read and check the whole file.

    Raises ``ParameterError`` with every problem at once, each with its key path, the bad value and what is
    allowed.
    """
    document = _load(path)
    try:
        return Parameters.model_validate(document)
    except ValidationError as error:
        raise ParameterError(describe_problems(error, path, Parameters)) from None


def read_sections(path: str | Path, sections: Sequence[str]) -> dict[str, Any]:
    """The settings objects of the named key paths, and no others, after the whole file was checked."""
    parameters = read_parameters(path)
    return {section: section_of(parameters, section, path) for section in sections}


def section_of(parameters: Parameters, section: str, path: str | Path = DEFAULT_PATH) -> Any:
    """The part of the tree under a dotted key path; ``ParameterError`` with the nearest spelling if absent."""
    value: Any = parameters
    for key in section.split("."):
        if isinstance(value, BaseModel):
            allowed: Iterable[str] = type(value).model_fields
            found = hasattr(value, key)
        else:
            allowed = value
            found = key in value
        if not found:
            raise ParameterError(
                f"{path}: no section {section!r}: {key!r} is not there{nearest(key, allowed)}; "
                f"there are: {', '.join(sorted(allowed))}"
            )
        value = getattr(value, key) if isinstance(value, BaseModel) else value[key]
    return value


def check_settings(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    """Build settings from command-line options; ``ParameterError`` names the option or key path."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        return adapter.validate_python(dict(values))
    except ValidationError as error:
        raise ParameterError(describe_problems(error, where, kind)) from None


def as_plain(settings: Any) -> Any:
    """Settings as the plain lists and dictionaries that a report records."""
    if isinstance(settings, BaseModel):
        return settings.model_dump(mode="json")
    if isinstance(settings, Mapping):
        return {key: as_plain(value) for key, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [as_plain(value) for value in settings]
    return settings


def _load(path: str | Path) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(f"{str(path)!r} does not exist; run in the project's folder or name the file") from None
    except UnicodeDecodeError as error:
        raise ParameterError(f"{str(path)!r} is not UTF-8 (byte {error.start + 1})") from None
    try:
        document = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        raise ParameterError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise ParameterError(f"{path} must hold sections such as 'masking:', not {type(document).__name__}")
    return document


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML keeps the last of two equal keys in silence; here that is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)
