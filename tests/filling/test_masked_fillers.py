"""Every family of masked LMs is filled alike, from left to right: word pieces, byte pairs and SentencePiece."""

import re

import numpy as np
import pytest
from tiny_families import FAMILIES, model_of_bias, random_model, tokenizer_of
from transformers import pipeline

from tasks.filling.filled_lines import Part, fill_part
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import SENTENCE_PIECE_SIGN, candidate_words, space_sign
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.top_1 import Top1

of_each_family = pytest.mark.parametrize("family", FAMILIES)


def filled(family, model, lines):
    language_model = MaskedLanguageModel(model, tokenizer_of(family), family).prepared()
    candidates = candidate_words(language_model.tokenizer, name=family)
    choose, off_list = Top1(kind="top_1").choose, {None: np.ones(len(candidates), dtype=bool)}
    filler = MaskedFiller(language_model, candidates, choose, off_list, MarkerRandomness(1), batch_sentences=8)
    casing = Casing({}, filler_is_cased=True)
    return fill_part(Part(1, list(lines), None), filler, casing, merge_markers=False).lines


def writer(family, tempting=()):
    """A model that writes cat everywhere, were it not for what is more tempting."""
    tokenizer = tokenizer_of(family)
    entries = {f"{space_sign(tokenizer) or ''}cat", "cat"} & {*tokenizer.get_vocab()}
    return model_of_bias(family, {**dict.fromkeys(tempting, 9.0), **dict.fromkeys(entries, 3.0)})


@of_each_family
def test_pieces_specials_and_punctuation_are_never_written_however_likely(family):
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
    assert filled(family, writer(family, tempting), ["the [MASK] sat [MASK]"]) == ["the cat sat cat"]


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
}


@of_each_family
def test_the_text_round_a_fill_comes_back_character_by_character(family):
    assert filled(family, writer(family), ROUND_TRIPS) == list(ROUND_TRIPS.values())


LINES = [
    "the [MASK] sat on the [MASK].",
    "[MASK] likes the cat, and the [MASK] likes Tom.",
    "unlikely [MASK] (and dogs) sat on [MASK]",
    "in Paris, Rome or [MASK] it ran, and [MASK] (the [MASK] cat) sat",
    "is it the [MASK]? it likes [MASK]; Tom's dog ran and the [MASK] ran in Rome.",
]


def loop_over_pipeline(model, tokenizer, lines):
    """Left to right with Hugging Face's own pipeline: the first answer that is the candidate for its place."""
    unmask = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=len(tokenizer))
    candidates = candidate_words(tokenizer, name="tiny")
    for line in lines:
        line = line.replace("[MASK]", tokenizer.mask_token)
        while tokenizer.mask_token in line:
            before = line[: line.index(tokenizer.mask_token)]
            follows_space = before[-1:].isspace() if before else candidates.line_start_is_spaced
            allowed = dict(zip(candidates.spaced if follows_space else candidates.glued, candidates.words, strict=True))
            answers = unmask(line)
            first = answers[0] if isinstance(answers[0], list) else answers
            best = next(answer["token"] for answer in first if answer["token"] in allowed)
            line = line.replace(tokenizer.mask_token, allowed[best], 1)
        yield line


def without_forms(lines):
    """Capitals and articles are written as their sentence asks."""
    return [re.sub(r"\ban\b", "a", line.lower()) for line in lines]


@of_each_family
def test_top_1_equals_a_loop_over_the_fill_mask_pipeline(family):
    model, tokenizer, lines = random_model(family), tokenizer_of(family), LINES
    if space_sign(tokenizer) == SENTENCE_PIECE_SIGN:
        # The pipeline sees a space before what follows a marker directly; see the first test.
        lines = [re.sub(r"\](?! |$)", "] ", line) for line in LINES]
    found = filled(family, model, lines)
    assert without_forms(found) == without_forms(loop_over_pipeline(model, tokenizer, lines))
    assert len({*" ".join(found).split()} - {*" ".join(LINES).split()}) > 2


@of_each_family
def test_a_sentence_longer_than_the_positions_is_windowed_not_cut(family):
    model = random_model(family, positions=24)
    # RoBERTa's kin count positions from the one behind the padding entry's.
    offset = 2 if family in ("roberta", "xlm-roberta") else 0
    assert MaskedLanguageModel(model, tokenizer_of(family), family).room == 24 - offset - 2
    line = "the cat sat on the mat and the [MASK] ran, " * 12
    (result,) = filled(family, model, [line])
    assert re.fullmatch(re.escape(line).replace(re.escape("[MASK]"), r"[^\W_]+"), result)
