"""The n-gram model by the same commands as the Transformer."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from stage_commands import make_vocabulary

from tasks.cli import main
from tasks.language_model.ngram.folder import load
from tasks.records.stage_report import read_report

GENERIC = ["the cat sat on the mat", "a dog and a cat", "the dog sat", "on the mat a dog sat"] * 30
PRIVATE = ["alice saw the cat", "bob sat on the dog", "the cat saw bob"] * 40
MASKED = ["[MASK] saw the cat", "[MASK] sat on the dog", "the cat saw [MASK]"] * 40
VALID = ["the cat saw the dog", "a cat sat on bob"]


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, vocabulary.txt and an n-gram model of the generic text."""
    folder = tmp_path_factory.mktemp("ngram")
    for name, lines in (("generic", GENERIC), ("private", PRIVATE), ("masked", MASKED), ("valid", VALID)):
        write(folder / f"{name}.txt", lines)
    text, vocabulary = str(folder / "generic.txt"), str(folder / "vocabulary.txt")
    make_vocabulary(text, vocabulary, "size=100")
    options = ["--valid", str(folder / "valid.txt"), "--report", str(folder / "pretrained.json")]
    command = ["pretrain", "--set", "kind=ngram", "--vocabulary", vocabulary, "--input", text, *options]
    assert main([*command, "--output", str(folder / "pretrained")]) == 0
    return folder


def adapt(pretrained: Path, text: str, output: Path, *options: str, valid: bool = True) -> int:
    command = ["adapt", "--model", str(pretrained / "pretrained"), "--input", str(pretrained / f"{text}.txt")]
    command += ["--valid", str(pretrained / "valid.txt")] if valid else []
    return main([*command, "--output", str(output), *options])


def perplexity(model: Path, text: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict:
    capsys.readouterr()
    command = ["perplexity", "--model", str(model), "--input", str(text), "--report", "-", "--threads", "1", *options]
    assert main(command) == 0
    return json.loads(capsys.readouterr().out)["measured"]


def test_pretraining_reports_what_it_counted(pretrained: Path) -> None:
    document = read_report(pretrained / "pretrained.json")
    measured = document["measured"]
    assert document["stage"] == "pretrain"
    assert document["parameters"] == {"kind": "ngram", "ngram": {"order": 3, "generic_weight": None}}
    assert (measured["sentences"], measured["words"], measured["tokens"]) == (120, 600, 720)
    # The pairs of the first sentence with its start and end, and what is new in each of the other three.
    assert measured["ngrams"]["2"] == 7 + 6 + 3 + 2
    assert "the text is too small to estimate the discounts" in document["warnings"][0]


def test_an_adaptation_is_better_than_either_model_alone_and_its_owners_alone(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "adapt.json"
    options = ["--cell", "method=oracle", "--seed", "3", "--report", str(report)]
    assert adapt(pretrained, "private", tmp_path / "mixed", *options) == 0
    assert (tmp_path / "mixed").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "mixed").iterdir()} == {0o600}
    valid = pretrained / "valid.txt"
    weights = {}
    for name, weight in (("generic", "1"), ("adapted", "0")):
        assert (
            adapt(pretrained, "private", tmp_path / name, "--set", f"ngram.generic_weight={weight}", valid=False) == 0
        )
        weights[name] = perplexity(tmp_path / name, valid, capsys)["perplexity"]
    mixed = perplexity(tmp_path / "mixed", valid, capsys)
    assert mixed["perplexity"] < min(weights.values())
    assert weights["generic"] == pytest.approx(perplexity(pretrained / "pretrained", valid, capsys)["perplexity"])
    document = read_report(report)
    assert 0.05 < document["measured"]["generic_weight"] < 0.95
    assert document["seed"] == 3
    losses = [point["valid_loss"] for point in document["measured"]["curve"]]
    assert [math.exp(loss) for loss in losses] == pytest.approx([weights["generic"], mixed["perplexity"]], rel=1e-5)


