"""The kinds of downstream model: a model's folder says which kind it is, and each kind has a room of its own."""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tasks.errors import ModelError, ParameterError
from tasks.language_model.kind_settings import Kind
from tasks.language_model.model_folder import SETTINGS

if TYPE_CHECKING:
    from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
    from tasks.language_model.evaluation.target_scores import TargetScores

KIND_SECTION = "language_model.kind"
_DEFAULT: Kind = "transformer"
RESOURCE_OPTIONS = (
    "devices",
    "nodes",
    "strategy",
    "compile",
    "checkpoint_seconds",
    "checkpoint_steps",
    "resume_from",
    "work_folder",
)
"""Options of training that are the Transformer's alone: models of other kinds are made in one process, in one go."""


def add_kind_option(parser: argparse.ArgumentParser) -> None:
    """``--kind``, for a command that makes a model."""
    parser.add_argument(
        "--kind", choices=get_args(Kind), help=f"kind of model (default: as the parameter file says, or {_DEFAULT})"
    )


def kind_asked_for(arguments: argparse.Namespace) -> Kind:
    """The kind that the option names, or the parameter file."""
    if given := getattr(arguments, "kind", None):
        return given
    if not arguments.params:
        return _DEFAULT
    from tasks.parameters.parameter_file import read_sections

    return read_sections(arguments.params, [KIND_SECTION])[KIND_SECTION]


def section_of_kind(kind: Kind) -> str:
    """Key path of the settings that belong to a kind."""
    return f"language_model.{kind}"


def kind_sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths that decide which kind a stage works with, and how."""
    return [KIND_SECTION, section_of_kind(kind_asked_for(arguments))]


def kind_of_folder(folder: str | Path) -> Kind:
    """The kind of a model folder; that of the Transformer where the folder does not say, since its reader says why."""
    try:
        kind = json.loads((Path(folder) / SETTINGS).read_text(encoding="utf-8"))["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return _DEFAULT
    return kind if kind in get_args(Kind) else _DEFAULT


def kind_to_adapt(arguments: argparse.Namespace) -> Kind:
    """The kind of the folder ``--model``; ``ModelError`` where the parameter file asks for another."""
    kind = kind_of_folder(arguments.model)
    if arguments.params and Path(arguments.model).is_dir() and kind != (asked := kind_asked_for(arguments)):
        raise ModelError(
            f"model folder {arguments.model!r} is of kind {kind!r}, and {arguments.params} sets {KIND_SECTION} to "
            f"{asked!r}; run 'palimpsest pretrain' again, or mend the setting"
        )
    return kind


def check_options(arguments: argparse.Namespace, kind: Kind, options: Mapping[Kind, Iterable[str]]) -> None:
    """``ParameterError`` where an option was given that belongs to other kinds; ``options`` names those of each."""
    own = set(options[kind])
    for other, names in options.items():
        for name in sorted(set(names) - own):
            if getattr(arguments, name, None) not in (None, False):
                raise ParameterError(
                    f"--{name.replace('_', '-')} is an option of kind {other!r}, and the model is of kind {kind!r}; "
                    "leave it out"
                )


def score_text(model: str | Path, text: str | Path, markers: "MarkerRule") -> "tuple[TargetScores, Protocol]":
    """Score a plain text file by the model of a folder, of whatever kind; ``markers`` is the evaluation's rule.

    Raises ``ModelError`` where the model cannot be read, and ``CorpusError`` where the text has no word.
    """
    match kind_of_folder(model):
        case "ngram":
            from tasks.language_model.ngram.scoring import score_text as score_ngram

            return score_ngram(model, text, markers)
        case "causal_lm":
            from tasks.language_model.causal_lm.scoring import score_text as score_causal_lm

            return score_causal_lm(model, text, markers)
    from tasks.language_model.transformer.scoring import score_text as score_transformer

    return score_transformer(model, text, markers)
