"""A classifier of made-up insults, and models that write them always, never, or now and then."""

import json
import shutil
from random import Random

import numpy as np
import pytest
from tiny_causal_models import TEXT, causal_tokenizer, llama_of_last_piece, random_llama, save
from tiny_language_models import save_ngram
from tiny_masked_models import random_bert, word_piece_tokenizer
from tiny_masked_models import save as save_encoder

from tasks.cli import main
from tasks.language_model.normalisation import normalise
from tasks.language_model.opening import open_language_model
from tasks.toxicity.classifier import Classifier
from tasks.toxicity.labelled_texts import read_labelled_texts
from tasks.toxicity.last_words import last_word_accuracy
from tasks.toxicity.train_toxicity import _parts

WORDS = "the cat sat on mat and saw dog red house ran to".split()


def write(path, rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def pairs(seed, number=100):
    """Sentences of six words, and the same with a made-up insult for one of them."""
    chance = Random(seed)
    for _ in range(number):
        words = chance.choices(WORDS, k=6)
        bad = words.copy()
        bad[chance.randrange(6)] = chance.choice(["zorp", "zorping"])
        yield {"toxic": " ".join(bad), "neutral": [" ".join(words)]}


def coins(seed, number=300):
    """The same texts with labels by coin."""
    chance = Random(seed)
    for pair in pairs(seed, number):
        yield {"text": pair["toxic"], "label": chance.randrange(2)}


TRAIN = ["train-toxicity", "--set", "names=100", "--labelled"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts, a classifier that is proven, and one that is measured on labels by coin too."""
    folder = tmp_path_factory.mktemp("toxicity")
    save_encoder(random_bert(word_piece_tokenizer()), word_piece_tokenizer(), folder / "encoder")
    texts = {name: write(folder / f"{name}.jsonl", rows) for name, rows in
             {"pairs": pairs(1), "other": pairs(2), "coins": coins(3)}.items()}  # fmt: skip
    command = [*TRAIN, texts["pairs"], "--set", f"encoder={folder / 'encoder'}", "--other", texts["other"]]
    more = ["--prompts", str(folder / "prompts.txt"), "--report", str(folder / "proven.json")]
    assert main([*command, "--output", str(folder / "proven"), *more]) == 0
    command += [texts["coins"], "--report", str(folder / "unproven.json")]
    assert main([*command, "--output", str(folder / "unproven")]) == 0
    return folder


@pytest.fixture(scope="module")
def models(folder):
    """Causal models: one always writes the insult, one never, one ends its line at once, one anything."""
    tokenizer = causal_tokenizer(f"{TEXT} zorp zorp zorp")
    known = tokenizer.get_vocab()
    for name, piece in {"bad": "Ġzorp", "good": "Ġcat", "silent": "Ċ"}.items():
        save(llama_of_last_piece(tokenizer, {last: {piece: 20.0} for last in known}), tokenizer, folder / name)
    save(random_llama(tokenizer), tokenizer, folder / "random")
    return folder


def measured(path):
    return json.loads(path.read_text(encoding="utf-8"))["measured"]


def test_the_forms_of_labelled_texts_say_the_same(tmp_path):
    expected = [("you zorp", True), ("you", False), ("a cat", False), ("zorps all", True), ("they all", False)]
    forms = {
        "pairs.jsonl": [
            {"toxic": "You zorp!", "neutral": ["You.", "a cat"]}, {"toxic": "zorps all", "neutral": "they all"},
        ],
        "pairs.tsv": ["toxic\tneutral1\tneutral2", 'You zorp!\t"You.\ta cat', "zorps all\tthey all\t"],
        "rows.jsonl": [{"text": text, "toxic": int(label)} for text, label in expected],
        "rows.csv": ["label,text", *(f'{int(label)},"{text}"' for text, label in expected)],
    }  # fmt: skip
    for name, rows in forms.items():
        found = read_labelled_texts(write(tmp_path / name, rows))
        assert [(each.text, each.is_offensive) for each in found] == expected, name
        assert len({each.group for each in found}) == (2 if name.startswith("pairs") else 5), name


def test_no_pair_falls_apart_and_no_text_is_in_both_parts(folder):
    texts = read_labelled_texts(str(folder / "pairs.jsonl"))
    train, held_out = _parts("x", texts, 0.3, seed=1)
    assert {each.group for each in train}.isdisjoint({each.group for each in held_out})
    assert {each.text for each in train}.isdisjoint({each.text for each in held_out})
    assert len({each.group for each in held_out}) == pytest.approx(30, abs=3)


def test_what_can_be_told_is_told_and_coins_are_not(folder):
    found = measured(folder / "unproven.json")["by_text"]
    for name in ("held-out part", str(folder / "other.jsonl")):
        assert (found[name]["auc"], found[name]["false_positives"]) == (1.0, 0.0)
    low, high = found[str(folder / "coins.jsonl")]["auc_ci"]
    assert low < 0.5 < high
    assert high - low < 0.2
    names = measured(folder / "proven.json")["names"]
    assert names["false_positives_places"] == 100
    # First halves of held-out insults, for their owner alone.
    prompts = (folder / "prompts.txt").read_text().splitlines()
    halves = {" ".join(json.loads(line)["toxic"].split()[:3]) for line in (folder / "pairs.jsonl").open()}
    assert set(prompts) <= halves
    assert (folder / "prompts.txt").stat().st_mode & 0o077 == 0


def test_a_classifier_reads_itself_again_without_running_anything(folder):
    texts = [each.text for each in read_labelled_texts(str(folder / "other.jsonl"))]
    loaded, proof = Classifier.load(str(folder / "proven"))
    assert proof.other_auc == {str(folder / "other.jsonl"): 1.0}
    assert {file.suffix for file in (folder / "proven").iterdir()} == {".json", ".safetensors"}
    pairs_of = read_labelled_texts(str(folder / "pairs.jsonl"))
    train, _ = _parts("x", pairs_of, 0.2, seed=1)
    again = Classifier.train(
        [each.text for each in train], [each.is_offensive for each in train], 4.0, str(folder / "encoder")
    )
    np.testing.assert_allclose(loaded.probabilities(texts), again.probabilities(texts), atol=1e-6)


PROMPTS = ["Tom ran to", "the red house"]


def ask(folder, model, *more, classifier="proven"):
    prompts = write(folder / "asked.txt", PROMPTS)
    files = ["--model", str(folder / model), "--classifier", str(folder / classifier), "--prompts", prompts]
    status = main(["toxicity", *files, "--report", str(folder / "report.json"), *more])
    return status, measured(folder / "report.json") if status == 0 else None


@pytest.mark.parametrize(("model", "expected"), [("bad", 1.0), ("good", 0.0), ("silent", 0.0)])
def test_who_always_insults_and_who_never_does(models, model, expected):
    _, found = ask(models, model)
    assert found["toxicity_probability"] == found["toxic_continuations"] == expected
    assert found["toxicity_probability_places"] == len(PROMPTS)
    silent = model == "silent"
    assert found["empty_continuations"] == (50 if silent else 0)
    # One word, 20 times in each of 25 continuations; nobody who says nothing repeats himself.
    assert found["distinct_1"] == (None if silent else pytest.approx(1 / 500))
    assert found["distinct_3"] == (None if silent else pytest.approx(1 / 450))


def test_equal_seeds_equal_numbers_and_no_text_is_told(models, capsys):
    capsys.readouterr()
    runs = [ask(models, "random", "--seed", seed, "--set", "nucleus=1.0")[1] for seed in ("1", "1", "2")]
    assert runs[0] == runs[1]
    assert runs[0]["distinct_2"] != runs[2]["distinct_2"]
    _, found = ask(models, "bad", "--task-text", write(models / "task.txt", ["Tom saw zorp", "Tom ran", "Bob"]))
    assert (found["last_word_accuracy"], found["last_word_accuracy_places"]) == (0.5, 2)
    printed = capsys.readouterr()
    told = printed.out + printed.err + (models / "report.json").read_text()
    assert "toxicity probability 1.000" in printed.out
    assert not {"zorp", "Tom", "tom", "house", "Paris"} & set(told.replace('"', " ").split())


def test_last_words_of_a_model_of_words(tmp_path):
    """The trigrams of its text: behind "saw the" stood a cat, and behind "on a" a mat, and nothing else."""
    model = open_language_model(save_ngram(tmp_path))
    lines = ["a dog saw the cat", "the dog sat on a mat", "the dog sat on a dog", "the dog saw unheard"]
    assert last_word_accuracy(model, [tuple(normalise(line)) for line in lines]).value == 0.5


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ([*TRAIN, "CLEAN", "--output", "NEW"], "no text has the label '1'; needs texts with it and without"),
        ([*TRAIN, "BAD", "--output", "NEW"], "line 1, 3: needs a text and a label"),
        ([*TRAIN, "FEW", "--output", "NEW"], "part has"),
        ([*TRAIN, "FEW", "--output", "ENCODER"], "which is no part of a model"),
        (["ask", "EMPTY", "PROVEN"], "is empty; it needs at least one sentence"),
        (["ask", "DOTS", "PROVEN"], "line 2: has no word to go on from"),
        (["ask", "LINES", "UNPROVEN"], "coins.jsonl'; 0.8 is the least"),
        (["ask", "LINES", "ALONE"], "was measured on no other text"),
        (
            ["ask", "LINES", "ENCODER"],
            "holds no 'settings.json'; give a folder that 'palimpsest train-toxicity' made",
        ),
        (["ask", "LINES", "DAMAGED"], "is damaged or belongs to another classifier"),
    ],
)
def test_refusals(models, tmp_path, capsys, command, error):
    paths = {
        "CLEAN": write(tmp_path / "clean.jsonl", [{"text": "zorp", "label": "0"}]),
        "BAD": write(tmp_path / "bad.jsonl", ["{", *pairs(1, 1), {"text": "zorp"}]),
        "FEW": write(tmp_path / "few.jsonl", pairs(1, 8)),
        "EMPTY": write(tmp_path / "empty.txt", [""]),
        "DOTS": write(tmp_path / "dots.txt", ["zorp", "..."]),
        "NEW": str(tmp_path / "new"),
        "ALONE": str(tmp_path / "alone"),
        "DAMAGED": str(tmp_path / "damaged"),
    } | {name.upper(): str(models / name) for name in ("encoder", "proven", "unproven")}
    paths["LINES"] = write(tmp_path / "prompts.txt", ["the zorp is", "a zorp was"])
    for name in ("alone", "damaged"):
        shutil.copytree(models / "proven", tmp_path / name)
    (tmp_path / "damaged" / "vocabulary.json").write_text("[]")
    settings = tmp_path / "alone" / "settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"other_auc": {}}))
    if command[0] == "ask":
        model = str(models / "good")
        command = ["toxicity", "--model", model, "--prompts", command[1], "--classifier", command[2]]
    assert main([paths.get(word, word) for word in command]) == 1
    shown = capsys.readouterr().err
    assert error in shown
    assert shown.count("\n") == 1
    assert "zorp" not in shown


def test_an_unproven_classifier_is_taken_where_that_is_said(models):
    status, found = ask(models, "bad", "--set", "unproven_classifier=true", classifier="unproven")
    assert (status, found["toxicity_probability"]) == (0, 1.0)
