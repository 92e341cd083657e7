import re

from handmade_experiment import write_forgetting

from tasks.cli import main


def test_the_page_has_every_claim_and_number(summarised, capsys):
    """The handmade rows: the paper's methods are below Baseline0 and, on the lists, above Baseline1."""
    capsys.readouterr()
    assert main(["findings", "--output", "findings.md"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line[0] for line in said] == ["1", "2", "4", "f"]
    assert said[0] == "1. contradicted   Every filling method beats both baselines."
    page = (summarised / "findings.md").read_text(encoding="utf-8")
    assert "| 4 | The gap to Oracle is largest for the allow list. | **confirmed** | confirmed |" in page
    # 476 / 427.
    assert "| chat | allow list | Top-1 fill with MiniLM | Baseline1 | 1 | 1.115 [" in page


def test_what_was_to_be_forgotten_stands_behind_it(summarised):
    write_forgetting(summarised)
    assert main(["findings", "--output", "findings.md"]) == 0
    page = (summarised / "findings.md").read_text(encoding="utf-8")
    assert "| steering | 1.010 [1.010, 1.010] | 20.0/20.0 | 20.0/20.0 |" in page
    claims = dict(re.findall(r"\| (It .*?) \| (.*?) \|", page))
    assert claims == {
        "It forgets more than LM-Steer within the budget.": "contradicted",
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
