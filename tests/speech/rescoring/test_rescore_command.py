"""The commands from lists to numbers."""

import json
import re
from pathlib import Path

import pytest
from tiny_language_models import save_ngram

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest
from tasks.speech.word_errors.error_counts_file import read_errors

# The n-gram model knows "the cat sat on the mat"; the recogniser prefers what it does not.
PAIRS = [("the cat sat on the mat", "the cat sat in the mat"), ("a dog saw the cat", "a dog saw tea cat")]


def lists(prefix: str, count: int = 6) -> list[NbestList]:
    made = []
    for index in range(count):
        right, wrong = PAIRS[index % len(PAIRS)]
        hypotheses = (ScoredHypothesis(wrong, -1.0), ScoredHypothesis(right, -2.0))
        made.append(NbestList(f"{prefix}{index}", right, hypotheses))
    return made


@pytest.fixture
def files(tmp_path):
    write_nbest(tmp_path / "test.jsonl.gz", lists("t"))
    write_nbest(tmp_path / "dev.jsonl", lists("d"))
    model = save_ngram(tmp_path / "model")
    return ["--nbest", str(tmp_path / "test.jsonl.gz"), "--dev", str(tmp_path / "dev.jsonl"), "--model", model]


def test_numbers_by_hand(files, tmp_path):
    counts, errors, output, report = (str(tmp_path / name) for name in ("c.tsv", "o.errors.txt", "o.jsonl", "r.json"))
    written = ["--counts", counts, "--output", output, "--report", report]
    assert main(["rescore", *files, *written]) == 0
    found = json.loads(Path(report).read_text(encoding="utf-8"))["measured"]
    # Three times 6 and three times 5 words; the recogniser alone has one wrong in each of 6 utterances.
    assert (found["words"], found["utterances"]) == (33, 6)
    assert (found["wer"], found["insertions"], found["deletions"], found["substitutions"]) == (0.0, 0, 0, 0)
    assert found["wer_ci"] == [0.0, 0.0]
    assert found["baseline"]["wer"] == 6 / 33
    assert found["baseline"]["substitutions"] == 6
    assert found["insertion_bonus_alone"]["wer"] == 6 / 33
    assert found["oracle_wer"] == 0.0
    assert found["lm_weight"] > 0
    assert found["difference_to_baseline"] == pytest.approx(-6 / 33)
    assert found["dev"]["baseline_wer"] == 6 / 33
    assert found["dev"]["wer"] == 0.0
    assert len(found["dev"]["grid"]) == 9 * 8
    assert read_errors(counts).of("all").errors.tolist() == [0] * 6
    chosen = [json.loads(line) for line in Path(output).read_text(encoding="utf-8").splitlines()]
    assert chosen[0] == {"utterance_id": "t0", "text": "the cat sat on the mat"}
    for private in (counts, errors, output):
        assert (tmp_path / private).stat().st_mode & 0o777 == 0o600
    assert not re.search(r"\bmat\b", Path(report).read_text(encoding="utf-8"))
    assert found["overlap"] is None


def test_missing_utterances_are_counted(files, tmp_path, measured):
    manifest = tmp_path / "manifest.jsonl"
    records = [{"utterance_id": one.utterance_id, "audio": "a.flac", "text": one.reference} for one in lists("t")]
    records.append({"utterance_id": "t9", "audio": "a.flac", "text": "a mat"})
    manifest.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    found = measured("rescore", *files, "--references", manifest)
    assert (found["utterances"], found["missing_hypotheses"], found["deletions"]) == (7, 1, 2)
    assert found["wer"] == found["oracle_wer"] == 2 / 35


def test_what_cannot_be_ends_in_one_line_and_overlap_is_measured(files, tmp_path, measured, refusal):
    (tmp_path / "train.txt").write_text("the cat sat on the mat\n", encoding="utf-8")
    training = ["--training-text", str(tmp_path / "train.txt")]
    mute = str(tmp_path / "mute.jsonl")
    write_nbest(mute, [NbestList("u", "...", (ScoredHypothesis("a", 0.0),))])
    for options, message in (
        (["--dev", mute], "none of the n-best lists of --dev has a reference that holds a word"),
        (["--nbest", mute], "none of the n-best lists of --nbest has a reference that holds a word"),
        (["--set", "rescoring.lm_weights=[0.5]"], "0 among them"),
    ):
        assert message in refusal("rescore", *files, *options)
    assert measured("rescore", *files, *training)["overlap"]["shared_sentences"] == 3


def test_masked_references_through_the_commands(files, tmp_path, measured):
    text, sidecar = str(tmp_path / "test.txt"), tmp_path / "sidecars" / "names.jsonl"
    sidecar.parent.mkdir()
    assert main(["reference-text", "--references", files[1], "--output", text]) == 0
    assert Path(text).read_text(encoding="utf-8").splitlines()[:2] == [PAIRS[0][0], PAIRS[1][0]]
    write_sidecar(sidecar, [[MaskedSpan(12, 14, "PERSON", "test", "on", 0)], []] * 3)
    lists = ["--references", files[1], "--hypotheses", files[1]]
    found = measured("word-error-rate", *lists, "--sidecar", sidecar.parent)["masked_words"]["names"]
    # "on" became "in" in each of three utterances; the other three errors are on words that are not masked.
    assert (found["words"], found["recognised"], found["recall"], found["wer"]) == (3, 0, 0.0, 1.0)
    assert found["wer_rest"] == 3 / 30


def test_lists_without_references_are_chosen_from_by_given_weights(files, tmp_path, capsys):
    report, output = str(tmp_path / "r.json"), tmp_path / "best.jsonl"
    assert main(["rescore", *files, "--report", report]) == 0
    lines = []
    for one in lists("new"):
        hypotheses = [{"text": entry.text, "score": entry.score} for entry in one.hypotheses]
        lines.append(json.dumps({"utterance_id": one.utterance_id, "hypotheses": hypotheses}))
    lines.append(json.dumps({"utterance_id": "silence", "hypotheses": []}))
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n")
    options = ["--nbest", str(tmp_path / "new.jsonl"), *files[4:], "--output", str(output)]
    assert main(["rescore", *options, "--weights", report]) == 0
    said = capsys.readouterr()
    assert "7 utterances, 6 with another choice than the recogniser's" in said.out
    assert "1 lists hold no hypothesis" in said.err
    chosen = [json.loads(line) for line in output.read_text().splitlines()]
    assert chosen == [{"utterance_id": f"new{n}", "text": PAIRS[n % 2][0]} for n in range(6)]
    assert output.stat().st_mode & 0o777 == 0o600
    for wrong, message in [
        ([], "give --dev to tune weights on, or --weights FILE"),
        (["--weights", report, "--dev", files[3]], "and not both"),
        (["--weights", str(tmp_path / "new.jsonl")], "holds no weights; give the report of 'palimpsest rescore'"),
        (["--weights", report, "--counts", str(tmp_path / "c.tsv")], "--counts has no use with --weights"),
        (["--dev", files[3]], "has no 'reference' that is text"),
    ]:
        assert main(["rescore", *options, *wrong]) == 1
        assert message in capsys.readouterr().err
