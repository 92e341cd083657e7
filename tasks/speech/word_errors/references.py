"""References and hypotheses by utterance id, and groups of reference words.

References are in a manifest (``text``) or in n-best lists (``reference``). Hypotheses are in JSON lines with ``text``,
or in n-best lists, where the highest score counts. Other forms are those of ``tasks.speech.audio.toolkit_records``.
The audio files of a manifest are not opened.

A word counts as masked if a masked span of 'palimpsest mask --sidecar' touches it, as for perplexities. The languages
of the words are inferred from the references, or given in the manifest (``languages``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.language_model.evaluation.reference_text import FARTHEST, distance_behind, reference_text_of
from tasks.language_model.normalisation import normalise
from tasks.languages.mixing import spoken, switch_points
from tasks.languages.segmentation import divider
from tasks.languages.word_languages import MIXED, WordLanguages
from tasks.speech.audio.toolkit_records import toolkit_records
from tasks.speech.audio.utterance_lines import given_languages, placed_languages, read_records
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.word_errors.word_errors import LANGUAGE, MASKED, WordGroups, mixed_units


def read_references(path: str | Path) -> dict[str, str]:
    """References by utterance id, in the file's order.

    Raises ``SpeechError`` that lists all problems: lines that are no JSON objects, missing keys, duplicate ids.
    """
    return _texts(path, "references", "text", "reference")


def read_hypotheses(path: str | Path) -> dict[str, str]:
    """Hypotheses by utterance id; an utterance with an empty n-best list has none and counts as missing.

    Raises ``SpeechError`` as ``read_references`` does.
    """
    first = next((record for _, record in toolkit_records(path, "hypotheses")), None)
    if isinstance(first, dict) and "hypotheses" in first:
        lists = read_nbest(path, measured=False)
        return {nbest.utterance_id: nbest.hypotheses[0].text for nbest in lists if nbest.hypotheses}
    return _texts(path, "hypotheses", "pred_text", "hypothesis", "hyp", "text")


def _texts(path: str | Path, what: str, *keys: str) -> dict[str, str]:
    """The text of each record of a file, under the first of the keys that it has."""

    def text(record: dict[str, Any]) -> str | list[str]:
        found = next((record[key] for key in keys if key in record), None)
        return found if isinstance(found, str) else [f"has no {' or '.join(map(repr, keys))} that is text"]

    return read_records(path, text, what, records=toolkit_records(path, what))


def reference_lines(references: Mapping[str, str]) -> list[str]:
    """The references as lines of a text, in order; line ends inside a reference become blanks."""
    return [" ".join(text.splitlines()) for text in references.values()]


def masked_groups(references: Mapping[str, str], sidecars: Mapping[str, str | Path], name: str | Path) -> WordGroups:
    """For each technique, the words that it masks; ``name``: the text's name in messages.

    Raises ``CorpusError`` if a sidecar does not match these references in this order.
    """
    if not sidecars:
        return {}
    text = reference_text_of(reference_lines(references), name, sidecars)
    ids = list(references)
    is_word = ~text.is_end()
    lengths = np.bincount(text.sentence[is_word], minlength=text.sentences)
    ends = np.cumsum(lengths)
    groups: dict[str, dict[str, np.ndarray]] = {}
    for technique, masked in text.masked.items():
        rows = zip(text.lines.tolist(), np.split(masked[is_word], ends[:-1]), strict=True)
        groups[f"{MASKED}:{technique}"] = {ids[line - 1]: marks for line, marks in rows}
    return groups


def language_groups(references: Mapping[str, str], languages: Sequence[str], path: str | Path) -> WordGroups:
    """Units of the references (``mixed_units``) by language: of each language and mixed, at a switch and one to five
    after it, in another language than most of the line, in mixed lines, and in lines of one language.

    Languages are inferred from all normalised references together, unless the manifest or the lists at ``path`` give
    them. Raises ``SpeechError`` if the given languages do not match the words.
    """
    given = given_languages(path, languages)
    divide = divider(languages)
    lines = {name: divide(" ".join(words)) for name, text in references.items() if (words := normalise(text))}
    tagged = WordLanguages(languages, lines.values()).tag(lines.values()) if lines.keys() - given.keys() else None
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, words in lines.items():
        of_words = next(tagged).languages if tagged else []
        if name in given:
            words, of_words = placed_languages(references[name], given[name])
        tags = [tag for word, tag in zip(words, of_words, strict=True) for _ in mixed_units([word])]
        for group, marks in _by_language(tags, languages).items():
            groups.setdefault(f"{LANGUAGE}:{group}", {})[name] = marks
    return groups


def _by_language(tags: Sequence[str | None], languages: Sequence[str]) -> dict[str, np.ndarray]:
    tag = np.array([each or "" for each in tags], dtype=object)
    counts = Counter(spoken(tags))
    main = counts.most_common(1)[0][0] if counts else ""  # the first of equally frequent languages
    switch = np.zeros(len(tags), dtype=bool)
    switch[switch_points(tags)] = True
    after = distance_behind(switch)
    return {
        **{language: tag == language for language in (*languages, MIXED)},
        "embedded words": np.isin(tag, [code for code in counts if code != main]),
        "switch points": switch,
        **{f"{distance} behind a switch": after == distance for distance in range(1, FARTHEST + 1)},
        "lines in one language": np.full(len(tags), len(counts) < 2),
        "mixed lines": np.full(len(tags), len(counts) > 1),
    }
