"""Attacks on a tagger: which lines and which names did it learn from?

An attacker has the tagger, and another one that did not learn from the text (the base). A score is the mean
log-probability of labels under the tagger, minus that under the base (the attack with a reference model, Mireshghallah
et al. 2022). A spaCy pipeline has no probabilities, so the attack counts right labels (the gap attack, Yeom et al.
2018).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from tasks.audit.figure import Figure, share_figure
from tasks.audit.membership import membership_figures
from tasks.audit.settings import AuditSettings
from tasks.corpora.words import fold
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.taggers.crf_features import tokens_of
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.tagger import Tagger, WordTagger
from tasks.model_source import PACKAGE_PREFIX, locate_model
from tasks.tagger_training.crf_training import OUTSIDE, tokens_and_labels
from tasks.tagger_training.train_tagger import class_of

NAME_CLASS = "PERSON"
TEMPLATES = ("we saw {} there yesterday .", "I think that {} is here .", "this is about {} and the others .")
"""Sentences for a name; they say little about the class of the word."""
TOP = 20
"""Names with the highest scores."""
_FEWEST_LETTERS = 4
"""Shorter words also occur by chance in the bytes of weights."""
_NAME = re.compile(rf"[^\W\d_]{{{_FEWEST_LETTERS},}}")
_STRING = re.compile(r"[^\s\x00-\x1f\ufffd]+")
_CHANCE = AuditSettings(seed=0)
"""Resamples of the intervals."""
_LEAST = 1e-9
_SURE = 0.99


@dataclass(frozen=True)
class AttackedTagger:
    """A tagger, another one that did not learn from the text, and labelled lines of the same text."""

    tagger: Tagger
    base: Tagger
    folders: tuple[Path, Path]
    """Files of the tagger and of the base."""
    members: Sequence[LabelledLine]
    """Lines that the tagger learned from."""
    non_members: Sequence[LabelledLine]
    """Lines that it did not learn from, none of them a member."""

    @cached_property
    def names(self) -> tuple[list[str], list[str]]:
        """Words of persons' names that only the members have, and those that no member has."""
        seen, unseen = (_names(lines) for lines in (self.members, self.non_members))
        read, other = (_words(line.text for line in lines) for lines in (self.members, self.non_members))
        return [seen[key] for key in sorted(seen.keys() - other)], [unseen[key] for key in sorted(unseen.keys() - read)]


def membership_of_lines(attacked: AttackedTagger) -> dict[str, Figure]:
    """``membership_…``: how well the labels' probabilities distinguish the lines that the tagger learned from."""
    lines = [line for line in chain(attacked.members, attacked.non_members) if tokens_of(line.text)]
    first = len([line for line in attacked.members if tokens_of(line.text)])
    wanted = [[label[2:] or OUTSIDE for label in tokens_and_labels(line, class_of)[1]] for line in lines]
    texts = [line.text for line in lines]
    documents = np.array([line.document or f"{number} of no document" for number, line in enumerate(lines)])
    attacker = "mean log-probability of a line's labels, less that by a tagger that did not learn from it"
    return _figures("membership", attacked, texts, wanted, first, documents, attacker)


