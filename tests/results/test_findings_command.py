import json
import re

import pytest
from handmade_experiment import make_experiment

from tasks.cli import main


def test_the_page_has_every_claim_and_number(summarised, capsys):
    """The handmade rows: the paper's methods are below Baseline0 and, on the lists, above Baseline1."""
    capsys.readouterr()
    assert main(["findings", "--output", "findings.md"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 9
    assert said[0] == "1. contradicted   Every filling method beats both baselines."
    page = (summarised / "findings.md").read_text(encoding="utf-8")
    assert "| 4 | The gap to Oracle is largest for the allow list. | **confirmed** | confirmed |" in page
    # 476 / 427, and (294 - 227) of the (411 - 227) that Top-K leaves over known words.
    assert "| chat | allow list | Top-1, minilm | Baseline1 | 1 | 1.115 [" in page
    assert re.search(
        r"\| chat \| allow list \| Sample, minilm \| 1 \| 52% \[\d+%, \d+%\] \| 36% \[\d+%, \d+%\] \| \*\*against", page
    )
    assert "| chat | allow list | Top-1, minilm | 8.10% [7.29%, 8.91%] | 0.08% | **more** |" in page


def test_the_legend_says_why_a_claim_is_not_tested(summarised):
    """Top-K under another protocol than Top-1: both of the claim's methods are there."""
    path = summarised / "results" / "summary.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    for row in rows:
        row["signature"] = "another" if row["method"] == "top_k" else row["signature"]
    path.write_text(json.dumps(rows), encoding="utf-8")
    (summarised / "results" / "scores").rename(summarised / "scores")
    assert main(["findings", "--output", "page.md"]) == 0
    page = (summarised / "page.md").read_text(encoding="utf-8")
    assert "| 2 | Top-K beats Top-1. | **not tested** |" in page
    reasons = "its methods are not part of the experiment, none of their numbers can be compared, or no comparison has"
    assert f"*Not tested*: {reasons} an interval.\n" in page
    assert "against Top-1, minilm (chat, allow list): their perplexities follow different protocols" in page
    assert "protocol than those of their data set's first Oracle: Top-K, minilm (chat, allow list);" in page


def test_the_page_says_over_which_seeds_fills_are_ranked(experiment):
    """Top-1 has one of two seeds, and Sample, Unigram and Oracle the other one."""
    make_experiment(experiment, seeds=[1, 2], techniques=["allow_list"])
    assert main(["summarise"]) == 0
    path = experiment / "results" / "summary.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    gone = {("top_1", 1), ("sample", 2), ("unigram", 2), ("oracle", 2)}
    path.write_text(json.dumps([row for row in rows if (row["method"], row["seed"]) not in gone]), encoding="utf-8")
    assert main(["findings", "--output", "page.md"]) == 0
    page = (experiment / "page.md").read_text(encoding="utf-8")
    assert (
        "Left out, since they have no seed in common: Top-1, minilm (chat, allow list) beside the other fills; "
        "Top-1, minilm (chat, allow list) beside Oracle." in page
    )
    assert page.count("Over the seeds that all fills there have, fewer than some have: chat, allow list: 1.") == 2
    assert re.search(r"\| Top-K, minilm \| 2 \| \S+ \[\S+ \S+\], 1 of 2 seeds \| 100%, 1 of 2 seeds \|", page)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no list of rows"),
        ("[]", "is no list of rows"),
        ('[{"dataset": "chat"}]', "is of another version: row 1 has no 'technique'"),
    ],
)
def test_a_summary_of_another_version_is_one_line(summarised, capsys, text, message):
    (summarised / "results" / "summary.json").write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["findings"]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "run 'palimpsest summarise' again" in error
    assert error.count("\n") == 1


def test_a_folder_is_no_summary_nor_is_a_file_that_is_not_there(summarised, capsys):
    path = summarised / "results" / "summary.json"
    path.unlink()
    for message in ("does not exist", "is a folder; give the file"):
        capsys.readouterr()
        assert main(["findings"]) == 1
        assert f"summary 'results/summary.json' {message}" in capsys.readouterr().err
        path.mkdir(exist_ok=True)


def test_a_score_file_that_is_missing_is_named(summarised, capsys):
    next((summarised / "results" / "scores").rglob("minilm-top_k-1.tsv")).unlink()
    capsys.readouterr()
    assert main(["findings"]) == 1
    assert "minilm-top_k-1.tsv; give their folder with --scores" in capsys.readouterr().err
