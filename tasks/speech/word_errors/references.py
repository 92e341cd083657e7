"""What was said and what was recognised, by utterance id, from the files that hold it.

References stand in a manifest (``text``) or in n-best lists (``reference``); hypotheses in JSON lines with ``text``, or
in n-best lists, where the one with the highest score counts. Plain or compressed. The audio files of a manifest are not
looked for: error rates need none.

The references are masked like any other text: 'palimpsest reference-text' writes them one a line, 'palimpsest mask
--sidecar' says what it masks of them, and a word counts as masked where a masked span touches it, as for perplexities.
The languages of their words are told from the references, or stand in the manifest (``languages``).
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import SpeechError
from tasks.language_model.evaluation.reference_text import FARTHEST, distance_behind, reference_text_of
from tasks.language_model.normalisation import normalise
from tasks.languages.mixing import spoken, switch_points
from tasks.languages.segmentation import divider
from tasks.languages.word_languages import MIXED, WordLanguages
from tasks.speech.audio.utterance_lines import fail_with_problems, given_languages, placed_languages, read_json_lines
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.rescoring.settings import OverlapLimits
from tasks.speech.word_errors.word_errors import (
    BEHIND,
    LANGUAGE,
    MASKED,
    WordGroups,
    mixed_units,
)

STRETCH_WORDS = 8


def measure_overlap(references: Iterable[str], training_texts: Sequence[str | Path]) -> dict[str, Any]:
    """Overlap of test references with training texts, which are read once, line by line; as a report says it.

    References without a word are not counted. ``eight_grams`` are distinct stretches. A share is ``None`` where there
    is nothing to share.
    """
    sentences: list[str] = []
    stretches: set[tuple[str, ...]] = set()
    for reference in references:
        words = normalise(reference)
        if words:
            sentences.append(" ".join(words))
        stretches.update(tuple(words[place : place + STRETCH_WORDS]) for place in range(len(words) - STRETCH_WORDS + 1))
    wanted = set(sentences)
    seen_sentences: set[str] = set()
    seen_stretches: set[tuple[str, ...]] = set()
    for path in training_texts:
        window: deque[str] = deque(maxlen=STRETCH_WORDS)
        for line in read_compressed_lines(path):
            words = normalise(line)
            joined = " ".join(words)
            if joined in wanted:
                seen_sentences.add(joined)
            for word in words:
                window.append(word)
                if len(window) == STRETCH_WORDS and (stretch := tuple(window)) in stretches:
                    seen_stretches.add(stretch)
    shared = sum(sentence in seen_sentences for sentence in sentences)
    return {
        "references": len(sentences),
        "shared_sentences": shared,
        "shared_sentence_share": shared / len(sentences) if sentences else None,
        "eight_grams": len(stretches),
        "shared_8_grams": len(seen_stretches),
        "shared_8_gram_share": len(seen_stretches) / len(stretches) if stretches else None,
    }


def check_overlap(overlap: Mapping[str, Any], settings: OverlapLimits) -> None:
    """``SpeechError`` where more is shared than the settings allow."""
    for share, limit, what, name in (
        (overlap["shared_sentence_share"], settings.maximum_shared_sentences, "references", "maximum_shared_sentences"),
        (overlap["shared_8_gram_share"], settings.maximum_shared_8_grams, "8-grams", "maximum_shared_8_grams"),
    ):
        if limit is not None and share is not None and share > limit:
            raise SpeechError(
                f"{share:.2%} of the test {what} stand in the training text, and {name} allows {limit:.2%}; "
                "take them out of the training text, or raise the limit"
            )


def read_references(path: str | Path) -> dict[str, str]:
    """References by utterance id, in the file's order.

    Raises ``SpeechError`` that lists what is wrong: lines that are no JSON objects, missing keys, ids that stand twice.
    """
    return _read(path, ("text", "reference"), "references")


def read_hypotheses(path: str | Path) -> dict[str, str]:
    """Hypotheses by utterance id; an utterance with an empty n-best list has none, and so counts as missing.

    Raises ``SpeechError`` as ``read_references`` does.
    """
    first = next((record for _, record in read_json_lines(path)), None)
    if isinstance(first, dict) and "hypotheses" in first:
        return {nbest.utterance_id: nbest.best.text for nbest in read_nbest(path) if nbest.hypotheses}
    return _read(path, ("text",), "hypotheses")


def _read(path: str | Path, keys: tuple[str, ...], what: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    problems: list[str] = []
    for number, record in read_json_lines(path):
        if isinstance(record, str):
            problems.append(f"line {number} {record}")
            continue
        name = record.get("utterance_id")
        text = next((record[key] for key in keys if key in record), None)
        if not isinstance(name, str) or not name:
            problems.append(f"line {number} has no 'utterance_id'")
        elif not isinstance(text, str):
            problems.append(f"line {number} has no {' or '.join(map(repr, keys))} of text")
        elif name in texts:
            problems.append(f"line {number}: utterance_id {name!r} stands twice")
        else:
            texts[name] = text
    fail_with_problems(path, problems)
    if not texts:
        raise SpeechError(f"{str(path)!r} holds no {what}; give a file of JSON lines")
    return texts


def reference_lines(references: Mapping[str, str]) -> list[str]:
    """The references as lines of a text, in their order: line ends inside a reference become blanks."""
    return [" ".join(text.splitlines()) for text in references.values()]


def masked_groups(references: Mapping[str, str], sidecars: Mapping[str, str | Path], name: str | Path) -> WordGroups:
    """Of each technique, the words that it masks, and those one to five words behind one; ``name`` is what messages
    call the text.

    Raises ``CorpusError`` where a sidecar is not one of these references in this order.
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
        marks = {
            ids[line - 1]: marks
            for line, marks in zip(text.lines.tolist(), np.split(masked[is_word], ends[:-1]), strict=True)
        }
        groups[f"{MASKED}:{technique}"] = marks
        behind = {utterance: distance_behind(marked) for utterance, marked in marks.items()}
        for distance in range(1, FARTHEST + 1):
            groups[f"{BEHIND}:{technique}:{distance}"] = {name: found == distance for name, found in behind.items()}
    return groups


def language_groups(references: Mapping[str, str], languages: Sequence[str], path: str | Path) -> WordGroups:
    """Units of the references (``mixed_units``) by language: of each one and mixed, where the language changes and one
    to five behind, those of another language than most of their line, and by whether their line mixes languages.

    They are told from all references together, normalised, where the manifest or the lists at ``path`` do not give
    them. Raises ``SpeechError`` where what is given does not fit the words.
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
    main = counts.most_common(1)[0][0] if counts else ""  # of equally many, the first one
    switch = np.zeros(len(tags), dtype=bool)
    switch[switch_points(tags)] = True
    behind = distance_behind(switch)
    return {
        **{language: tag == language for language in (*languages, MIXED)},
        "embedded words": np.isin(tag, [code for code in counts if code != main]),
        "switch points": switch,
        **{f"{distance} behind a switch": behind == distance for distance in range(1, FARTHEST + 1)},
        "lines in one language": np.full(len(tags), len(counts) < 2),
        "mixed lines": np.full(len(tags), len(counts) > 1),
    }