def names_in_sentences(attacked: AttackedTagger) -> dict[str, Figure]:
    """``names_…``: is a name of the training text a name with a higher probability than a name of other lines?"""
    seen, unseen = attacked.names
    names = [*seen, *unseen]
    texts: list[str] = []
    wanted: list[list[str]] = []
    for before, after in (template.split("{}") for _ in names for template in TEMPLATES):
        name = names[len(texts) // len(TEMPLATES)]
        texts.append(f"{before}{name}{after}")
        inside = range(len(before), len(before) + len(name))
        wanted.append([NAME_CLASS if start in inside else "" for start, _, _ in tokens_of(texts[-1])])
    attacker = "mean log-probability of a name in neutral sentences, less that by a tagger that did not learn it"
    return _figures("names", attacked, texts, wanted, len(seen), np.arange(len(names)), attacker, len(TEMPLATES))


def names_in_files(attacked: AttackedTagger) -> dict[str, Figure]:
    """``names_read``: share of the training text's names that are words of strings in the tagger's files.

    Strings that the base's files have too, such as those of a vocabulary, do not count.
    """
    own, other = map(_strings_of_files, attacked.folders)
    readable = _words(own - other)
    seen, unseen = ([fold(name) in readable for name in names] for names in attacked.names)
    blind = sum(unseen) / len(unseen) if unseen else None
    return {"names_read": share_figure(seen, [1] * len(seen), "reads strings in the files of the tagger", blind)}


def _figures(
    name: str,
    attacked: AttackedTagger,
    texts: Sequence[str],
    wanted: Sequence[Sequence[str]],
    first: int,
    groups: np.ndarray,
    attacker: str,
    texts_each: int = 1,
) -> dict[str, Figure]:
    """Figures of the first units against the others; a unit is ``texts_each`` texts. ``wanted``: the label of each
    token, empty for a token that does not count."""
    own, before = (
        np.array(_log_probabilities(tagger, texts, wanted)).reshape(-1, texts_each).mean(axis=1)
        for tagger in (attacked.tagger, attacked.base)
    )
    scores = own - before
    figures = membership_figures(name, scores, before, np.arange(len(scores)) < first, groups, attacker, _CHANCE)
    if len(scores) > 2 * TOP:
        top, blind = ((each >= np.sort(each)[-TOP]).nonzero()[0] < first for each in (scores, before))
        attack = f"{attacker}; the {TOP} highest, with those that equal the last"
        figures[f"{name}_top_{TOP}"] = share_figure(top.tolist(), [1] * len(top), attack, float(blind.mean()))
    return figures


def _log_probabilities(tagger: Tagger, texts: Sequence[str], wanted: Sequence[Sequence[str]]) -> list[float]:
    """The mean log-probability of the wanted labels of each text's tokens."""
    classes = classes_in_force(tagger.entity_types, None, tagger.name)
    order = [OUTSIDE, *tagger.entity_types]
    columns: dict[str | None, list[int]] = {OUTSIDE: [0]}
    for at, name in enumerate(tagger.entity_types, start=1):
        columns.setdefault(classes[name], []).append(at)
    private = list(range(1, len(order)))
    found = []
    for labels, rows in zip(wanted, _probabilities(tagger, texts, order), strict=True):
        # A class that the tagger lacks is any class.
        logs = [
            float(np.log(max(_LEAST, row[columns.get(label, private)].sum())))
            for label, row in zip(labels, rows, strict=True)
            if label
        ]
        found.append(sum(logs) / len(logs))
    return found


def _probabilities(tagger: Tagger, texts: Sequence[str], order: Sequence[str]) -> Iterable[np.ndarray]:
    """The probability of each token's types (T, C); of a tagger without probabilities near 1 for the tagged one."""
    if isinstance(tagger, WordTagger):
        return tagger.probabilities(texts)
    found = []
    for text, spans in tagger.tag(texts):
        rows = [[1 - _SURE] * len(order) for _ in tokens_of(text)]
        for row, (start, end, _) in zip(rows, tokens_of(text), strict=True):
            row[next((order.index(one.label) for one in spans if one.start < end and start < one.end), 0)] = _SURE
        found.append(np.array(rows))
    return found


def _names(lines: Iterable[LabelledLine]) -> dict[str, str]:
    """Words of names by their folded form; the first form of each."""
    found: dict[str, str] = {}
    for line in lines:
        for span in line.spans:
            if class_of(span.label) == NAME_CLASS:
                for word in _NAME.findall(line.text[span.start : span.end]):
                    found.setdefault(fold(word), word)
    return found


def _words(texts: Iterable[str]) -> set[str]:
    return {fold(word) for text in texts for word in _NAME.findall(text)}


def _strings_of_files(folder: Path) -> set[str]:
    files = (path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())
    return {string for content in files for string in _STRING.findall(content)}


def folder_of(model: str) -> Path:
    """The files of a tagger: its folder, or that of an installed package."""
    is_place = model.startswith(PACKAGE_PREFIX) or Path(model).is_dir()
    return Path(locate_model(model if is_place else PACKAGE_PREFIX + model))
