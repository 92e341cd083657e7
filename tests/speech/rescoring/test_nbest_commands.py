"""N-best lists: how they are read and written, what can be won, and the choice by a language model."""

import gzip
import json
import re

import pytest
from command_results import measured, refusal, report, write_records
from stage_commands import settings
from tiny_language_models import save_ngram

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, read_nbest, write_nbest
from tasks.speech.word_errors.word_errors import read_errors


def nbest(name, reference, *hypotheses):
    return NbestList(name, reference, tuple(ScoredHypothesis(*each) for each in hypotheses))


def test_lists_are_cut_to_the_best_and_an_empty_one_stays(tmp_path):
    lines = [
        {"utterance_id": name, "reference": "said", "hypotheses": [{"text": f"{s}", "score": s} for s in scores]}
        for name, scores in (("u1", (-3, -1.5, -2)), ("u2", ()))
    ]
    first, second = read_nbest(write_records(tmp_path / "lists.jsonl", lines), at_most=2)
    assert first == nbest("u1", "said", ("-1.5", -1.5), ("-2", -2.0))
    assert second == nbest("u2", "said")


def test_compressed_lists_are_read_and_written_alike_and_twice_the_same(tmp_path):
    lists = [nbest("u1", "Été", ("été", -0.5)), nbest("u2", "b")]
    for name in ("lists.jsonl", "lists.jsonl.gz", "again.jsonl.gz"):
        write_nbest(tmp_path / name, lists)
        assert read_nbest(tmp_path / name) == lists
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    zipped = (tmp_path / "lists.jsonl.gz").read_bytes()
    assert gzip.decompress(zipped) == (tmp_path / "lists.jsonl").read_bytes()
    assert (tmp_path / "again.jsonl.gz").read_bytes() == zipped


def test_what_can_be_won_by_hand(tmp_path, capsys):
    source, output = tmp_path / "lists.jsonl.gz", tmp_path / "taken.jsonl.gz"
    write_nbest(source, [
        nbest("a", "red house", ("red house", 0.0), ("red mouse", -1.0)),
        nbest("b", "blue house", ("blue mouse", 0.0), ("blue house", -1.0), ("Blue house.", -2.0)),
        nbest("c", "old tree", ("odd tree", 0.0), ("old three", -1.0)),
        nbest("d", "my hat"),
    ])  # fmt: skip
    document = report("check-nbest", *settings(f"source={source}"), "--output", output)
    assert document["measured"] == {
        "utterances": 4,
        "empty_lists": 1,
        "words": 8,
        "hypotheses": 6,
        # One word of b, one of c, both of d; the best of b has none.
        "wer": 4 / 8,
        "oracle_wer": 3 / 8,
        # All but b: of c and of d nothing better is there.
        "best_first_share": 3 / 4,
    }
    assert read_nbest(output) == read_nbest(source)
    assert output.stat().st_mode & 0o777 == 0o600
    assert "mouse" not in json.dumps(document)
    assert document["warnings"] == ["1 lists hold no hypothesis; the words of their references are deleted"]
    assert capsys.readouterr().err == f"warning: {document['warnings'][0]}\n"


# The n-gram model knows "the cat sat on the mat"; the recogniser prefers what it does not.
PAIRS = [("the cat sat on the mat", "the cat sat in the mat"), ("a dog saw the cat", "a dog saw tea cat")]


def six_lists(prefix):
    return [nbest(f"{prefix}{n}", PAIRS[n % 2][0], (PAIRS[n % 2][1], -1.0), (PAIRS[n % 2][0], -2.0)) for n in range(6)]


@pytest.fixture
def files(tmp_path):
    write_nbest(tmp_path / "test.jsonl.gz", six_lists("t"))
    write_nbest(tmp_path / "dev.jsonl", six_lists("d"))
    model = save_ngram(tmp_path / "model")
    return ["--nbest", tmp_path / "test.jsonl.gz", "--dev", tmp_path / "dev.jsonl", "--model", model]


def test_rescored_numbers_by_hand(files, tmp_path):
    counts, output = tmp_path / "c.tsv", tmp_path / "o.jsonl"
    found = measured("rescore", *files, "--counts", counts, "--output", output)
    # Three times 6 and three times 5 words; the recogniser alone has one wrong in each of 6 utterances.
    assert (found["words"], found["utterances"]) == (33, 6)
    assert (found["wer"], found["insertions"], found["deletions"], found["substitutions"]) == (0.0, 0, 0, 0)
    assert (found["wer_ci"], found["oracle_wer"]) == ([0.0, 0.0], 0.0)
    assert (found["baseline"]["wer"], found["baseline"]["substitutions"]) == (6 / 33, 6)
    assert found["insertion_bonus_alone"]["wer"] == 6 / 33
    assert found["lm_weight"] > 0
    assert found["difference_to_baseline"] == pytest.approx(-6 / 33)
    assert (found["dev"]["baseline_wer"], found["dev"]["wer"]) == (6 / 33, 0.0)
    assert len(found["dev"]["grid"]) == 9 * 8 * 4
    assert found["overlap"] is None
    assert read_errors(counts).of("all").errors.tolist() == [0] * 6
    chosen = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert chosen[0] == {"utterance_id": "t0", "text": "the cat sat on the mat"}
    for private in (counts, tmp_path / "o.errors.txt", output):
        assert private.stat().st_mode & 0o777 == 0o600
    assert not re.search(r"\bmat\b", json.dumps(found))


