import re

from handmade_experiment import write_forgetting

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
    assert "| chat | allow list | Top-1 fill with MiniLM | Baseline1 | 1 | 1.115 [" in page
    assert re.search(
        r"\| allow list \| Sample fill with MiniLM \| 1 \| 52% \[\d+%, \d+%\] \| 36% \[\d+%, \d+%\] \| \*\*against",
        page,
    )
    assert "| chat | allow list | Top-1 fill with MiniLM | 8.10% [7.29%, 8.91%] | 0.08% | **more** |" in page


def test_what_was_to_be_forgotten_stands_behind_it(summarised):
    write_forgetting(summarised)
    assert main(["findings", "--output", "findings.md"]) == 0
    page = (summarised / "findings.md").read_text(encoding="utf-8")
    assert "| steering | 1.010 [1.010, 1.010] | 20.0/20.0 | 20.0/20.0 |" in page
    claims = dict(re.findall(r"\| (It .*?) \| (.*?) \|", page))
    assert claims == {
        "It forgets more than samples of the model within the budget.": "not tested",
        "It forgets more than LM-Steer within the budget.": "contradicted",
        "It forgets more than DExperts within the budget.": "not tested",
        "It forgets more than task arithmetic within the budget.": "not tested",
        "It keeps the perplexity within the budget.": "contradicted",
    }


def test_what_is_no_summary_is_one_line(summarised, capsys):
    path = summarised / "results" / "summary.json"
    for text, message in [
        ("{", "is no list of rows; run 'palimpsest summarise' again"),
        ("[]", "is no list of rows; run 'palimpsest summarise' again"),
        ('[{"dataset": "chat"}]', "is of another version: row 1 has no 'technique'"),
        (None, "does not exist"),
    ]:
        path.unlink()
        if text is not None:
            path.write_text(text, encoding="utf-8")
        capsys.readouterr()
        assert main(["findings"]) == 1
        error = capsys.readouterr().err
        assert f"summary 'results/summary.json' {message}" in error
        assert error.count("\n") == 1
        path.touch()
