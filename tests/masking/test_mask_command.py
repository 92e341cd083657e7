import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.cli import main
from tasks.corpora.sidecar import read_sidecar

TEXT = "We met Xavier's cousin, Zoltan, at 5pm.\n\nNothing to see here!\nA literal [MASK] and [PERSON].\n"
MASKED = "We met [MASK]'s [MASK], [MASK], at [MASK].\n\nNothing to see here!\nA literal [[MASK]] and [\\PERSON].\n"


def mask(*arguments):
    return main(["mask", *map(str, arguments)])


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_all_outputs(tmp_path, text):
    masked, sidecar, kept, report = (
        tmp_path / name for name in ("masked.txt", "sidecar.jsonl", "kept.txt", "report.json")
    )
    (tmp_path / "list.txt").write_text("we met at nothing to see here a and person literal\n".replace(" ", "\n"))
    arguments = ["--technique", "allow_list", "--list", tmp_path / "list.txt", "--input", text, "--output", masked]
    arguments += ["--sidecar", sidecar, "--kept-words", kept, "--report", report, "--dataset", "chat"]
    assert mask(*arguments) == 0
    assert masked.read_text(encoding="utf-8") == MASKED
    assert [[span.original for span in spans] for spans in read_sidecar(sidecar)] == [
        ["Xavier", "cousin", "Zoltan", "5pm"],
        [],
        [],
        ["MASK"],
    ]
    assert kept.read_text().splitlines() == sorted("we met at nothing to see here a and person literal".split())
    assert masked.stat().st_mode & 0o777 == sidecar.stat().st_mode & 0o777 == 0o600
    document = json.loads(report.read_text())
    measured = document["measured"]
    assert document["cell"]["dataset"] == "chat"
    assert document["cell"]["technique"] == "allow_list"
    assert (measured["lines"], measured["empty_lines"], measured["masked_lines"]) == (4, 1, 2)
    assert (measured["words"], measured["masked_words"], measured["kept_words"]) == (16, 5, 11)
    assert measured["masked_fraction"] == 5 / 16
    assert measured["masked_by_class"] == {"MASK": 4, "NUMBER": 1}
    assert "Xavier" not in report.read_text()


def test_standard_streams(monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ask Zoltan, ok?")))
    assert mask("--technique", "allow_list", "--marker-style", "class", "--input", "-", "--output", "-") == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Ask [MASK], ok?\n"
    assert b"1 of 3 words masked (33.3%)" in captured.err


def test_entity_tagger(tmp_path):
    (tmp_path / "text.txt").write_text("Angela Merkel lives in Berlin.\nI like tea.\n")
    arguments = ["--technique", "entity_tagger", "--marker-style", "class", "--kept-words", tmp_path / "kept.txt"]
    arguments += ["--report", tmp_path / "report.json"]
    assert mask("--input", tmp_path / "text.txt", "--output", tmp_path / "masked.txt", *arguments) == 0
    assert (tmp_path / "masked.txt").read_text() == "[PERSON] [PERSON] lives in [LOCATION].\nI like tea.\n"
    assert (tmp_path / "kept.txt").read_text() == ""
    measured = json.loads((tmp_path / "report.json").read_text())["measured"]
    assert measured["entity_types"]["GPE"] == "LOCATION"
    assert measured["entities"]["PERSON"] == 1
    assert measured["kept_words"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"fine\nsecret \xe9 text\n", "line 2: byte 8 (0xe9) is not UTF-8"),
    ],
)
def test_bad_text_leaves_the_earlier_output(tmp_path, capsys, content, message):
    (tmp_path / "text.txt").write_bytes(content)
    for name in ("masked.txt", "sidecar.jsonl"):
        (tmp_path / name).write_text("earlier")
    outputs = ["--output", tmp_path / "masked.txt", "--sidecar", tmp_path / "sidecar.jsonl"]
    assert mask("--technique", "allow_list", "--input", tmp_path / "text.txt", *outputs) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert "secret" not in error
    assert {(tmp_path / name).read_text() for name in ("masked.txt", "sidecar.jsonl")} == {"earlier"}
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--technique", "alow_list"], "'alow_list' is none (did you mean 'allow_list'?)"),
        (["--technique", "allow_list", "--model", "x"], "--model is for entity_tagger, not for allow_list"),
        (["--technique", "allow_list", "--list", "nowhere.txt"], "'nowhere.txt' does not exist"),
        (["--technique", "vocabulary_threshold"], "--word-counts FILE"),
        (["--technique", "vocabulary_threshold", "--most-frequent", "0"], "options: kept_words"),
        (
            ["--technique", "entity_tagger", "--model", "no_such_model"],
            "'no_such_model' is neither an installed package",
        ),
        (["--technique", "entity_tagger", "--tagger", "transformers"], "options: tagger.model: is missing"),
        (["--technique", "entity_tagger", "--minimum-score", "0.5"], "unknown key"),
        (["--technique", "x", "--params", "nowhere.yaml"], "'nowhere.yaml' does not exist"),
    ],
)
def test_bad_options(tmp_path, text, capsys, arguments, message):
    assert mask("--input", text, "--output", tmp_path / "masked.txt", *arguments) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "masked.txt").exists()


def test_settings_from_params_and_options_over_them(tmp_path, text):
    (tmp_path / "counts.tsv").write_text("".join(f"{word}\t5\n" for word in "see here we to".split()))
    parameters = Path("params.yaml").read_text(encoding="utf-8")
    (tmp_path / "params.yaml").write_text(parameters, encoding="utf-8")
    arguments = ["--technique", "vocabulary_threshold", "--params", tmp_path / "params.yaml", "--most-frequent", "2"]
    arguments += ["--word-counts", tmp_path / "counts.tsv", "--kept-words", tmp_path / "kept.txt"]
    arguments += ["--vocabulary-size", "3", "--input", text, "--output", tmp_path / "masked.txt"]
    assert mask(*arguments) == 0
    assert (tmp_path / "kept.txt").read_text() == "here\nsee\n"


def test_a_list_technique_loads_no_heavy_library_and_starts_fast(tmp_path, text):
    script = (
        "import resource, sys\nstart = resource.getrusage(resource.RUSAGE_SELF).ru_utime; from tasks.cli import main\n"
        f"main(['mask', '--technique', 'allow_list', '--input', {str(text)!r}, '--output', {str(tmp_path / 'o')!r}])\n"
        "usage = resource.getrusage(resource.RUSAGE_SELF)\n"
        "heavy = {'torch', 'spacy', 'transformers', 'numpy', 'mlflow', 'lightning', 'pyarrow'} & set(sys.modules)\n"
        "print(usage.ru_utime - start, sorted(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, heavy = result.stdout.strip().split(" ", 1)
    assert heavy == "[]"
    assert float(seconds) < 0.5