def test_missing_utterances_are_counted_and_the_overlap_with_the_training_text(files, tmp_path):
    said = {one.utterance_id: one.reference for one in six_lists("t")} | {"t9": "a mat"}
    records = [{"utterance_id": name, "audio": "a.flac", "text": text} for name, text in said.items()]
    manifest = write_records(tmp_path / "manifest.jsonl", records)
    train = write_records(tmp_path / "train.txt", ["the cat sat on the mat"])
    found = measured("rescore", *files, "--references", manifest, "--training-text", train)
    assert (found["utterances"], found["missing_hypotheses"], found["deletions"]) == (7, 1, 2)
    assert found["wer"] == found["oracle_wer"] == 2 / 35
    assert found["overlap"] == 3


def test_masked_references_through_the_commands(tmp_path):
    text, sidecar = tmp_path / "test.txt", tmp_path / "sidecars" / "names.jsonl"
    lists = tmp_path / "lists.jsonl"
    write_nbest(lists, [nbest("silence", "..."), *six_lists("t")])
    sidecar.parent.mkdir()
    assert main(["reference-text", "--references", str(lists), "--output", str(text)]) == 0
    assert text.read_text(encoding="utf-8").splitlines()[:3] == ["...", PAIRS[0][0], PAIRS[1][0]]
    write_sidecar(sidecar, [[], *[[MaskedSpan(12, 14, "PERSON", "test", "on", 0)], []] * 3])
    rated = ["word-error-rate", "--references", lists, "--hypotheses", lists, "--sidecar", sidecar.parent]
    found = measured(*rated)["masked_words"]["names"]
    # "on" became "in" in each of three utterances; the other three errors are on words that are not masked.
    assert (found["words"], found["recognised"], found["recall"], found["wer"]) == (3, 0, 0.0, 1.0)
    assert found["wer_rest"] == 3 / 30
    write_sidecar(sidecar, [[], *[[MaskedSpan(12, 14, "PERSON", "test", "at", 0)], []] * 3])
    assert "does not belong to text" in refusal(*rated)


def test_lists_without_references_are_chosen_from_by_given_weights(files, tmp_path, capsys):
    weights, output, new = tmp_path / "r.json", tmp_path / "best.jsonl", tmp_path / "new.jsonl"
    assert main(["rescore", *map(str, files), "--report", str(weights)]) == 0
    lines = []
    for one in [*six_lists("new"), nbest("silence", "")]:
        hypotheses = [{"text": entry.text, "score": entry.score} for entry in one.hypotheses]
        lines.append({"utterance_id": one.utterance_id, "hypotheses": hypotheses})
    write_records(new, lines)
    options = ["rescore", "--nbest", str(new), *map(str, files[4:]), "--output", str(output)]
    assert main([*options, "--weights", str(weights)]) == 0
    said = capsys.readouterr()
    assert "7 utterances, 6 with another choice than the recogniser's" in said.out
    assert "1 lists hold no hypothesis" in said.err
    chosen = [json.loads(line) for line in output.read_text().splitlines()]
    assert chosen == [{"utterance_id": f"new{n}", "text": PAIRS[n % 2][0]} for n in range(6)]
    assert output.stat().st_mode & 0o777 == 0o600
    mute = tmp_path / "mute.jsonl"
    write_nbest(mute, [nbest("u", "...", ("a", 0.0))])
    for wrong, message in [
        (options, "give --dev to tune weights on, or --weights FILE"),
        ([*options, "--weights", weights, "--dev", files[3]], "and not both"),
        ([*options, "--weights", new], "holds no weights; give the report of 'palimpsest rescore'"),
        ([*options, "--weights", weights, "--counts", tmp_path / "c.tsv"], "--counts has no use with --weights"),
        ([*options, "--dev", files[3]], "has no 'reference' that is text"),
        (["rescore", *files, "--dev", mute], "none of the n-best lists of --dev has a reference that holds a word"),
        (["rescore", *files, "--nbest", mute], "none of the n-best lists of --nbest has a reference that holds a word"),
        (["rescore", *files, "--set", "rescoring.lm_weights=[0.5]"], "0 among them"),
    ]:
        assert message in refusal(*wrong)
