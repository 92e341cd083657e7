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
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tasks.command import Invocation, StageCommand, labels_of
from tasks.errors import ParameterError
from tasks.filling.beside_corpus import CorpusFiles, context_beside, mask_beside
from tasks.filling.fillers.filler_folder import model_folders
from tasks.filling.methods import AnyMethod
from tasks.masking.techniques import AnyTechnique
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.filling.context import FillContext

SUMMARY = "mask and fill made-up sentences, for the report page to quote"
SENTENCES = Path(__file__).with_name("example_sentences.txt")
STAGE = "examples"


class ExamplesFiles(CorpusFiles):
    """What the examples are made of."""

    masked: Annotated[str, READ]
    """masked texts of the private corpus, a folder for each technique"""
    technique: list[str]
    """techniques to mask by; with a filler that was tuned on the text of a technique, only that one, also named in
    --cell"""
    method: list[str]
    """methods to fill by; those that use no filler fill without it"""


class ExamplesSettings(Settings):
    """How everything is masked and filled; the stages that do so with private text report it."""

    techniques: dict[str, AnyTechnique] = Field(exclude=True)
    methods: dict[str, AnyMethod] = Field(exclude=True)


def examples(settings: ExamplesSettings, files: ExamplesFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Mask and fill the sentences in all ways."""
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.filled_corpus import Shard

    raw = list(read_corpus(str(SENTENCES)))
    found = []
    # What has read the word counts, and loaded the filler, for all that follow.
    before: dict[bool, FillContext] = {}
    for technique, masking in settings.techniques.items():
        masked = mask_beside(masking, raw, files.word_counts, resources.threads)
        shard = Shard(0, 1, masked.lines, masked.spans)
        of_technique = replace(cell, technique=technique)
        filled = []
        for name, method in settings.methods.items():
            of_cell, like = replace(of_technique, method=name), before.get(method.uses_filler)
            folder = Path(files.masked) / technique
            context = context_beside(method, folder, files, of_cell, resources.threads, like)
            before.setdefault(method.uses_filler, context)
            lines_filled = context.corpus_filler().fill_shard(shard).lines
            filler = cell.filler if method.uses_filler else None
            filled.append({"method": name, "filler": filler, "lines": lines_filled})
        found.append({"technique": technique, "masked": masked.lines, "filled": filled})
    print(f"{len(raw)} sentences masked in {len(found)} ways and filled in {len(settings.methods)}")
    return Report().measure(raw=raw, by_technique=found)


@dataclass(frozen=True)
class ExamplesCommand(StageCommand[ExamplesSettings, ExamplesFiles]):
    """The stage, whose settings are those of several names in two sections of ``params.yaml``."""

    def parse(self, arguments: argparse.Namespace) -> Invocation[ExamplesSettings, ExamplesFiles]:
        """What the options ask for; ``ParameterError`` without a parameter file, or where a name is not in it."""
        from tasks.parameters.parameter_file import read_sections

        files, params = self.files_from(arguments), arguments.params
        if not params or arguments.overrides:
            raise ParameterError(
                "examples have the settings of an experiment; give --params with its file, and no --set"
            )
        names = {"masking": files.technique, "filling": files.method}
        read = read_sections(params, [f"{section}.{name}" for section in names for name in names[section]])
        masking, filling = (
            {name: read[f"{section}.{name}"] for name in names[section]} for section in ("masking", "filling")
        )
        said = Cell(seed=arguments.seed, **labels_of(arguments.cell, self.labels))
        cell = replace(said, filler=said.filler or files.filler)
        settings = ExamplesSettings(techniques=masking, methods=filling)
        resources = self._resources(arguments, [])
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
