"""Where a sentence of running English text ends: a rule, fast and without a model.

A sentence ends at ``.``, ``!``, ``?`` or ``…`` with what closes behind it (quotes, brackets), where white space and
then a capital, a digit or something that opens follows. A full stop does not end it behind an abbreviation
that stands before other words (``Mr.``, ``Prof.``, ``Inc.`` before a lower-case word), behind initials
(``J. K. Rowling``, ``U.S. Army``), nor behind ``no.``, ``vol.`` and the like before a digit. A line end always ends it.
Known error: a sentence that ends in an abbreviation of the list is joined with the next one.
"""

import re

_BOUNDARY = re.compile(r"(?:[.!?…]+[\"'”’)\]]*|[.!?…]+\[\d+\])\s+(?=[\"'“‘(\[]*[A-Z0-9À-ÖØ-Þ])|\s*\n\s*")
_LAST_WORD = re.compile(r"([^\W\d_][\w.]*)\.$")
_ABBREVIATIONS = frozenset(
    (
        "mr mrs ms dr prof st mt ft rev fr sr jr gen col capt lt sgt maj cmdr adm hon gov sen rep pres messrs mme "
        "vs cf ca approx etc e.g i.e al inc ltd co corp bros dept univ est fl b d r op cit ed eds trans "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    ).split()
)
_BEFORE_NUMBER = frozenset("no nos vol p pp ch sec fig figs art ver v c ca".split())
_LOOK_BACK = 24


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without white space round them; linear in its length."""
    sentences = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match.end() < len(text) and not _ends_sentence(text, match, start):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_sentence(text: str, match: re.Match[str], start: int) -> bool:
    mark = match.group().rstrip()
    if "\n" in match.group() or mark != ".":
        return True
    last = _LAST_WORD.search(text[max(start, match.start() - _LOOK_BACK) : match.start() + 1])
    if last is None:
        return True
    word = last.group(1).lower()
    if len(word) == 1 or "." in word:
        # An initial or U.S.: what follows decides nothing, and joining two sentences is the smaller harm.
        return word == "i"
    return word not in _ABBREVIATIONS and not (word in _BEFORE_NUMBER and text[match.end()].isdigit())
