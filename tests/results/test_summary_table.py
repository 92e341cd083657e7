import json

from handmade_experiment import SIGNATURE, make_experiment

from tasks.cli import main
from tasks.results.measures import measure
from tasks.results.summary.estimate import Estimate, direction, estimate
from tasks.results.tables import entry, number_text


def test_a_number_has_the_interval_of_its_seed_or_the_deviation_of_several():
    assert number_text(estimate([{"perplexity": 445.1, "perplexity_ci": [430.2, 460.6]}], "perplexity")) == (
        "445.1 [430, 461]"
    )
    rows = [{"perplexity": value, "perplexity_ci": [1.0, 999.0]} for value in (10.0, 12.0, 14.0)]
    assert estimate(rows, "perplexity") == Estimate(12.0, 10.0, 14.0, 2.0, 3)
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
    assert (number.value, number.low, number.high, number.seeds) == (1.25, 1.1, 1.4, 2)
    assert str(entry(measure(name), rows)) == "1.25 [1.10, 1.40]"
    assert direction(rows, name) == 1
    assert direction([{**row, "over_seeds": None} for row in rows], name) == 0


def test_a_direction_needs_every_seed():
    below, above, open_ = {"r_ci": [0.8, 0.9]}, {"r_ci": [1.1, 1.2]}, {"r_ci": [0.9, 1.1]}
    assert direction([below, below], "r") == -1
    assert direction([above], "r") == 1
    assert direction([below, open_], "r") == 0
    assert direction([below, above], "r") == 0
    assert direction([{"r_ci": None}], "r") == 0


def test_markdown_has_techniques_across_and_methods_down(experiment):
    assert main(["summarise"]) == 0
    lines = (experiment / "results" / "summary.md").read_text(encoding="utf-8").splitlines()
    header = (
        "| method | allow list (16.9% masked) | vocabulary threshold (11.9% masked) | entity tagger (3.7% masked) |"
    )
    # All words, known ones, twice times Oracle's, masked words, the rest, without markers, bits per character.
    assert lines.count(header) == 10
    first = lines[lines.index(header) + 2 : lines.index(header) + 10]
    assert [line.split(" | ")[0].removeprefix("| ") for line in first] == [
        "Pretrained",
        "Oracle",
        "Baseline0",
        "Baseline1",
        "Top-1",
        "Top-K",
        "Sample",
        "Unigram",
    ]
    assert first[1] == "| Oracle | 191.6 [186, 197] | 191.6 [186, 197] | 191.6 [186, 197] |"
    assert first[6].startswith("| Sample | 273.0 [265, 281] ▼ | 249.0 [242, 256] ▼ |")
    assert first[2].startswith("| Baseline0 | 624.0 [605, 643] ▲ |")
    # The difference of 207.1 and 207.0 is within the interval.
    assert first[5].endswith("| 207.1 [201, 213] |")


def test_markdown_tells_masked_words_and_frequencies_apart(experiment):
    assert main(["summarise"]) == 0
    text = (experiment / "results" / "summary.md").read_text(encoding="utf-8")
    masked = text.partition("### Perplexity over test words that the technique would mask")[2].partition("###")[0]
    # 10 * 227 * 1.169, * 1.119 and * 1.037: Oracle belongs to no technique and has a number under each.
    assert "| Oracle | 2653.6 [2388, 2919] | 2540.1 [2286, 2794] | 2354.0 [2119, 2589] |" in masked
    # 10 * 294 * 1.169; 24 % below Baseline1's in every sentence.
    assert "| Sample | 3436.9 [3093, 3781] ▼ |" in masked
    ratios = text.partition("### Perplexity ratio to Oracle, in-vocabulary words")[2].partition("###")[0]
    assert "| Sample | 1.30 [" in ratios
    assert "| Oracle | – | – | – |" in ratios
    frequencies = text.partition("### Perplexity by frequency in generic text (targets), entity tagger")[2]
    assert "| method | rank 1–100 (12,000) | unknown (420) |" in frequencies
    assert "| Top-K | 51.8 | 50.0 |" in frequencies
    assert SIGNATURE in text


def test_numbers_of_another_protocol_are_marked_and_not_compared(experiment, capsys):
    other = SIGNATURE.replace("vocab=0a1b2c3d", "vocab=99999999")
    report = experiment / "results/reports/perplexity/chat/allow_list/minilm-sample-1.json"
    scores = experiment / "results/scores/chat/allow_list/minilm-sample-1.tsv"
    for path in (report, scores):
        path.write_text(path.read_text(encoding="utf-8").replace(SIGNATURE, other), encoding="utf-8")
    assert main(["summarise"]) == 0
    printed = capsys.readouterr().out
    rows = json.loads((experiment / "results" / "summary.json").read_text(encoding="utf-8"))
    marked = [row for row in rows if row["protocol_differs"]]
    assert [(row["method"], row["protocol_differs"]) for row in marked] == [("sample", ["vocab"])]
    assert {name: value for name, value in marked[0].items() if name.startswith(("ratio_to", "gap"))} == dict.fromkeys(
        name for name in marked[0] if name.startswith(("ratio_to", "gap"))
    )
    for text in (printed, (experiment / "results" / "summary.md").read_text(encoding="utf-8")):
        assert "273.0 [265, 281] ‡" in text
        assert "‡ measured by another protocol than Oracle's (vocab): does not compare." in text


def test_a_filler_that_only_a_later_technique_has_is_placed_as_there(tmp_path, monkeypatch):
    fills = [
        {"filler": "minilm", "methods": ["top_k", "sample"]},
        {"filler": "large", "methods": ["top_k"], "techniques": ["entity_tagger"]},
        {"methods": ["unigram"]},
    ]
    monkeypatch.chdir(make_experiment(tmp_path, fills=fills))
    assert main(["summarise"]) == 0
    table = (tmp_path / "results" / "summary.md").read_text(encoding="utf-8").split("\n### ")[1]
    rows = [line.removeprefix("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows][-3:] == ["Sample fill with MiniLM", "Top-K fill with large", "Unigram"]
    assert rows[-2][1:3] == ["–", "–"]
    assert rows[-2][3][0].isdigit()
