"""Mask and fill made-up sentences as an experiment does with its corpus, for the report page to quote.

The page may show no private sentence, and numbers do not show how masked and filled text looks. So
the command takes a few sentences that ship with palimpsest. Techniques mask them and methods fill
them, with the settings, lists and filler of the experiment. The report has all results in full.

example:
  palimpsest examples --params params.yaml --cell dataset=chat,filler=minilm --masked data/private/masked/chat/train \\
    --fills allow_list/top_k allow_list/surrogate every_tagger/surrogate --filler models/fillers/minilm \\
    --word-counts data/word_counts.tsv --generic data/generic \\
    --report results/reports/examples/chat/minilm.json
"""

import argparse
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tasks.command import Invocation, StageCommand, labels_of
from tasks.errors import ParameterError
from tasks.filling.fill_files import CorpusFiles
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
    fills: list[str]
    """fills to show, each as TECHNIQUE/METHOD; methods without a filler ignore --filler"""

    def methods(self) -> dict[str, list[str]]:
        """The methods by technique. Raises ``ParameterError`` if one is not of the form TECHNIQUE/METHOD."""
        found: dict[str, list[str]] = {}
        for pair in self.fills:
            technique, slash, method = pair.partition("/")
            if not (technique and slash and method):
                raise ParameterError(f"--fills {pair!r} names no technique and method; write TECHNIQUE/METHOD")
            found.setdefault(technique, []).append(method)
        return found


class ExamplesSettings(Settings):
    """Settings of all techniques and methods; reports of the stages for private text have them."""

    techniques: dict[str, AnyTechnique] = Field(exclude=True)
    methods: dict[str, AnyMethod] = Field(exclude=True)


def examples(settings: ExamplesSettings, files: ExamplesFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Mask and fill the sentences by each pair of technique and method."""
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.filled_lines import Part
    from tasks.filling.prepared_fill import mask_lines, prepare_like_corpus

    raw = list(read_corpus(str(SENTENCES)))
    found = []
    opened = files.opened(resources.threads)
    for technique, methods in files.methods().items():
        masked = mask_lines(settings.techniques[technique], raw, files.word_counts, resources.threads)
        part = Part(1, masked.lines, masked.spans)
        of_technique = replace(cell, technique=technique)
        filled = []
        for name in methods:
            method, folder = settings.methods[name], Path(files.masked) / technique
            prepared = prepare_like_corpus(method, folder, files, replace(of_technique, method=name), opened)
            filler = cell.filler if method.uses_filler else None
            filled.append({"method": name, "filler": filler, "lines": prepared.fill(part)})
        found.append({"technique": technique, "masked": masked.lines, "filled": filled})
    shown = f"{len(raw)} sentences masked in {len(found)} ways and filled in {len(files.fills)}"
    return Report(shown=shown).measure(raw=raw, by_technique=found)


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
        by_technique = files.methods()
        methods = dict.fromkeys(chain.from_iterable(by_technique.values()))
        names = [("masking", name) for name in by_technique] + [("filling", name) for name in methods]
        read = read_sections(params, ["resources", *map(".".join, names)])
        masking, filling = (
            {name: read[f"{section}.{name}"] for of, name in names if of == section}
            for section in ("masking", "filling")
        )
        said = Cell(seed=arguments.seed, **labels_of(arguments.cell, self.labels))
        cell = replace(said, filler=said.filler or files.filler)
        settings = ExamplesSettings(techniques=masking, methods=filling)
        resources = self._resources(arguments, read["resources"])
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
