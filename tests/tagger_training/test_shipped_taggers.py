import json

import pytest

from benchmarks.build_shipped import HALVED, HELD_OUT, LEARNED, gold_lines, write_held_out
from tasks.labelled_text.labelled_lines import read_labelled
from tasks.masking.settings import CrfTagger, WordClassifierTagger
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.entity_tagger import load_tagger


@pytest.mark.parametrize("settings", [CrfTagger(kind="crf"), WordClassifierTagger(kind="word_classifier")])
def test_a_shipped_model_finds_what_is_private_and_leaves_the_rest(settings):
    shipped = load_tagger(settings, threads=1)
    for text, private in (
        ("Hi Tom, this is Angela Merkel from Siemens AG in Munich.", ["Tom", "Angela Merkel", "Siemens AG", "Munich"]),
        ("please call jessica about it, she is in chicago", ["jessica", "chicago"]),
        ("my card is 4111 1111 1111 1111 ok", ["4111 1111 1111 1111"]),
        ("write to angela.m@example.org today", ["angela.m@example.org"]),
        ("I don't know what we should do about the weather, it is too cold to go out.", []),
        ("Thanks for your help with the report! Please send me the file again.", []),
    ):
        ((_, spans),) = shipped.tag([text])
        found = {word for span in spans for word in text[span.start : span.end].split()}
        wanted = {word for entity in private for word in entity.split()}
        assert wanted <= found if wanted else not found
    assert None not in classes_in_force(shipped.entity_types, None, shipped.name).values()


def test_held_out_lines_and_learned_lines_are_all_lines_and_never_the_same(tmp_path):
    gold = tmp_path / "gold"
    gold.mkdir()
    for name in (*LEARNED, *HALVED, *HELD_OUT):
        lines = [json.dumps({"text": f"{name} {number // 2}", "spans": []}) for number in range(100)]
        (gold / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    write_held_out(gold, tmp_path / "held_out")
    held_out = [line.text for file in (tmp_path / "held_out").iterdir() for line in read_labelled(file)]
    learned = [line.text for _, line in gold_lines(gold, hold_out=True)]
    everything = [line.text for _, line in gold_lines(gold, hold_out=False)]
    assert sorted(held_out + learned) == sorted(everything)
    assert len(everything) == 400
    # Every text stands twice: equal lines must not part.
    assert not set(held_out) & set(learned)
    for name in HALVED:
        assert 20 < sum(text.startswith(name) for text in held_out) < 80
    assert sum(text.startswith(HELD_OUT) for text in held_out) == 100
    assert not any(text.startswith(LEARNED) for text in held_out)
