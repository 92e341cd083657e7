"""The methods that weigh words, from the command line."""

import json
import math
from pathlib import Path

import pytest
import yaml
from stage_commands import settings
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.files.clone_key import clone_key, key_id
from tasks.privacy.ledger import Release, append_to_ledger

ROOT = Path(__file__).parents[2]
TOKENIZER = word_piece_tokenizer()
LINES = 60
GENERIC = "".join(
    f"the {first} sat on the {second}\nthe red dog ran\n"
    for first in ("cat", "dog", "mat", "tom", "paris")
    for second in ("cat", "dog", "mat")
)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("the [MASK] sat on the [MASK]\n" * LINES, encoding="utf-8")
    (tmp_path / "allowed_words.txt").write_text("the\nsat\non\nran\n", encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("the\t90\ntom\t60\nparis\t20\ncat\t9\ndog\t3\nmat\t1\n", encoding="utf-8")
    (tmp_path / "generic").mkdir()
    for part in ("train", "valid"):
        (tmp_path / "generic" / f"{part}.txt").write_text(GENERIC, encoding="utf-8")
    spans = [MaskedSpan(4, 7, "MASK", "list", "dog", 0), MaskedSpan(15, 18, "MASK", "list", "mat", 1)]
    write_sidecar(tmp_path / "sidecar.jsonl", [spans] * LINES)
    return tmp_path


def fill(corpus, method, *options, name="filled", generic=True):
    given = [
        "--input", corpus / "masked.txt", "--output", corpus / f"{name}.txt", "--report", corpus / f"{name}.json",
        "--method", method,
        "--allowed-words", corpus / "allowed_words.txt", "--word-counts", corpus / "word_counts.tsv",
        *(["--generic", corpus / "generic"] if generic else []),
        *options,
    ]  # fmt: skip
    return main(["fill", *map(str, given)])


def counted_from(corpus):
    return ["--sidecar", corpus / "sidecar.jsonl", *settings("prior=counted")]


def words_of(corpus, name="filled"):
    lines = (corpus / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return [tuple(line.removeprefix("the ").split(" sat on the ")) for line in lines]


def measured(corpus, name="filled"):
    return json.loads((corpus / f"{name}.json").read_text(encoding="utf-8"))["measured"]


def test_fills_are_candidates_and_the_report_says_what_was_learned(corpus, bert):
    assert fill(corpus, "log_linear", "--filler", bert) == 0
    words = {word.lower() for pair in words_of(corpus) for word in pair}
    assert words <= {"cat", "dog", "mat", "tom", "paris"}
    assert len(words) > 2
    found = measured(corpus)
    assert found["fallback_count"] == 0
    learned = found["log_linear"]
    assert (learned["candidates"], learned["tuning_places"]) == (5, 30)
    assert learned["tuning_places_without_candidate"] == 0
    assert learned["weights"] == {"filler": 2.0, "frequency": 1.0, "average": 2.0}


def test_a_causal_model_takes_its_own_prior_from_the_word_counts(corpus, llama, capsys):
    domain = settings("prior=domain", "weights.filler=2.0")
    assert fill(corpus, "log_linear", "--filler", llama, *domain) == 0
    words = {word.lower() for pair in words_of(corpus) for word in pair}
    assert words <= {"cat", "dog", "mat", "tom", "paris"}
    assert len(words) > 2
    assert measured(corpus)["log_linear"]["weights"] == {"filler": 2.0, "frequency": 1.0, "average": 2.0}
    capsys.readouterr()
    assert fill(corpus, "log_linear", "--filler", llama, *counted_from(corpus)) == 1
    assert "prior 'counted' needs a masked language model" in capsys.readouterr().err


def test_averages_are_of_generic_text(corpus, bert, llama, capsys):
    assert fill(corpus, "log_linear", "--filler", bert, generic=False) == 1
    assert "needs the filler's mean probabilities on generic text; give --generic" in capsys.readouterr().err
    assert fill(corpus, "log_linear", "--filler", llama, generic=False) == 0
    fixed = settings("weights={filler: 1.0, average: 0}")
    assert fill(corpus, "log_linear", "--filler", bert, *fixed, generic=False) == 0


def test_the_sidecar_changes_no_fill(corpus, bert):
    options = ["--filler", bert]
    assert fill(corpus, "log_linear", *options, name="without") == 0
    assert fill(corpus, "log_linear", *options, "--sidecar", corpus / "sidecar.jsonl", name="with") == 0
    assert words_of(corpus, "with") == words_of(corpus, "without")
    assert measured(corpus, "with")["log_linear"] == measured(corpus, "without")["log_linear"]
    assert measured(corpus, "with")["restoration_rate"] is not None


def test_a_filler_that_says_always_the_same_leaves_the_frequencies(corpus, tmp_path_factory):
    """The context says nothing, so tom is drawn 60 of 93 times, whatever the filler's favourite is."""
    model = bert_of_bias(TOKENIZER, {"cat": 5.0, "dog": 2.0, "tom": 0.0, "paris": 0.0, "mat": 0.0}, others=-30.0)
    always = save(model, TOKENIZER, tmp_path_factory.mktemp("fillers") / "always")
    assert fill(corpus, "log_linear", "--filler", always) == 0
    share = sum(word.lower() == "tom" for pair in words_of(corpus) for word in pair) / (2 * LINES)
    assert abs(share - 60 / 93) < 4 * math.sqrt(60 * 33 / 93**2 / (2 * LINES))


@pytest.mark.parametrize("method", ["log_linear", "unigram"])
def test_noisy_counts_bring_the_masked_words(corpus, bert, monkeypatch, method):
    """Every second masked word is dog, and every other mat; public text has mostly tom. Nothing private is reported."""
    monkeypatch.chdir(corpus)
    options = ["--filler", bert] if method == "log_linear" else []
    options += ["--sidecar", corpus / "sidecar.jsonl"]
    assert fill(corpus, method, *options, *settings("prior=domain"), name="domain") == 0
    for name in ("counted", "again"):
        assert fill(corpus, method, *options, *settings("prior=counted", "counts.epsilon=16"), name=name) == 0

    def share(name):
        words = [word.lower() for pair in words_of(corpus, name) for word in pair]
        return sum(word in ("dog", "mat") for word in words) / len(words)

    assert share("domain") < 0.4 < 0.8 < share("counted")
    assert words_of(corpus, "again") == words_of(corpus, "counted")
    counted = measured(corpus, "counted")["counted_frequencies"]
    assert (counted["epsilon"], counted["words_per_unit"], counted["counted_places"]) == (16.0, 1, LINES)
    assert "counted_frequencies" not in measured(corpus, "domain")
    report = (corpus / "counted.json").read_text(encoding="utf-8")
    assert "dog" not in report
    assert clone_key("noise").hex() not in report
    assert counted["key"] == key_id()
    assert json.loads(report)["warnings"] == []


@pytest.mark.parametrize("method", ["log_linear", "unigram"])
def test_a_counted_fill_and_its_report_are_functions_of_the_noisy_counts(corpus, bert, monkeypatch, method):
    """Two sidecars with the same counts, and the same noise: who is given fill and report cannot tell them apart."""
    monkeypatch.chdir(corpus)
    monkeypatch.setattr("tasks.filling.frequencies.counted_frequencies._secret", lambda *_: bytes(32))
    options = ["--filler", bert] if method == "log_linear" else []
    options += counted_from(corpus)
    found = []
    for first, second in (("dog", "mat"), ("mat", "dog")):
        spans = [MaskedSpan(4, 7, "MASK", "list", first, 0), MaskedSpan(15, 18, "MASK", "list", second, 1)]
        write_sidecar(corpus / "sidecar.jsonl", [spans] * LINES)
        assert fill(corpus, method, *options, *settings("counts.words_per_unit=2")) == 0
        report = {name: value for name, value in measured(corpus).items() if "second" not in name}
        found.append((report, words_of(corpus)))
    assert found[0] == found[1]
    assert found[0][0]["restoration"] is None


def released(measured, **changes):
    counted = measured["counted_frequencies"]
    entry = {"name": "spring", "when": "2026-01-01T00:00:00+00:00", "cell": "mail/crf/unigram-1", "dataset": "mail"}
    entry |= {"technique": "crf", "corpus": "c0", "key": counted["key"], "lines": LINES, "unit": "line"}
    entry |= {"epsilon": counted["epsilon"], "words_per_unit": 1, "counts": counted["counts"], **changes}
    return Release(**entry)


def test_what_has_left_is_reckoned_with(corpus, capsys, monkeypatch):
    """A second key, counts that are gone and a budget that is spent: one line each, and nothing is filled."""
    monkeypatch.chdir(corpus)
    options = [*counted_from(corpus)]
    options += ["--cell", "dataset=mail"]
    assert fill(corpus, "unigram", *options) == 0
    first = measured(corpus)
    append_to_ledger(released(first))

    def run(*more, **release):
        document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
        (corpus / "params.yaml").write_text(yaml.safe_dump(document | {"release": release}), encoding="utf-8")
        capsys.readouterr()
        return fill(corpus, "unigram", *options, "--params", corpus / "params.yaml", *more, name="later")

    def error(*more, **release):
        assert run(*more, **release) == 1
        assert not (corpus / "later.txt").exists()
        found = capsys.readouterr().err
        assert found.count("\n") == 1
        return found

    budget = "epsilon 3 and 4 of releases 'spring' are 7, above release.epsilon_budget=6"
    assert budget in error(*settings("counts.epsilon=3"), epsilon_budget=6.0)
    key, path = first["counted_frequencies"]["key"], corpus / "data" / "private" / "keys" / "clone_key"
    path.rename(corpus / "lost")
    assert f"by key '{key}', and this clone's is" in error()
    path.write_bytes(bytes(32))
    assert f"by key '{key}', and this clone's is '{key_id()}'" in error()
    assert run(other_keys=[key]) == 0
    path.unlink()
    (corpus / "lost").rename(path)
    assert run(*settings("counts.epsilon=2"), epsilon_budget=6.0) == 0
    assert run(epsilon_budget=4.0) == 0


def test_noisy_counts_may_protect_documents(corpus, capsys, monkeypatch):
    """All lines but the last ten are of one document, which adds two words."""
    monkeypatch.chdir(corpus)
    (corpus / "documents.txt").write_text(
        "one\n" * (LINES - 10) + "".join(f"{n}\n" for n in range(10)), encoding="utf-8"
    )
    options = [*counted_from(corpus), *settings("counts.unit=document", "counts.words_per_unit=2")]
    assert fill(corpus, "unigram", *options) == 1
    assert "with counts.unit='document' protects all lines of a document together" in capsys.readouterr().err
    assert fill(corpus, "unigram", *options, "--documents", corpus / "documents.txt") == 0
    found = measured(corpus)
    assert found["counted_frequencies"]["unit"] == "document"
    assert found["counted_frequencies"]["counted_places"] == 2 + 10 * 2
    inputs = json.loads((corpus / "filled.json").read_text(encoding="utf-8"))["inputs"]
    assert str(corpus / "documents.txt") in inputs
