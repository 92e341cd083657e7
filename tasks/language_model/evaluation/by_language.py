"""Perplexity of text that mixes languages: by language, at and after switch points, and by how mixed a line is.

The languages of words are inferred from the whole text, since they only group targets and predict nothing.
"""

from collections.abc import Sequence

import numpy as np

from tasks.language_model.evaluation.reference_text import ReferenceText
from tasks.language_model.evaluation.sentence_scores import SentenceSums

_MIXED_LINE = 20
"""Code-mixing index above which a line counts as strongly mixed: half of the mixed lines of code-switched speech."""


def language_groups(
    values: np.ndarray, known: np.ndarray, text: ReferenceText, languages: Sequence[str]
) -> dict[str, SentenceSums]:
    """The sums of known targets of each group; ``values``: log-probability of each target (N,)."""
    return {
        name: SentenceSums.of_targets(values, text.sentence, text.sentences, chosen & known)
        for name, chosen in targets_by_language(text, languages).items()
    }


def targets_by_language(text: ReferenceText, languages: Sequence[str]) -> dict[str, np.ndarray]:
    """Groups of targets (N,), bool: by language, with mixed words as one group; at switch points, and by
    distance after the last one; and by the code-mixing index of the line."""
    from tasks.languages.mixing import code_mixing_index, switch_points
    from tasks.languages.word_languages import MIXED, WordLanguages

    ends: list[int] = np.flatnonzero(text.is_end()).tolist()
    starts = [0, *(end + 1 for end in ends[:-1])]
    lines = [list(text.words[start:end]) for start, end in zip(starts, ends, strict=True)]
    tag = np.full(len(text.words), "", dtype=object)
    switch = np.zeros(len(text.words), dtype=bool)
    index = np.zeros(text.sentences)
    for number, line in enumerate(WordLanguages(languages, lines).tag(lines)):
        start = starts[number]
        tag[start : start + len(line.words)] = [language or "" for language in line.languages]
        switch[[start + place for place in switch_points(line.languages)]] = True
        index[number] = code_mixing_index(line.languages)
    of_line = index[text.sentence]
    groups = {language: tag == language for language in (*languages, MIXED)}
    return groups | {
        "switch points": switch,
        **{f"{distance} behind a switch point": chosen for distance, chosen in text.words_behind(switch).items()},
        "lines in one language": of_line == 0,
        f"lines mixed up to {_MIXED_LINE}": (of_line > 0) & (of_line <= _MIXED_LINE),
        f"lines mixed more than {_MIXED_LINE}": of_line > _MIXED_LINE,
    }
