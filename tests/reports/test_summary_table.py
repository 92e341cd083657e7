import json

from handmade_experiment import make_experiment

from tasks.cli import main
from tasks.reports.estimate import Estimate, direction, estimate
from tasks.reports.summary_table import number_text


def test_one_seed_has_the_interval_of_its_bootstrap():
    number = estimate([{"perplexity": 445.1, "perplexity_ci": [430.2, 460.6]}], "perplexity")
    assert number == Estimate(445.1, 430.2, 460.6, None, 1)
    assert number_text(number) == "445.1 [430, 461]"


def test_several_seeds_have_mean_and_standard_deviation():
    rows = [{"perplexity": value, "perplexity_ci": [1.0, 999.0]} for value in (10.0, 12.0, 14.0)]
    number = estimate(rows, "perplexity")
    assert number == Estimate(12.0, 10.0, 14.0, 2.0, 3)
    assert number_text(number) == "12.0 ± 2.0"


def test_a_seed_without_a_number_leaves_the_cell_undefined():
    assert estimate([{"wer": 3.0}, {"wer": None}], "wer") is None
    assert estimate([], "wer") is None
    assert number_text(None) == "–"


def test_a_direction_needs_every_seed():
    below, above, open_ = {"r_ci": [0.8, 0.9]}, {"r_ci": [1.1, 1.2]}, {"r_ci": [0.9, 1.1]}
    assert direction([below, below], "r") == -1
    assert direction([above], "r") == 1
    assert direction([below, open_], "r") == 0
    assert direction([below, above], "r") == 0
    assert direction([{"r_ci": None}], "r") == 0


def test_markdown_has_techniques_across_and_methods_down(experiment):
    assert main(["summarise", "--markdown", "results/summary.md"]) == 0
    lines = (experiment / "results" / "summary.md").read_text(encoding="utf-8").splitlines()
    header = (
        "| method | allow list (16.9% masked) | vocabulary threshold (11.9% masked) | entity tagger (3.7% masked) |"
    )
    assert lines.count(header) == 2
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


def test_the_printed_table_is_whole_and_has_both_tables(experiment, capsys):
    assert main(["summarise"]) == 0
    output = capsys.readouterr().out
    assert "chat: perplexity on the unmasked test text, all words" in output
    assert "chat: perplexity over words of the vocabulary alone" in output
    assert max(map(len, output.splitlines()[:-2])) <= 80
    assert "2.1% of the test words are outside the vocabulary" in output
    assert output.splitlines()[-1] == "20 cells in results/summary.json"


def test_rows_as_json_for_machines(experiment, capsys):
    assert main(["summarise", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 20


def test_several_fillers_are_told_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(make_experiment(tmp_path, fillers=["minilm", "other"], seeds=[1, 2], techniques=["allow_list"]))
    assert main(["summarise"]) == 0
    output = capsys.readouterr().out
    assert "Top-K, minilm" in output
    assert "Top-K, other" in output
    # 191.6 and 191.6 * 1.01: mean 192.558, standard deviation 1.916 / sqrt(2) = 1.3548.
    assert "192.6 ± 1.4" in output
