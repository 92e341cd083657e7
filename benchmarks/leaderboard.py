"""Anonymisations of court decisions by ten programs and people, compared by ``palimpsest compare-anonymisers``.

    python -m benchmarks.leaderboard DATA    # measures, and writes the second table of docs/research/anonymisers.md

``DATA/persons`` is that of ``benchmarks.persons``. The versions are those of the page on persons, and further published
ones. The stored numbers hold no text.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import stamp
from benchmarks.anonymisers import PEERS
from benchmarks.frame import ROOT
from benchmarks.persons import FILLED, REPLACED, of_techniques, published, surrogates, tested_decisions
from benchmarks.readme_tables import with_table
from tasks.anonymisers.compare_anonymisers_command import ComparisonFiles, ComparisonSettings, compare, table
from tasks.records.cell import Cell
from tasks.records.stage_report import write_json
from tasks.settings.resources import ResourceSettings
from tasks.threads import available_cores

RESULTS = ROOT / "benchmarks" / "results" / "leaderboard.json"
PAGE = ROOT / "docs" / "research" / "anonymisers.md"
PUBLISHED = {
    **PEERS,
    **REPLACED,
    "TAB_test_Manual_Supression": "the annotators of TAB, spans left out",
    "TAB_test_Manual_Dou": "the annotators of TAB, general terms",
}
TECHNIQUES = ["every_tagger", "word_classifier", "crf", "presidio", "allow_list"]
SEED = 1


def main(data: Path) -> None:
    """Measure, store the numbers and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        files = versions(data / "persons", Path(folder))
        resources = ResourceSettings(threads=available_cores(), work_folder=folder)
        found = compare(ComparisonSettings(), files, Cell(seed=SEED), resources).measured
    results = {**stamp(), "documents": found["documents"], "rows": rounded(found["by_version"])}
    write_json(RESULTS, results)
    page = with_table(PAGE.read_text(encoding="utf-8"), "leaderboard", shown(results))
    PAGE.write_text(page, encoding="utf-8")


def versions(persons: Path, folder: Path) -> ComparisonFiles:
    """Write the decisions of TAB's test part and all versions that are files, one by each name."""
    documents, names = tested_decisions(persons)
    lines = (persons / "spia_tab.jsonl").read_text(encoding="utf-8").splitlines()
    raw = folder / "decisions.jsonl"
    raw.write_text("".join(f"{lines[number]}\n" for number in names), encoding="utf-8")
    texts = published(persons, documents, names, PUBLISHED)
    texts["documents"] = of_techniques(documents, list(names), ["documents"])["documents"]
    texts[FILLED] = surrogates(documents, list(names))
    for name, of in texts.items():
        records = (json.dumps({"text": of[number]}, ensure_ascii=False) + "\n" for number in names)
        (folder / f"{name}.jsonl").write_text("".join(records), encoding="utf-8")
    return ComparisonFiles(
        documents=str(raw), texts=[str(folder / f"{name}.jsonl") for name in texts], techniques=TECHNIQUES
    )


def rounded(figures: Any) -> Any:
    """Figures with four decimals."""
    if isinstance(figures, Mapping):
        return {name: rounded(one) for name, one in figures.items()}
    if isinstance(figures, Sequence) and not isinstance(figures, str):
        return [rounded(one) for one in figures]
    return round(figures, 4) if isinstance(figures, float) else figures


def shown(results: Mapping[str, Any]) -> str:
    """The Markdown of the page, from the stored numbers."""
    model = results["rows"]["raw text"]["persons"]["language_model"]
    blind = f"CPR without a text: {100 * model['cpr_blind']:.1f} % by the model."
    machine = results["machine"]["processor"]
    ran = f"Run of {results['date']}, commit {results['commit']}, {machine}."
    return "\n\n".join([f"{results['documents']} decisions. {blind}", table(results["rows"]), ran])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
