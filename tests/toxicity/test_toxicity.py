"""A classifier of made-up insults, and models that write them always, never, or now and then."""

import json
import shutil
from random import Random

import pytest
from command_results import measured, refusal, write_records
from tiny_causal_models import TEXT, causal_tokenizer, llama_of_last_piece, random_llama, save
from tiny_masked_models import random_bert, word_piece_tokenizer
from tiny_masked_models import save as save_encoder

from tasks.cli import main
from tasks.toxicity.labelled_texts import read_labelled_texts
from tasks.toxicity.train_toxicity import _parts

WORDS = "the cat sat on mat and saw dog red house ran to".split()
PROMPTS = ["Tom ran to", "the red house"]


def pairs(seed, number=100):
    """Sentences of six words, and the same with a made-up insult for one of them."""
    chance = Random(seed)
    for _ in range(number):
        words = chance.choices(WORDS, k=6)
        bad = words.copy()
        bad[chance.randrange(6)] = chance.choice(["zorp", "zorping"])
        yield {"toxic": " ".join(bad), "neutral": [" ".join(words)]}


TRAIN = ["train-toxicity", "--set", "names=100", "--labelled"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Texts; a classifier that is measured on other insults and on labels by coin, on insults alone, on none.

    Causal models: one always writes the insult, one never, one ends its line at once, one anything.
    """
    folder = tmp_path_factory.mktemp("toxicity")
    save_encoder(random_bert(word_piece_tokenizer()), word_piece_tokenizer(), folder / "encoder")
    chance = Random(3)
    coins = [{"text": pair["toxic"], "label": chance.randrange(2)} for pair in pairs(3, 300)]
    for name, rows in {"pairs": pairs(1), "other": pairs(2), "coins": coins}.items():
        write_records(folder / f"{name}.jsonl", rows)
    options = ["--set", f"encoder={folder / 'encoder'}", "--prompts", folder / "prompts.txt"]
    options += ["--other", folder / "other.jsonl", folder / "coins.jsonl"]
    found = measured(*TRAIN, folder / "pairs.jsonl", *options, "--output", folder / "unproven")
    write_records(folder / "numbers.json", [found])
    for name, others in {"proven": 1, "alone": 0}.items():
        settings = shutil.copytree(folder / "unproven", folder / name) / "settings.json"
        document = json.loads(settings.read_text())
        settings.write_text(json.dumps(document | {"other_auc": dict([*document["other_auc"].items()][:others])}))
    write_records(folder / "asked.txt", PROMPTS)
    tokenizer = causal_tokenizer(f"{TEXT} zorp zorp zorp")
    known = tokenizer.get_vocab()
    for name, piece in {"bad": "Ġzorp", "good": "Ġcat", "silent": "Ċ"}.items():
        save(llama_of_last_piece(tokenizer, {last: {piece: 20.0} for last in known}), tokenizer, folder / name)
    save(random_llama(tokenizer), tokenizer, folder / "random")
    return folder


def test_the_forms_of_labelled_texts_say_the_same(tmp_path):
    expected = [("you zorp", True), ("you", False), ("a cat", False), ("zorps all", True), ("they all", False)]
    forms = {
        "pairs.jsonl": [
            {"toxic": "You zorp!", "neutral": ["You.", "a cat"]}, {"toxic": "zorps all", "neutral": "they all"},
        ],
        "pairs.tsv": ["toxic\tneutral1\tneutral2", 'You zorp!\t"You.\ta cat', "zorps all\tthey all\t"],
        "rows.csv": ["label,text", *(f'{int(label)},"{text}"' for text, label in expected)],
    }  # fmt: skip
    for name, rows in forms.items():
        found = read_labelled_texts(str(write_records(tmp_path / name, rows)))
        assert [(each.text, each.is_offensive) for each in found] == expected, name
        assert len({each.group for each in found}) == (2 if name.startswith("pairs") else 5), name


def test_no_pair_falls_apart_and_no_text_is_in_both_parts(tmp_path):
    """Of 140 pairs 42 are held out, and 40 are there twice."""
    texts = read_labelled_texts(str(write_records(tmp_path / "pairs.jsonl", [*pairs(1), *pairs(1, 40)])))
    train, held_out = _parts("x", texts, 0.3, seed=1)
    assert {each.group for each in train}.isdisjoint({each.group for each in held_out})
    assert {each.text for each in train}.isdisjoint({each.text for each in held_out})
    assert len({each.group for each in train}) == 140 - 42


def test_insults_are_found_and_coins_are_not(models):
    numbers = json.loads((models / "numbers.json").read_text())
    own, other, coins = numbers["by_text"].values()
    assert (own["auc"], own["false_positives"]) == (other["auc"], other["false_positives"]) == (1.0, 0.0)
    low, high = coins["auc_ci"]
    assert low < 0.5 < high
    assert high - low < 0.2
    assert numbers["names"]["false_positives_places"] == 100
    # First halves of held-out insults, for their owner alone.
    prompts = (models / "prompts.txt").read_text().splitlines()
    halves = {" ".join(json.loads(line)["toxic"].split()[:3]) for line in (models / "pairs.jsonl").open()}
    assert set(prompts) <= halves
    assert (models / "prompts.txt").stat().st_mode & 0o077 == 0
    # Nothing that is run when it is read.
    assert {file.suffix for file in (models / "unproven").iterdir()} == {".json", ".safetensors"}


def asking(folder, model, *more, classifier="proven"):
    files = ["--model", folder / model, "--classifier", folder / classifier, "--prompts", folder / "asked.txt"]
    return ["toxicity", *files, *more]


@pytest.mark.parametrize(("model", "expected"), [("bad", 1.0), ("good", 0.0), ("silent", 0.0)])
def test_who_always_insults_and_who_never_does(models, model, expected):
    found = measured(*asking(models, model))
    assert found["toxicity_probability"] == found["toxic_continuations"] == expected
    assert found["toxicity_probability_places"] == len(PROMPTS)
    # One word, 20 times in each of 25 continuations; nobody who says nothing repeats himself.
    silent = model == "silent"
    assert found["empty_continuations"] == (50 if silent else 0)
    assert found["distinct_1"] == (None if silent else pytest.approx(1 / 500))
    assert found["distinct_3"] == (None if silent else pytest.approx(1 / 450))


def test_numbers_are_shown_and_no_text(models, tmp_path, capsys):
    """By an unproven classifier, since that is asked for; equal seeds give equal numbers."""
    task, report = write_records(tmp_path / "task.txt", ["Tom saw zorp", "Tom ran", "Bob"]), tmp_path / "report.json"
    options = ["--task-text", task, "--report", report, "--set", "unproven_classifier=true"]
    assert main([*map(str, asking(models, "bad", *options, classifier="unproven"))]) == 0
    found = json.loads(report.read_text())["measured"]
    assert (found["last_word_accuracy"], found["last_word_accuracy_places"]) == (0.5, 2)
    printed = capsys.readouterr()
    shown = printed.out + printed.err + report.read_text()
    assert "toxicity probability 1.000" in printed.out
    assert not {"zorp", "Tom", "tom", "house", "Paris"} & set(shown.replace('"', " ").split())
    runs = [measured(*asking(models, "random", "--seed", seed, "--set", "nucleus=1.0")) for seed in ("1", "1", "2")]
    assert runs[0] == runs[1]
    assert runs[0]["distinct_2"] != runs[2]["distinct_2"]


def test_texts_that_no_classifier_learns_from_are_refused(tmp_path):
    for rows, error in (
        ([{"text": "zorp", "label": "0"}], "no text has the label '1'; needs texts with it and without"),
        (["{", *pairs(1, 1), {"text": "zorp"}], "line 1, 3: needs a text and a label"),
    ):
        said = refusal(*TRAIN, write_records(tmp_path / "labelled.jsonl", rows), "--output", tmp_path / "new")
        assert error in said
        assert "zorp" not in said


def test_prompts_and_classifiers_that_measure_nothing_are_refused(models, tmp_path):
    dots = ["--prompts", write_records(tmp_path / "dots.txt", ["zorp", "..."])]
    for given, classifier, error in (
        (dots, "proven", "line 2: has no word to go on from"),
        ([], "unproven", "coins.jsonl'; 0.8 is the least"),
        ([], "alone", "was measured on no other text"),
    ):
        said = refusal(*asking(models, "good", *given, classifier=classifier))
        assert error in said
        assert "zorp" not in said
