"""Mask and fill made-up sentences as an experiment does with its corpus, for the report page to quote.

The page may show no private sentence, and numbers do not show how masked and filled text looks. So
the command takes a few sentences that ship with palimpsest. Every technique masks them, and every
method fills them, with the settings, lists, filler and learned weights of the experiment. The
report has all results in full.

A filler that was fine-tuned on the text of one technique fills sentences masked by that technique.

examples:
  palimpsest examples --params params.yaml --cell dataset=chat,filler=minilm --masked data/private/masked/chat/train \\
    --technique allow_list entity_tagger --filler models/fillers/minilm --method top_1 top_k unigram \\
    --word-counts data/word_counts.tsv --generic data/generic \\
    --report results/reports/examples/chat/minilm.json
  palimpsest examples --params params.yaml --cell dataset=chat,technique=allow_list --method top_k \\
    --masked data/private/masked/chat/train --technique allow_list \\
    --filler models/tuned_fillers/chat/allow_list/minilm_tuned \\
    --word-counts data/word_counts.tsv --generic data/generic \\
    --report results/reports/examples/chat/allow_list/minilm_tuned.json
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tasks.command import Invocation, StageCommand, labels_of
from tasks.errors import ParameterError
from tasks.filling.fill import CorpusFiles
from tasks.filling.fillers.filler_folder import model_folders
from tasks.filling.methods import AnyMethod
from tasks.masking.techniques import AnyTechnique
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

SUMMARY = "mask and fill made-up sentences, for the report page to quote"
SENTENCES = Path(__file__).with_name("example_sentences.txt")
STAGE = "examples"


class ExamplesFiles(CorpusFiles):
    """Inputs of the examples."""

    masked: Annotated[str, READ]
    """masked texts of the private corpus, a folder for each technique"""
    technique: list[str]
    """techniques to mask by; with a filler that was tuned on the text of a technique, only that one, also named in
    --cell"""
    method: list[str]
    """methods to fill by; methods without a filler ignore --filler"""


class ExamplesSettings(Settings):
    """Settings of all techniques and methods; reports of the stages for private text have them."""

    techniques: dict[str, AnyTechnique] = Field(exclude=True)
    methods: dict[str, AnyMethod] = Field(exclude=True)


def examples(settings: ExamplesSettings, files: ExamplesFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Mask and fill the sentences by every technique and method."""
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.filled_lines import Part
    from tasks.filling.prepared_fill import mask_lines, prepare_like_corpus

    raw = list(read_corpus(str(SENTENCES)))
    found = []
    opened = files.opened(resources.threads)
    for technique, masking in settings.techniques.items():
        masked = mask_lines(masking, raw, files.word_counts, resources.threads)
        part = Part(1, masked.lines, masked.spans)
        of_technique = replace(cell, technique=technique)
        filled = []
        for name, method in settings.methods.items():
            folder = Path(files.masked) / technique
            prepared = prepare_like_corpus(method, folder, files, replace(of_technique, method=name), opened)
            filler = cell.filler if method.uses_filler else None
            filled.append({"method": name, "filler": filler, "lines": prepared.fill(part)})
        found.append({"technique": technique, "masked": masked.lines, "filled": filled})
    print(f"{len(raw)} sentences masked in {len(found)} ways and filled in {len(settings.methods)}")
    return Report().measure(raw=raw, by_technique=found)


@dataclass(frozen=True)
class ExamplesCommand(StageCommand[ExamplesSettings, ExamplesFiles]):
    """The command, with settings of several names in two sections of ``params.yaml``."""

    def parse(self, arguments: argparse.Namespace) -> Invocation[ExamplesSettings, ExamplesFiles]:
        """The parsed options. Raises ``ParameterError`` without a parameter file, or if it lacks a name."""
        from tasks.parameters.parameter_file import read_sections

        files, params = self.files_from(arguments), arguments.params
        if not params or arguments.overrides:
            raise ParameterError(
                "examples take the settings of an experiment; give --params with its file, and no --set"
            )
        names = {"masking": files.technique, "filling": files.method}
        read = read_sections(params, [f"{section}.{name}" for section in names for name in names[section]])
        masking, filling = (
            {name: read[f"{section}.{name}"] for name in names[section]} for section in ("masking", "filling")
        )
        said = Cell(seed=arguments.seed, **labels_of(arguments.cell, self.labels))
        cell = replace(said, filler=said.filler or files.filler)
        settings = ExamplesSettings(techniques=masking, methods=filling)
        resources = self._resources(arguments, None)
        return Invocation(self, settings, files, cell, resources, params, arguments.report, ["filling", "masking"])


def _inputs(_: ExamplesSettings, files: ExamplesFiles) -> list[str]:
    read = [files.word_counts, files.generic]
    return [*filter(None, read), *(model_folders(files.filler) if files.filler else [])]


COMMAND = ExamplesCommand(
    name=STAGE,
    stage=examples,
    settings=ExamplesSettings,
    files=ExamplesFiles,
    section="filling",
    cell=("seed",),
    labels=("dataset", "technique", "filler"),
    inputs_of=_inputs,
)
