"""The tables of the summary: in Markdown, as CSV, and the numbers that DVC compares."""

import csv
import io
from types import SimpleNamespace

import pytest
from handmade_experiment import SIGNATURE
from handmade_reports import rows_of

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.results.measures import measure
from tasks.results.summary.estimate import Estimate, direction, estimate
from tasks.results.summary.flat_tables import key_figures, summary_csv
from tasks.results.tables import entry, number_text


@pytest.fixture(scope="module")
def document(summarised):
    return (summarised / "results" / "summary.md").read_text(encoding="utf-8")


def test_a_number_has_the_interval_of_its_seed_or_the_deviation_of_several():
    one = estimate([{"perplexity": 445.1, "perplexity_ci": [430.2, 460.6]}], "perplexity")
    assert number_text(one) == "445.1 [430, 461]"
    rows = [{"perplexity": value, "perplexity_ci": [1.0, 999.0]} for value in (10.0, 12.0, 14.0)]
    assert estimate(rows, "perplexity") == Estimate(12.0, 10.0, 14.0, 2.0)
    assert number_text(estimate(rows, "perplexity")) == "12.0 ± 2.0"
    # A seed without a number leaves the cell undefined.
    assert estimate([*rows, {"perplexity": None}], "perplexity") is None
    assert number_text(None) == "–"


def test_a_ratio_over_seeds_has_the_interval_over_sentences_and_seeds():
    name = "ratio_to_oracle"
    together = {"seeds": [1, 2], name: 1.25, f"{name}_ci": [1.1, 1.4]}
    rows = [
        {"seed": seed, name: value, f"{name}_ci": [0.9, 1.6], "over_seeds": together}
        for seed, value in ((1, 1.2), (2, 1.3))
    ]
    number = estimate(rows, name)
    assert (number.value, number.low, number.high) == (1.25, 1.1, 1.4)
    assert str(entry(measure(name), rows)) == "1.25 [1.10, 1.40]"
    assert direction(rows, name) == 1
    assert direction([{**row, "over_seeds": None} for row in rows], name) == 0


def test_markdown_has_techniques_across_and_methods_down(document):
    lines = document.splitlines()
    header = (
        "| method | allow list (16.9% masked) | vocabulary threshold (11.9% masked) | entity tagger (3.7% masked) |"
    )
    # All words, known ones, twice times Oracle's, masked words, the rest, without markers, bits per character.
    assert lines.count(header) == 10
    first = lines[lines.index(header) + 2 : lines.index(header) + 10]
    labels = ["Pretrained", "Oracle", "Baseline0", "Baseline1", "Top-1", "Top-K", "Sample", "Unigram"]
    assert [line.split(" | ")[0].removeprefix("| ") for line in first] == labels
    assert first[1] == "| Oracle | 191.6 [186, 197] | 191.6 [186, 197] | 191.6 [186, 197] |"
    assert first[6].startswith("| Sample | 273.0 [265, 281] ▼ | 249.0 [242, 256] ▼ |")
    assert first[2].startswith("| Baseline0 | 624.0 [605, 643] ▲ |")
    # The difference of 207.1 and 207.0 is within the interval.
    assert first[5].endswith("| 207.1 [201, 213] |")
    assert SIGNATURE in document


@pytest.mark.parametrize(
    ("heading", "lines"),
    [
        (
            "Perplexity over test words that the technique would mask",
            [
                # 10 * 227 * 1.169, * 1.119 and * 1.037: Oracle belongs to no technique and has a number under each.
                "| Oracle | 2653.6 [2388, 2919] | 2540.1 [2286, 2794] | 2354.0 [2119, 2589] |",
                # 10 * 294 * 1.169; 24 % below Baseline1's in every sentence.
                "| Sample | 3436.9 [3093, 3781] ▼ |",
            ],
        ),
        ("Perplexity ratio to Oracle, in-vocabulary words", ["| Sample | 1.30 [", "| Oracle | – | – | – |"]),
    ],
)
def test_markdown_distinguishes_masked_words_and_ratios(document, heading, lines):
    table = document.partition(f"### {heading}")[2].partition("###")[0]
    assert [line for line in lines if line not in table] == []


def test_numbers_of_another_protocol_are_marked_and_not_compared(experiment, capsys):
    other = SIGNATURE.replace("vocab=0a1b2c3d", "vocab=99999999")
    sample = "chat/allow_list/minilm-sample-1"
    for name in (f"reports/perplexity/{sample}.json", f"scores/{sample}.tsv"):
        path = experiment / "results" / name
        path.write_text(path.read_text(encoding="utf-8").replace(SIGNATURE, other), encoding="utf-8")
    assert main(["summarise"]) == 0
    (marked,) = (row for row in rows_of() if row["protocol_differs"])
    assert (marked["method"], marked["protocol_differs"]) == ("sample", ["vocab"])
    assert {value for name, value in marked.items() if name.startswith(("ratio_to", "gap"))} == {None}
    written = (experiment / "results" / "summary.md").read_text(encoding="utf-8")
    for text in (capsys.readouterr().out, written):
        assert "273.0 [265, 281] ‡" in text
        assert "‡ measured by another protocol than Oracle's (vocab): does not compare." in text


def row(cell: Cell, **numbers):
    return cell.as_dict() | {"perplexity": 100.0, "perplexity_ci": [90.0, 110.0], "wer": None, "wer_ci": None} | numbers


FILL = Cell("mail", "crf", "top_k", "minilm", 1)
ROWS = [
    row(Cell("mail", method="oracle", seed=1), perplexity=80.0),
    *(row(Cell("mail", technique, "baseline1", seed=1)) for technique in ("crf", "list")),
    row(FILL, perplexity=90.0, unmasked_direct=0.0, by_class={"PERSON": 1}, warnings=["few lines"]),
    row(Cell("chat", method="oracle", seed=1)),
]


def test_each_cell_is_a_line_of_csv_and_each_interval_two_columns():
    lines = list(csv.DictReader(io.StringIO(summary_csv(ROWS))))
    assert len(lines) == len(ROWS)
    expected = {"method": "top_k", "perplexity": "90.0", "perplexity_high": "110.0", "wer": "", "wer_low": ""}
    expected["unmasked_direct"] = "0.0"
    assert {name: lines[3][name] for name in expected} == expected
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
