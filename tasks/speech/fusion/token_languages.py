"""Whether the units of a recogniser tell the language of the words that they spell."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.language_model.normalisation import normalise
from tasks.speech.audio.manifest import Utterance, said_languages
from tasks.speech.word_errors.word_errors import EQUAL, align_words


def token_language_numbers(
    utterances: Sequence[Utterance], languages: Sequence[str], found: Mapping[str, tuple[str, Sequence[str]]]
) -> dict[str, Any]:
    """Of the recognised words whose language the manifest says: how many there are, and the share with units of it.

    ``languages``: those of the units; ``found``: by utterance id the text and the language of each of its words.
    """
    known = [each for each in utterances if each.languages is not None and each.utterance_id in found]
    said, of_said, heard, of_heard = [], [], [], []
    for utterance, of_tokens in zip(known, said_languages(known, languages), strict=True):
        tokens = zip(utterance.text.split(), of_tokens or (), strict=True)
        words = [(word, language) for token, language in tokens for word in normalise(token)]
        said.append([word for word, _ in words])
        of_said.append([language for _, language in words])
        text, told_of = found[utterance.utterance_id]
        heard.append(text.split())
        of_heard.append(told_of)
    counted = right = 0
    for stretches, expected, told in zip(align_words(said, heard), of_said, of_heard, strict=True):
        for stretch in stretches:
            if stretch.kind == EQUAL:
                pairs = zip(stretch.reference, stretch.hypothesis, strict=True)
                known_pairs = [(expected[at], told[there]) for at, there in pairs if expected[at] is not None]
                counted += len(known_pairs)
                right += sum(language == other for language, other in known_pairs)
    return {"token_languages": counted, "token_languages_right": right / counted if counted else None}
