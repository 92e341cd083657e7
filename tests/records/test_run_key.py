import json

from tasks.records.cell import Cell
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import recorded_stage

CELL = Cell("chat", "allow_list", "top_k", "minilm", 1)
LINEAGE = {"parameters": {"epochs": 2.0}, "inputs": {"text.txt": "ab" * 32, "model": "cd" * 32}, "seed": 1}


def test_the_key_is_the_same_in_every_process_and_version():
    """Computed once by hand: sha256 of the canonical JSON. A change would orphan every run that was ever tracked."""
    assert run_key(Cell("a", None, "oracle", None, 1), {"inputs": {}}) == "a/oracle-1#918d657a01df"
    turned = LINEAGE | {"inputs": dict(reversed(LINEAGE["inputs"].items()))}
    assert run_key(CELL, turned) == run_key(CELL, LINEAGE) != run_key(CELL, LINEAGE | {"seed": 2})


def test_the_report_under_construction_and_the_finished_one_have_one_lineage(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("a b c\n", encoding="utf-8")
    parameters = {"adapt": {"rate": 1e-3, "k": [1, 2]}}
    with recorded_stage("adapt", tmp_path / "report.json", parameters=parameters, seed=3, inputs=[text]) as report:
        before = lineage_of(report)
        report.measure(tokens=5)
    finished = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert lineage_of(finished) == before
    assert run_key(CELL, lineage_of(finished)) == run_key(CELL, before)
