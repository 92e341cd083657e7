"""Every family of masked LMs is filled alike: word pieces, byte pairs and SentencePiece, under their own classes."""

import copy
import json
import re

import numpy as np
from tiny_families import FAMILIES, ROBERTA_SPECIAL, byte_pairs, model_of_bias, random_model, tokenizer_of
from tokenizers import Tokenizer
from transformers import RobertaTokenizer, pipeline

from tasks.filling.filled_lines import Part, fill_part
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import SENTENCE_PIECE_SIGN, candidate_words, space_sign
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.masked_training import WordMasker
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.top_1 import Top1

ROUNDING = 1e-4
"""Sums of the same float32 products in another order."""
LINES = [
    "the [MASK] sat on the [MASK].",
    "[MASK] likes the cat, and the [MASK] likes Tom.",
    "unlikely [MASK] (and dogs) sat on [MASK]",
    "cat [MASK]!",
    "in Paris, Rome or [MASK] it ran, and [MASK] (the [MASK] cat) sat",
    "is it the [MASK]? it likes [MASK]; Tom's dog ran and the [MASK] ran in Rome.",
]


def filled(language_model, lines, *, forms=None, cased=True, merge=False):
    candidates = candidate_words(language_model.tokenizer, name="tiny")
    choose, off_list = Top1(kind="top_1").choose, {None: np.ones(len(candidates), dtype=bool)}
    filler = MaskedFiller(language_model, candidates, choose, off_list, MarkerRandomness(1), batch_sentences=8)
    casing = Casing(forms or {}, filler_is_cased=cased)
    return fill_part(Part(1, list(lines), None), filler, casing, merge_markers=merge).lines


def ready(family, model):
    return MaskedLanguageModel(model, tokenizer_of(family), family).prepared()


def writer(family, word, tempting=()):
    """A model that writes one word everywhere, were it not for what is more tempting."""
    tokenizer = tokenizer_of(family)
    entries = {f"{space_sign(tokenizer) or ''}{word}", word} & {*tokenizer.get_vocab()}
    return model_of_bias(family, {**dict.fromkeys(tempting, 9.0), **dict.fromkeys(entries, 3.0)})


def test_candidates_are_whole_words_with_their_spaces_taken_off():
    for family in FAMILIES:
        tokenizer = tokenizer_of(family)
        candidates = candidate_words(tokenizer, name=family)
        assert "cat" in candidates.words
        assert ("Tom" if candidates.cased else "tom") in candidates.words
        assert all(word.isalnum() for word in candidates.words)
        assert not {*candidates.spaced, *candidates.glued} & {*tokenizer.all_special_ids}
        assert candidates.cased == (family in ("roberta", "modernbert", "xlm-roberta", "deberta"))
        for word, spaced, glued in zip(candidates.words, candidates.spaced, candidates.glued, strict=True):
            assert tokenizer.decode([int(spaced)]).strip() == word
            assert tokenizer.decode([int(glued)]).strip() == word
            assert not tokenizer.convert_ids_to_tokens(int(spaced)).startswith("##")
        # In a sentence, each stands as the one piece that is scored.
        for word, spaced in zip(candidates.words, candidates.spaced, strict=True):
            pieces = tokenizer(f"the {word}", add_special_tokens=False)["input_ids"]
            assert pieces[-1] == spaced or len(tokenizer.tokenize(word)) > 1


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


def test_no_part_of_a_word_is_masked_in_training():
    for family in FAMILIES:
        tokenizer = tokenizer_of(family)
        masker = WordMasker(MaskedLanguageModel(random_model(family), tokenizer, family))
        whole = ["cat likes the red dog", "(cat) dog, it!"]
        parts = ["the redcat and underdog like it", "catmat, dogcat and itcat", "bobcat écat cat́cat dog1"]
        found = set()
        for line in [*whole, *parts]:
            encoded = tokenizer(line, return_offsets_mapping=True)
            maskable = masker.maskable(np.array([encoded["input_ids"]]))[0]
            for (start, end), is_maskable in zip(encoded["offset_mapping"], maskable, strict=True):
                if is_maskable:
                    start += len(line[start:end]) - len(line[start:end].lstrip())
                    assert not re.search(r"[\w\u0301]$", line[:start]), line
                    assert not re.match(r"[\w\u0301]", line[end:]), line
                    found.add((line, line[start:end]))
        # At the start of a line, within a line and behind a bracket.
        assert {(whole[0], "cat"), (whole[0], "dog"), (whole[1], "cat"), (whole[1], "dog")} <= found


