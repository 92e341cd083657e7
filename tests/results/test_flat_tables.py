"""The summary as a table for other programs, and the numbers that DVC compares."""

import csv
import io
from types import SimpleNamespace

from tasks.records.cell import Cell
from tasks.results.summary.flat_tables import key_figures, summary_csv


def row(cell: Cell, **numbers):
    return cell.as_dict() | {"perplexity": 100.0, "perplexity_ci": [90.0, 110.0], "wer": None, "wer_ci": None} | numbers


ORACLE = Cell("mail", method="oracle", seed=1)
BASELINES = [Cell("mail", technique, "baseline1", seed=1) for technique in ("crf", "list")]
FILL = Cell("mail", "crf", "top_k", "minilm", 1)
ROWS = [
    row(ORACLE, perplexity=80.0),
    *(row(cell) for cell in BASELINES),
    row(FILL, perplexity=90.0, unmasked_direct=0.0, by_class={"PERSON": 1}, warnings=["few lines"]),
    row(Cell("chat", method="oracle", seed=1)),
]


def test_each_cell_is_a_line_and_each_interval_two_columns():
    lines = list(csv.DictReader(io.StringIO(summary_csv(ROWS))))
    assert len(lines) == len(ROWS)
    assert (lines[3]["method"], lines[3]["perplexity"], lines[3]["perplexity_high"]) == ("top_k", "90.0", "110.0")
    assert (lines[3]["wer"], lines[3]["wer_low"], lines[3]["unmasked_direct"]) == ("", "", "0.0")
    assert lines[0]["unmasked_direct"] == ""
    assert not {"by_class", "warnings", "perplexity_ci"} & lines[0].keys()


def test_dvc_compares_the_recommended_cell_and_its_references():
    assert key_figures([SimpleNamespace(dataset="mail", cell=FILL)], ROWS) == {
        "mail": {
            "oracle": {"perplexity": 80.0},
            "baseline1": {"perplexity": 100.0},
            "recommended": {"perplexity": 90.0, "unmasked_direct": 0.0},
        }
    }
