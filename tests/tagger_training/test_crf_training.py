"""A conditional random field: what it learns, finds and refuses, by the commands and as a tagger."""

import json
import shutil

import pytest
from labelled_sentences import found_by, labelled, sentences, train_crf
from stage_commands import settings

from tasks.cli import main
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_tagger import CrfModel
from tasks.tagger_training import crf_training
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.train_tagger import class_of


def load(folder, minimum=0.03):
    return CrfModel(CrfTagger(kind="crf", model=str(folder), minimum_probability=minimum))


def test_the_longest_of_overlapping_spans_labels_a_token():
    line = labelled("at Tom Jones School, in Jena.", PERSON="Tom Jones", ORGANISATION="Tom Jones School", CITY="Jena")
    tokens, labels = crf_training.tokens_and_labels(line, class_of)
    assert [line.text[start:end] for start, end, _ in tokens] == "at Tom Jones School , in Jena .".split()
    assert labels == "O B-ORGANISATION I-ORGANISATION I-ORGANISATION O O B-LOCATION O".split()


def test_names_that_were_never_seen_are_found_also_in_a_long_line_and_by_the_command(crf, tmp_path, capsys):
    folder, measured = crf
    assert (measured["lines"], measured["labelled_tokens"]) == (80, 40)
    # Two of the four test sentences hold one private word each, and both are found.
    assert (measured["test_recall"], measured["test_precision"], measured["test_f2"]) == (1.0, 1.0, 1.0)
    assert "Zbigniew" not in json.dumps(measured)
    model, name, line = load(folder), [("Zbigniew", "PERSON")], "my name is Zbigniew and that is all. "
    found = found_by(model, line, "she lives in Wanne with a dog", "that is all we know", line * 1000)
    assert found == [name, [("Wanne", "LOCATION")], [], name * 1000]
    assert model.entity_types == ["LOCATION", "PERSON"]
    (tmp_path / "text.txt").write_text("my name is Wladyslaw and that is all\n")
    options = [*settings(f"tagger.model={folder}", "markers.style=class"), "--input", str(tmp_path / "text.txt")]
    assert main(["mask", "--technique", "crf", *options, "--output", "-"]) == 0
    assert capsys.readouterr().out == "my name is [PERSON] and that is all\n"


def test_a_lower_threshold_finds_all_that_a_higher_one_finds_and_more(crf):
    lines = ["is my name Zed and it lives", "in a town called Oz the dog lives", "", "😀 \x00", "a" * 100_000]
    masked = []
    for minimum in (0.9, 0.3, 0.001):
        tagged = list(load(crf[0], minimum).tag(lines))
        assert [line for line, _ in tagged] == lines
        masked.append({(line, span.start) for line, spans in tagged for span in spans if span.score >= minimum})
    assert masked[0] <= masked[1] <= masked[2]
    assert len(masked[0]) < len(masked[2])


def test_the_same_text_gives_the_same_bytes_and_without_a_private_word_the_rates_are_undefined(crf, tmp_path, capsys):
    measured = train_crf(tmp_path, [labelled("that is all we know about it")])
    assert "recall undefined" in capsys.readouterr().err
    assert (measured["test_lines"], measured["test_recall"], measured["test_f2"]) == (1, None, None)
    for file in ("model.crfsuite", "tagger.json", "clusters.tsv"):
        assert (tmp_path / "crf" / file).read_bytes() == (crf[0] / file).read_bytes()


def test_refusals_of_a_training(tmp_path):
    given = CrfTraining(kind="crf", embeddings=None)
    with pytest.raises(CorpusError, match="no labelled word"):
        crf_training.train_crf([labelled("nothing here")], class_of, given, tmp_path / "x")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="is no tagger"):
        crf_training.train_crf(sentences("Al", "Ulm"), class_of, given, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_refusals_of_a_folder(tmp_path, crf):
    truncated = (crf[0] / "model.crfsuite").read_bytes()[:-100]
    other = {**json.loads((crf[0] / "tagger.json").read_text()), "features": 0}
    for file, content, said in (
        ("model.crfsuite", None, r"'model\.crfsuite' is missing"),
        ("model.crfsuite", truncated, r"'model\.crfsuite' is not the one that was written"),
        ("tagger.json", json.dumps(other).encode(), "features of version 0"),
    ):
        damaged = shutil.copytree(crf[0], tmp_path / "damaged", dirs_exist_ok=True)
        (damaged / file).unlink()
        if content is not None:
            (damaged / file).write_bytes(content)
        with pytest.raises(ModelError, match=said):
            load(damaged)
