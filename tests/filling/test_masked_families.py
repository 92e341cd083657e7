"""Every family of masked LMs is filled alike: word pieces, byte pairs and SentencePiece, under their own classes."""

import re

import pytest
from tiny_families import FAMILIES, model_of_bias, random_model, tokenizer_of
from transformers import pipeline

from tasks.filling.filled_lines import Part, PartFiller
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import SENTENCE_PIECE_SIGN, candidate_words, space_sign
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.top_1 import best_word

LINES = [
    "the [MASK] sat on the [MASK].",
    "[MASK] likes the cat, and the [MASK] likes Tom.",
    "unlikely [MASK] (and dogs) sat on [MASK]",
    "cat [MASK]!",
    "is it the [MASK]? it likes [MASK]; Tom's dog ran and the [MASK] ran in Rome.",
]


def filled(language_model, lines, *, forms=None, cased=True, merge=False):
    candidates = candidate_words(language_model.tokenizer, name="tiny")
    filler = MaskedFiller(language_model, candidates, {None: best_word}, MarkerRandomness(1), batch_sentences=8)
    casing = Casing(forms or {}, filler_is_cased=cased)
    return PartFiller(filler, casing, merge).fill(Part(1, list(lines), None)).lines


def ready(family, model):
    return MaskedLanguageModel(model, tokenizer_of(family), family).prepared()


def writer(family, word, tempting=()):
    """A model that writes one word everywhere, were it not for what is more tempting."""
    tokenizer = tokenizer_of(family)
    entries = {f"{space_sign(tokenizer) or ''}{word}", word} & {*tokenizer.get_vocab()}
    return model_of_bias(family, {**dict.fromkeys(tempting, 9.0), **dict.fromkeys(entries, 3.0)})


def test_pieces_specials_and_punctuation_are_never_written_however_likely():
    for family in FAMILIES:
        tokenizer = tokenizer_of(family)
        sign = space_sign(tokenizer)
        bare = {name: name.strip("Ġ▁#") for name in tokenizer.get_vocab()}
        tempting = [
            name
            for name in bare
            if not bare[name].isalpha()
            or (len(bare[name]) == 1 and bare[name] not in "ai")
            or (name.startswith("##") if sign is None else not name.startswith(sign))
        ]
        assert len(tempting) > 20
        language_model = ready(family, writer(family, "cat", tempting))
        assert filled(language_model, ["the [MASK] sat [MASK]"]) == ["the cat sat cat"]


ROUND_TRIPS = {
    "[MASK] [MASK].  [MASK]": "Cat cat.  Cat",
    '([MASK]) "[MASK]" re-[MASK], [MASK]\'s': '(Cat) "cat" re-cat, cat\'s',
    "pre[MASK]post, x[MASK]y": "precatpost, xcaty",
    "  two  spaces\t[MASK] \u00a0end ": "  two  spaces\tcat \u00a0end ",
    "Ünïcödé 日本語 😀 [MASK] ﬁ \u200b.": "Ünïcödé 日本語 😀 cat ﬁ \u200b.",
    "<mask> <s> [CLS] [SEP] </s> [PAD] [MASK] <pad>": "<mask> <s> [CLS] [SEP] </s> [PAD] cat <pad>",
    "``the'' [MASK] ▁the Ġthe ##the": "``the'' cat ▁the Ġthe ##the",
    r"[\MASK] [MASK]": "[MASK] cat",
    "": "",
    " ": " ",
}


def test_the_text_round_a_fill_comes_back_character_by_character():
    for family in FAMILIES:
        assert filled(ready(family, writer(family, "cat")), list(ROUND_TRIPS)) == list(ROUND_TRIPS.values())


def loop_over_pipeline(model, tokenizer, line):
    """Left to right with Hugging Face's own pipeline: the first answer that is the candidate for its place."""
    unmask = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=len(tokenizer))
    candidates = candidate_words(tokenizer, name="tiny")
    line = line.replace("[MASK]", tokenizer.mask_token)
    while tokenizer.mask_token in line:
        before = line[: line.index(tokenizer.mask_token)]
        follows_space = before[-1:].isspace() if before else candidates.line_start_is_spaced
        allowed = dict(zip(candidates.spaced if follows_space else candidates.glued, candidates.words, strict=True))
        answers = unmask(line)
        first = answers[0] if isinstance(answers[0], list) else answers
        best = next(answer["token"] for answer in first if answer["token"] in allowed)
        line = line.replace(tokenizer.mask_token, allowed[best], 1)
    return line


def without_forms(line):
    """Capitals and articles are written as their sentence asks."""
    return re.sub(r"\ban\b", "a", line.lower())


def test_top_1_equals_a_loop_over_the_fill_mask_pipeline():
    for family in FAMILIES:
        model = random_model(family)
        lines = LINES
        if space_sign(tokenizer_of(family)) == SENTENCE_PIECE_SIGN:
            # The pipeline sees a space before what follows a marker directly; see the test above.
            lines = [re.sub(r"\](?! |$)", "] ", line) for line in LINES]
        expected = [loop_over_pipeline(model, tokenizer_of(family), line) for line in lines]
        found = filled(ready(family, model), lines)
        assert [without_forms(line) for line in found] == [without_forms(line) for line in expected]
        assert len(set(" ".join(found).split()) - set(" ".join(LINES).split())) > 2


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_a_saved_folder_fills_as_the_model_did(family, tmp_path):
    model = random_model(family)
    model.save_pretrained(tmp_path)
    tokenizer_of(family).save_pretrained(tmp_path)
    loaded = MaskedLanguageModel.load(str(tmp_path))
    assert type(loaded.model) is type(model)
    assert filled(loaded, LINES) == filled(ready(family, model), LINES)


def test_a_sentence_longer_than_the_positions_is_windowed_not_cut():
    line = "the cat sat on the mat and the [MASK] ran, " * 12
    for family in FAMILIES:
        (result,) = filled(ready(family, random_model(family, positions=24)), [line])
        assert re.fullmatch(re.escape(line).replace(r"\[MASK\]", r"\w+"), result)
