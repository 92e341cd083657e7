"""``params.yaml`` as one frozen tree that refuses unknown keys and reports all problems at once.

A stage reads only the sections it depends on: ``read_sections(path, ["masking.allow_list"])``. The same key paths are
under ``params:`` of that stage in ``dvc.yaml``; a test compares the two. Three sections never change a number's meaning
and are no dependency of any stage: ``resources`` (recorded in every report), ``release`` and ``tracking``.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, model_validator

from tasks.audit.settings import AuditSettings
from tasks.corpora.settings import WordCountSettings
from tasks.corpora.sources.mixture import AnyCorpus
from tasks.errors import ParameterError
from tasks.filling.fillers.settings import FillerSettings, TuningSettings
from tasks.filling.methods import AnyMethod
from tasks.fluency.settings import FluencySettings
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.language_model.settings import EvaluationSettings, LanguageModelSettings
from tasks.languages.settings import ConclusionSettings
from tasks.masking.techniques import AnyTechnique
from tasks.masking_evaluation.label_classes import MaskingEvaluationSettings
from tasks.parameters.compare_settings import CompareSettings
from tasks.parameters.problems import problems_of
from tasks.privacy.settings import ReleaseSettings
from tasks.results.tracking.settings import TrackingSettings
from tasks.settings.base import Settings
from tasks.settings.checks import check_settings
from tasks.settings.overrides import SettingsLoader
from tasks.settings.resources import ResourceSettings
from tasks.speech.settings import SpeechSection
from tasks.spelling import nearest
from tasks.tagger_training.settings import TaggerTrainingSettings
from tasks.unlearning.settings import UnlearningSettings

TAB = "\t"
_MERGE = "tag:yaml.org,2002:merge"
"""Tag of the key ``<<``, which copies its value's keys; they may be given again."""
DEFAULT_PATH = "params.yaml"
AMBIENT_SECTIONS = ("release", "resources", "tracking")
"""Sections that every stage may read and none depends on."""


class Parameters(Settings):
    """The whole of ``params.yaml``."""

    compare: CompareSettings
    generic: AnyCorpus
    """The generic corpus."""
    word_counts: WordCountSettings
    """Frequencies of generic words: for the vocabulary threshold, the fill by frequency and the vocabulary."""
    corpora: dict[str, AnyCorpus]
    """Private corpora by name."""
    masking: dict[str, AnyTechnique]
    """Masking techniques by name."""
    labelled_text: LabelledTextSettings
    """Labelled text made from templates."""
    taggers: dict[str, TaggerTrainingSettings]
    """Settings of training, by tagger."""
    masking_evaluation: MaskingEvaluationSettings
    """Labelled texts on which techniques are evaluated."""
    fillers: dict[str, FillerSettings]
    """Filler models by name."""
    tuned_fillers: dict[str, TuningSettings]
    """Settings of fine-tuning on a masked corpus, by filler."""
    filling: dict[str, AnyMethod]
    """Filling methods by name."""
    language_model: LanguageModelSettings
    evaluation: EvaluationSettings
    fluency: FluencySettings = FluencySettings()
    """Settings of the fluency measures of fills."""
    conclusion: ConclusionSettings = ConclusionSettings()
    """Settings of the tests of ``compare.conclusions``."""
    audit: AuditSettings = AuditSettings()
    """Strength of the attacks on the audited cells of ``compare.fills``."""
    unlearning: UnlearningSettings = UnlearningSettings()
    """Unlearning methods, and settings of their comparison."""
    speech: SpeechSection
    release: ReleaseSettings = ReleaseSettings()
    resources: ResourceSettings
    tracking: TrackingSettings

    def pretrained_fillers(self) -> list[str]:
        """The ones of ``fillers`` that fill, or that are the base of a filling one, each once."""
        asked = (fills.filler for fills in self.compare.fills if fills.filler is not None)
        return list(dict.fromkeys(first_base(name, self.tuned_fillers) for name in asked))

    @model_validator(mode="after")
    def _sections_fit_together(self) -> "Parameters":
        if problems := problems_of(self):
            raise ValueError("\n".join(problems))
        return self


def first_base(filler: str, tuned_fillers: Mapping[str, TuningSettings]) -> str:
    """The base of the first round of a tuned filler; the filler itself if it is not tuned."""
    while filler in tuned_fillers:
        filler = str(tuned_fillers[filler].base)
    return filler


def read_parameters(path: str | Path = DEFAULT_PATH) -> Parameters:
    """Read and check the whole file; raises the errors of ``parameters_of``, and for a missing file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(
            f"{str(path)!r} does not exist; run in the project's folder, or make one: 'palimpsest new'"
        ) from None
    except IsADirectoryError:
        raise ParameterError(f"{str(path)!r} is a folder; name the file") from None
    except UnicodeDecodeError as error:
        raise ParameterError(f"{str(path)!r} is not UTF-8 (byte {error.start + 1})") from None
    return parameters_of(text, path)


def parameters_of(text: str, where: str | Path) -> Parameters:
    """The whole tree of the text of ``params.yaml``; ``where`` names the text in errors.

    Raises ``ParameterError`` with every problem at once, each with its key path, the bad value and the allowed values.
    """
    try:
        document = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        raise ParameterError(f"{where} is not YAML: {_said(error)}") from None
    except RecursionError:
        raise ParameterError(f"{where} is not YAML that can be read: it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ParameterError(f"{where} must hold sections such as 'masking:', not {type(document).__name__}")
    parameters: Parameters = check_settings(Parameters, document, where)
    return parameters


def read_sections(path: str | Path, sections: Sequence[str]) -> dict[str, Any]:
    """The settings objects of the named key paths, and no others, after a check of the whole file."""
    parameters = read_parameters(path)
    return {section: section_of(parameters, section, path) for section in sections}


def section_of(parameters: Parameters, section: str, path: str | Path = DEFAULT_PATH) -> Any:  # noqa: ANN401 - what it is, the path says
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


def _said(error: yaml.YAMLError) -> str:
    """Line, column and problem, without the text at that place."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "it cannot be read"
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{place}{problem}{'; indent with spaces' if repr(TAB) in problem else ''}"


class _UniqueKeyLoader(SettingsLoader):
    """A loader for which two equal keys are an error; YAML silently uses the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} occurs twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)
