"""The n-gram model by the same commands as the Transformer."""

import json
import math
from pathlib import Path

import pytest
from pretrained_folder import perplexity, write
from stage_commands import make_vocabulary, settings

from tasks.cli import main
from tasks.records.stage_report import read_report

GENERIC = ["the cat sat on the mat", "a dog and a cat", "the dog sat", "on the mat a dog sat"] * 30
PRIVATE = ["alice saw the cat", "bob sat on the dog", "the cat saw bob"] * 40
MASKED = ["[MASK] saw the cat", "[MASK] sat on the dog", "the cat saw [MASK]"] * 40
VALID = ["the cat saw the dog", "a cat sat on bob"]


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


def test_an_adaptation_is_better_than_either_model_alone_and_its_owners_alone(pretrained, tmp_path):
    report = tmp_path / "adapt.json"
    options = ["--cell", "method=oracle", "--seed", "3", "--report", str(report)]
    assert adapt(pretrained, "private", tmp_path / "mixed", *options) == 0
    assert (tmp_path / "mixed").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "mixed").iterdir()} == {0o600}
    # Words outside the vocabulary are in no file.
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or not any(name in path.read_bytes() for name in (b"alice", b"bob"))
    valid = pretrained / "valid.txt"
    weights = {}
    for name, weight in (("generic", "1"), ("adapted", "0")):
        fixed = settings(f"ngram.generic_weight={weight}")
        assert adapt(pretrained, "private", tmp_path / name, *fixed, valid=False) == 0
        weights[name] = perplexity(tmp_path / name, valid)["perplexity"]
    mixed = perplexity(tmp_path / "mixed", valid)
    assert mixed["perplexity"] < min(weights.values())
    assert weights["generic"] == pytest.approx(perplexity(pretrained / "pretrained", valid)["perplexity"])
    document = read_report(report)
    assert 0.05 < document["measured"]["generic_weight"] < 0.95
    assert document["seed"] == 3
    losses = [point["valid_loss"] for point in document["measured"]["curve"]]
    assert [math.exp(loss) for loss in losses] == pytest.approx([weights["generic"], mixed["perplexity"]], rel=1e-5)


def test_baselines_differ_in_whether_the_marker_is_predicted(pretrained, tmp_path):
    kept = {}
    for method, use in (("baseline0", "token"), ("baseline1", "ignore")):
        assert adapt(pretrained, "masked", tmp_path / method, "--markers", use) == 0
        found = [
            perplexity(tmp_path / method, pretrained / "private.txt", *settings(f"markers={rule}"))["perplexity"]
            for rule in ("in_vocabulary", "renormalised")
        ]
        kept[method] = found[0] / found[1]
    # What a model keeps for markers is lost on plain text; a little of it is what every unseen token gets.
    assert kept["baseline0"] > 1.2 > 1.1 > kept["baseline1"] > 1


@pytest.mark.parametrize(("shared", "change", "count"), [(3, str.upper, 3), (0, str, 0)])
def test_lines_of_the_text_among_the_validation_text_are_counted(pretrained, tmp_path, shared, change, count):
    lines = list(map(change, list(dict.fromkeys(PRIVATE))[:shared]))
    (tmp_path / "valid.txt").write_text("".join(f"{line}\n" for line in [*lines, "words of its own", "", "others"]))
    options = ["--valid", str(tmp_path / "valid.txt"), "--report", str(tmp_path / "r.json")]
    assert adapt(pretrained, "private", tmp_path / "model", *options, valid=False) == 0
    warnings = [each for each in json.loads((tmp_path / "r.json").read_text())["warnings"] if "--valid" in each]
    assert [each.split(" are ")[0] for each in warnings] == [f"{count} of {count + 3} lines of --valid"] * (count > 0)


def test_refusals(pretrained, tmp_path, capsys):
    for options, said in (
        ([], "give ngram.generic_weight or --valid"),
        (settings("ngram.generic_weight=1.5"), "generic_weight: Input should be"),
        (settings("adaptation.learning_rate=0.1"), "adaptation: unknown key; allowed: kind, ngram"),
        (settings("causal_lm.adaptation.lora=null"), "causal_lm: unknown key"),
    ):
        assert adapt(pretrained, "private", tmp_path / "model", *options, valid=False) == 1
        assert said in capsys.readouterr().err
        assert not (tmp_path / "model").exists()
    assert adapt(pretrained, "private", tmp_path / "model") == 0
    with open(tmp_path / "model" / "adapted.arpa", "a", encoding="utf-8") as stream:
        stream.write("\n")
    capsys.readouterr()
    assert main(["perplexity", "--model", str(tmp_path / "model"), "--input", str(pretrained / "valid.txt")]) == 1
    error = capsys.readouterr().err
    assert "adapted.arpa' is damaged or belongs to another model" in error
    assert error.count("\n") == 1
