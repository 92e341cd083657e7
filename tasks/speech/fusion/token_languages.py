"""Whether the units of a recogniser tell the language of the words that they spell."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tasks.speech.audio.utterance_lines import placed_languages
from tasks.speech.word_errors.word_errors import EQUAL, align_words


def token_language_numbers(
    references: Mapping[str, str],
    given: Mapping[str, Sequence[str | None]],
    found: Mapping[str, tuple[str, Sequence[str]]],
    languages: Collection[str],
) -> dict[str, Any]:
    """Of the recognised words that are said to be of one of the ``languages``: how many there are, and the share with
    units of it.

    By utterance id, ``given``: what is said of the white-space words of the references; ``found``: the text and the
    language of each of its words.
    """
    known = [name for name in given if name in found]
    said = [placed_languages(references[name], given[name]) for name in known]
    heard = [found[name] for name in known]
    alignments = align_words([words for words, _ in said], [text.split() for text, _ in heard])
    pairs = [
        (expected[at], told[there])
        for stretches, (_, expected), (_, told) in zip(alignments, said, heard, strict=True)
        for stretch in stretches
        if stretch.kind == EQUAL
        for at, there in zip(stretch.reference, stretch.hypothesis, strict=True)
        if expected[at] in languages
    ]
    right = sum(language == told for language, told in pairs)
    return {"token_languages": len(pairs), "token_languages_right": right / len(pairs) if pairs else None}
