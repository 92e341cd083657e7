"""Anonymisations of court decisions by ten programs and people, compared by ``palimpsest compare-anonymisers``.

    python -m benchmarks.leaderboard DATA    # measures, and writes the second table of docs/research/anonymisers.md

``benchmarks.court`` describes DATA. The versions are those of ``benchmarks.persons``, and further published ones.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.court import FILLED, PEERS, SEED, masked, published, surrogates, tested
from benchmarks.persons import REPLACED
from benchmarks.readme_tables import publish, ran
from tasks.anonymisers.compare_anonymisers_command import ComparisonFiles, ComparisonSettings, compare, table
from tasks.anonymisers.versions import RAW
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings
from tasks.threads import available_cores

PUBLISHED = {
    **PEERS,
    **REPLACED,
    "TAB_test_Manual_Supression": "the annotators of TAB, spans left out",
    "TAB_test_Manual_Dou": "the annotators of TAB, general terms",
}
TECHNIQUES = ["every_tagger", "word_classifier", "crf", "presidio", "allow_list"]


def main(data: Path) -> None:
    """Measure, store the numbers and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        files = versions(data, Path(folder))
        resources = ResourceSettings(threads=available_cores(), work_folder=folder)
        found = compare(ComparisonSettings(), files, Cell(seed=SEED), resources).measured
    results = {"documents": found["documents"], "rows": found["by_version"]}
    publish("leaderboard", "docs/research/anonymisers.md", "leaderboard", results, shown)


def versions(data: Path, folder: Path) -> ComparisonFiles:
    """Write the decisions of TAB's test part and all versions that are files, one by each name."""
    documents, names = tested(data)
    lines = (data / "persons/spia_tab.jsonl").read_text(encoding="utf-8").splitlines()
    raw = folder / "decisions.jsonl"
    raw.write_text("".join(f"{lines[number]}\n" for number in names), encoding="utf-8")
    texts = published(data, documents, names, PUBLISHED) | masked(documents, names, ["documents"])
    texts[FILLED] = surrogates(documents, names)
    paths = [folder / f"{name}.jsonl" for name in texts]
    for path, of in zip(paths, texts.values(), strict=True):
        records = (json.dumps({"text": of[number]}, ensure_ascii=False) + "\n" for number in names)
        path.write_text("".join(records), encoding="utf-8")
    return ComparisonFiles(documents=str(raw), texts=[*map(str, paths)], techniques=TECHNIQUES)


def shown(results: Mapping[str, Any]) -> str:
    """The Markdown of the page, from the stored numbers."""
    model = results["rows"][RAW]["persons"]["language_model"]
    blind = f"CPR without a text: {100 * model['cpr_blind']:.1f} % by the model."
    return "\n\n".join([f"{results['documents']} decisions. {blind}", table(results["rows"]), ran(results)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
