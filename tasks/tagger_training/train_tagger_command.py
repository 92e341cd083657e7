"""Train a tagger of private words on labelled text, and test it on a part that it has not seen.

Labelled text is JSON lines, {"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}, such as 'palimpsest
generate-labelled' writes. --kind crf trains a conditional random field (fast, small), --kind spacy trains the
recogniser of a spaCy pipeline further, or a new one with --base none. The result is the folder that
'palimpsest mask --technique crf --model FOLDER' (or --technique spacy) takes.

Examples:
  palimpsest generate-labelled --sentences 20000 --seed 1 --output labelled
  palimpsest train-tagger --kind crf --labelled labelled --output models/taggers/crf
  palimpsest train-tagger --kind spacy --labelled labelled --rehearsal-text generic.txt --output models/taggers/own
"""

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError, ParameterError

SUMMARY = "train a tagger of private words on labelled text"
READS = ("labelled", "rehearsal_text", "base", "embeddings")
WRITES = ("output",)
REPLACES = True
STREAMS = ("rehearsal_text",)
SEARCHED = {"labelled": "*.jsonl"}

KINDS = ("crf", "spacy")
_CRF_OPTIONS = ("l1", "l2", "iterations", "minimum_feature_count", "embeddings")
_SPACY_OPTIONS = ("base", "epochs", "batch_words", "dropout", "learning_rate", "rehearsal_share")
_NONE = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--labelled", required=True, metavar="FOLDER", help="folder with train.jsonl and test.jsonl")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the tagger goes")
    parser.add_argument("--kind", choices=KINDS, help="which kind of tagger (or from --params)")
    parser.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    parser.add_argument("--tagger", metavar="NAME", help="with --params: name of the section of 'taggers'")
    parser.add_argument("--report", metavar="FILE", help="write what was measured to this JSON file")
    parser.add_argument("--seed", type=int, help="seed of clustering, order and dropout (default: 1)")
    crf = parser.add_argument_group("crf")
    crf.add_argument("--l1", type=float, help="weight of the absolute feature weights (default: 0.05)")
    crf.add_argument("--l2", type=float, help="weight of the squared feature weights (default: 0.05)")
    crf.add_argument("--iterations", type=int, help="most iterations (default: 80)")
    crf.add_argument("--minimum-feature-count", type=int, metavar="N", help="rarer features are left out (default: 2)")
    crf.add_argument(
        "--embeddings", metavar="MODEL", help="model whose word embeddings are clustered; 'none': no clusters"
    )
    spacy = parser.add_argument_group("spacy")
    spacy.add_argument("--base", metavar="NAME", help="pipeline that is trained further; 'none': a new one")
    spacy.add_argument("--epochs", type=int, help="passes over the text (default: 2)")
    spacy.add_argument("--batch-words", type=int, metavar="N", help="words an update (default: 1500)")
    spacy.add_argument("--dropout", type=float, help="dropout (default: 0.2)")
    spacy.add_argument("--learning-rate", type=float, help="peak learning rate (default: 0.001)")
    spacy.add_argument(
        "--rehearsal-share", type=float, metavar="R", help="rehearsed per labelled sentence (default: 0.5)"
    )
    spacy.add_argument("--rehearsal-text", metavar="FILE", help="generic text that a base rehearses on")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of ``params.yaml`` that the command reads."""
    return [f"taggers.{arguments.tagger}"]


def run(arguments: argparse.Namespace) -> None:
    """Train a tagger and test it."""
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    settings = _settings(arguments)
    models = [(name, getattr(settings, name, None)) for name in ("base", "embeddings")]
    refuse_shared_paths(
        [(name, model) for name, model in models if model], [("--output", arguments.output)], replaced=True
    )
    parts = {name: Path(arguments.labelled) / f"{name}.jsonl" for name in ("train", "test")}
    for path in parts.values():
        if not path.is_file():
            raise CorpusError(
                f"labelled file {str(path)!r} does not exist; 'palimpsest generate-labelled' writes such a folder"
            )
    rehearsal = arguments.rehearsal_text if settings.kind == "spacy" and settings.base else None
    with recorded_stage(
        "train_tagger",
        arguments.report,
        cell={},
        parameters=as_plain(settings),
        seed=settings.seed,
        inputs=[*parts.values(), *([rehearsal] if rehearsal else [])],
        outputs=[arguments.output],
    ) as report:
        from tasks.labelled_text.labelled_lines import read_labelled
        from tasks.tagger_training.held_out import held_out_scores

        _check_labels(parts.values())
        lines = read_labelled(parts["train"])
        started = time.perf_counter()
        if settings.kind == "crf":
            from tasks.tagger_training.crf_training import train_crf

            report.measure(**train_crf(lines, class_of, settings, arguments.output))
        else:
            from tasks.corpora.text_lines import read_corpus
            from tasks.tagger_training.spacy_training import train_spacy

            generic = [line for line in read_corpus(rehearsal) if line.strip()] if rehearsal else []
            if settings.base and settings.rehearsal_share and not generic:
                report.warn("the base rehearses nothing, since no --rehearsal-text is given; it may forget its types")
            report.measure(**train_spacy(lines, class_of, generic, settings, arguments.output))
        report.measure(training_seconds=round(time.perf_counter() - started, 3))
        report.measure(**held_out_scores(settings.kind, arguments.output, parts["test"], class_of))
    _say(arguments.output, report.measured)
    for warning in report.warnings:
        print(f"palimpsest: warning: {warning}", file=sys.stderr)


def class_of(label: str) -> str | None:
    """The class that a label is taught as: of generated text, of the usual gold sets, or a class itself."""
    from tasks.labelled_text.labels import LABEL_CLASSES
    from tasks.masking_evaluation.label_classes import label_mapping

    return LABEL_CLASSES.get(label) or label_mapping(None, "labels").class_of(label)


def _check_labels(paths: Iterable[Path]) -> None:
    """``CorpusError`` names all labels that no mapping to classes knows."""
    from tasks.labelled_text.labelled_lines import read_labelled

    labels = {span.label for path in paths for line in read_labelled(path) for span in line.spans}
    unknown = sorted(label for label in labels if class_of(label) is None)
    if unknown:
        raise CorpusError(
            f"the labelled text has labels that no mapping to classes knows: {', '.join(map(repr, unknown))}; rename "
            "them to those of 'palimpsest generate-labelled', of CoNLL, OntoNotes or presidio, or to classes"
        )


def _say(output: str, measured: dict[str, Any]) -> None:
    rates = {name: measured[f"test_{name}"] for name in ("recall", "precision", "f2")}
    said = ", ".join(
        f"{name.capitalize() if name == 'f2' else name} {'undefined' if rate is None else f'{rate:.3f}'}"
        for name, rate in rates.items()
    )
    print(
        f"tagger in {output}, trained on {measured['lines']:,} lines in {measured['training_seconds']:.0f} s; on the "
        f"held-out part {said} of words",
        file=sys.stderr,
    )


def _settings(arguments: argparse.Namespace) -> Any:
    """The settings of the options and of ``params.yaml``; ``ParameterError`` where they contradict."""
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings
    from tasks.tagger_training.settings import TaggerTrainingSettings

    values: dict[str, Any] = {}
    if arguments.params:
        if not arguments.tagger:
            raise ParameterError("--params needs --tagger with a name of its section 'taggers'")
        (section,) = sections(arguments)
        values = as_plain(read_sections(arguments.params, [section])[section])
    if arguments.kind and values.get("kind", arguments.kind) != arguments.kind:
        raise ParameterError(
            f"--kind {arguments.kind!r} contradicts taggers.{arguments.tagger}, which is {values['kind']}"
        )
    values.setdefault("kind", arguments.kind)
    if values["kind"] is None:
        raise ParameterError(f"no kind of tagger is given; use --kind with one of {', '.join(KINDS)}, or --params")
    others = (*_SPACY_OPTIONS, "rehearsal_text") if values["kind"] == "crf" else _CRF_OPTIONS
    for name in others:
        # The graph names the generic text for every tagger, so with --params it may go unread.
        if getattr(arguments, name) is not None and not (name == "rehearsal_text" and arguments.params):
            raise ParameterError(f"--{name.replace('_', '-')} does nothing for a tagger of kind {values['kind']}")
    for name in ("seed", *(_CRF_OPTIONS if values["kind"] == "crf" else _SPACY_OPTIONS)):
        value = getattr(arguments, name)
        if value is not None:
            values[name] = None if name in ("base", "embeddings") and value == _NONE else value
    return check_settings(TaggerTrainingSettings, values, "train-tagger")