def test_a_second_adaptation_keeps_the_models_of_the_first(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adapt(pretrained, "private", tmp_path / "first", "--set", "ngram.generic_weight=0.5") == 0
    command = ["adapt", "--model", str(tmp_path / "first"), "--input", str(pretrained / "generic.txt")]
    assert main([*command, "--output", str(tmp_path / "second"), "--set", "ngram.generic_weight=0.2"]) == 0
    mixture, _ = load(tmp_path / "second")
    assert mixture.weights == pytest.approx([0.1, 0.1, 0.8])
    assert perplexity(tmp_path / "second", pretrained / "valid.txt", capsys)["perplexity"] > 1


def test_baselines_differ_in_whether_the_marker_is_predicted(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for method, use in (("baseline0", "token"), ("baseline1", "ignore")):
        assert adapt(pretrained, "masked", tmp_path / method, "--markers", use) == 0
        text = pretrained / "private.txt"
        found[method] = [
            perplexity(tmp_path / method, text, capsys, "--set", f"markers={rule}")
            for rule in ("in_vocabulary", "renormalised")
        ]
    kept = {method: values[0]["perplexity"] / values[1]["perplexity"] for method, values in found.items()}
    # What a model keeps for markers is lost on plain text; a little of it is what every unseen token gets.
    assert kept["baseline0"] > 1.2 > 1.1 > kept["baseline1"] > 1


def test_words_outside_the_vocabulary_are_in_no_file(pretrained: Path, tmp_path: Path) -> None:
    assert adapt(pretrained, "private", tmp_path / "model", "--report", str(tmp_path / "report.json")) == 0
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or not any(name in path.read_bytes() for name in (b"alice", b"bob"))


def test_a_damaged_folder_is_found_out(pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "model"
    assert adapt(pretrained, "private", output) == 0
    with open(output / "adapted.arpa", "a", encoding="utf-8") as stream:
        stream.write("\n")
    capsys.readouterr()
    assert main(["perplexity", "--model", str(output), "--input", str(pretrained / "valid.txt")]) == 1
    error = capsys.readouterr().err
    assert "adapted.arpa' is damaged or belongs to another model" in error
    assert error.count("\n") == 1


def test_a_weight_needs_a_text_to_find_it_by(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adapt(pretrained, "private", tmp_path / "model", valid=False) == 1
    assert "give ngram.generic_weight or --valid" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("options", [["--set", "ngram.generic_weight=1.5"], ["--set", "ngram.generic_weight=-0.1"]])
def test_a_weight_is_a_share(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert adapt(pretrained, "private", tmp_path / "model", *options) == 1
    assert "generic_weight: Input should be" in capsys.readouterr().err


def test_the_parameter_file_says_the_kind_and_a_model_of_another_kind_is_refused(
    pretrained: Path, tmp_path: Path, parameter_file: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    params = parameter_file()
    assert adapt(pretrained, "private", tmp_path / "model", "--params", params) == 1
    assert "is of kind 'ngram', and " in capsys.readouterr().err
    document = yaml.safe_load(Path(params).read_text(encoding="utf-8"))
    document["language_model"] |= {"kind": "ngram", "ngram": {"order": 2, "generic_weight": None}}
    Path(params).write_text(yaml.safe_dump(document), encoding="utf-8")
    assert adapt(pretrained, "private", tmp_path / "model", "--params", params) == 0
    texts = ["--input", str(pretrained / "generic.txt"), "--vocabulary", str(pretrained / "vocabulary.txt")]
    assert main(["pretrain", "--params", params, *texts, "--output", str(tmp_path / "bigram")]) == 0
    assert [model.order for model in load(tmp_path / "model")[0].models] == [3, 2]
    assert [model.order for model in load(tmp_path / "bigram")[0].models] == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "adaptation.learning_rate=0.1"], "adaptation: unknown key; allowed: kind, ngram"),
        (["--set", "causal_lm.adaptation.lora=null"], "causal_lm: unknown key"),
    ],
)
def test_settings_of_other_kinds_are_refused(
    pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert adapt(pretrained, "private", tmp_path / "model", *options) == 1
    assert message in capsys.readouterr().err