def test_a_mask_token_that_is_looked_for_in_normalised_text():
    """Such a tokenizer finds it in other spellings of the user's too."""
    for family in ["bert", "albert", "xlm-roberta"]:
        tokenizer = copy.deepcopy(tokenizer_of(family))
        described = json.loads(tokenizer.backend_tokenizer.to_str())
        for token in described["added_tokens"]:
            token["normalized"] = True
        if family == "xlm-roberta" or not described["normalizer"]:
            described["normalizer"] = {"type": "Lowercase"}
        tokenizer._tokenizer = Tokenizer.from_str(json.dumps(described))
        model = MaskedLanguageModel(writer(family, "cat"), tokenizer, family).prepared()
        other = tokenizer.mask_token.swapcase()
        assert tokenizer(other, add_special_tokens=False)["input_ids"] == [tokenizer.mask_token_id]
        line = f"the {other} sat on {{}}, it {other}{{}} likes ({other} {{}})"
        assert filled(model, [line.format(*["[MASK]"] * 3)]) == [line.format(*["cat"] * 3)]
        # What the model sees of a sentence without such a string is what it saw before.
        texts = ["the ", " sat on (", ") mats, ", "s!"]
        whole = tokenizer(tokenizer.mask_token.join(texts), add_special_tokens=False)["input_ids"]
        assert model._text_by_text(texts) == whole


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


def test_the_model_sees_what_the_filled_sentence_would_have_been():
    for family in FAMILIES:
        language_model = MaskedLanguageModel(random_model(family), tokenizer_of(family), family)
        candidates = candidate_words(language_model.tokenizer, name=family)
        index = candidates.words.index("cat")
        for texts in (
            ("the ", " sat on the mat"),
            ("the ", ", and ("),
            ("the (", ") ran"),
            ("it ", " likes ", "!"),
            ("the ", "'s ", ""),
            ("the ", " ", ", ", "."),
        ):
            (pieces,) = language_model.encode([texts])
            for slot in range(len(texts) - 1):
                entry = candidates.entries_after(texts, slot)[index]
                pieces[pieces.index(language_model.mask_entry)] = int(entry)
            assert pieces == language_model.tokenizer("cat".join(texts), add_special_tokens=False)["input_ids"]


def test_a_mask_token_that_leaves_the_space_before_it_makes_no_piece_of_it():
    strict = RobertaTokenizer(*byte_pairs(ROBERTA_SPECIAL))
    assert strict.tokenize("the <mask> sat") == ["the", "Ġ", "<mask>", "Ġsat"]
    texts = [("the ", " sat (", ")"), ("", " ran")]
    encoded = [
        MaskedLanguageModel(random_model("roberta"), t, "tiny").encode(texts) for t in (strict, tokenizer_of("roberta"))
    ]
    assert encoded[0] == encoded[1]


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
        assert (
            len(
                {
                    word
                    for line, masked in zip(found, LINES, strict=True)
                    for word in {*line.split()} - {*masked.split()}
                }
            )
            > 2
        )


def test_a_sentence_longer_than_the_positions_is_windowed_not_cut():
    for family in FAMILIES:
        language_model = ready(family, random_model(family, positions=24))
        # RoBERTa's kin count positions from the one behind the padding entry's.
        offset = 2 if family in ("mpnet", "roberta", "xlm-roberta") else 0
        assert language_model.frame.room == 24 - offset - 2
        line = "the cat sat on the mat and the [MASK] ran, " * 12
        (result,) = filled(language_model, [line])
        expected = line.split("[MASK]")
        assert result.count(", ") == 12
        for text in expected:
            assert result.startswith(text)
            result = result[len(text) :]
            word, _, result = result.partition(" ran") if result else ("", "", "")
            result = f" ran{result}" if word else ""
            assert word == "" or word.isalnum()
