"""The allow list (paper 3.1, ``allowList``): keep the words of a hand-made list of safe common words.

``tasks.corpora.words`` defines words. A word stays unmasked if its folded form is on the list; casing, straight and
curly apostrophes, full-width letters and soft hyphens make no difference. Each rule has a test:

- **Inflections**: each form must itself be on the list. ``walk`` on the list keeps neither ``walks`` nor ``walked``,
  since a rule that strips endings would also let names through (``Banks``, ``Marks``, ``Woods``). The shipped list
  has the common forms.
- **Digits**: a word with a digit is masked unless this number is on the list; the shipped list has none. Signs next to
  a number stay: ``$5`` becomes ``$[MASK]``.
- **Parts**: ``Tom's`` becomes ``[MASK]'s``, and ``Chicago-based`` ``[MASK]-based``. E-mail addresses, URLs, @handles
  and #tags are masked whole.
"""

from pathlib import Path
from typing import ClassVar, Literal

from tasks.corpora.word_list import read_word_list
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.settings import TechniqueSettings

SHIPPED_LIST = Path(__file__).parent / "allow_list.txt"
"""Shipped list of 5,000 common words without names, places and numbers; ``benchmarks/build_allow_list.py`` makes it."""


class AllowList(TechniqueSettings):
    """Keep words on a list of safe common words, mask all others."""

    sentence: ClassVar[str] = "Keep words of a list of safe common words, mask all others."
    kind: Literal["allow_list"]
    path: str | None = None
    """File with your own list, one word a line; ``null``: the list of 5,000 words that ships with palimpsest."""

    def build(self, word_counts: str | None, threads: int) -> AllowedWords:
        """The technique with the words of the list."""
        found = read_word_list(self.path or SHIPPED_LIST)
        unusable = found.unusable_lines
        technique = AllowedWords(found.words, self.kind)
        technique.languages = () if self.path else ("en",)
        if unusable:
            numbers = ", ".join(map(str, unusable[:5])) + (", ..." if len(unusable) > 5 else "")
            technique.unusable_lines = [
                f"word list {self.path!r}: {len(unusable):,} lines are not one word each and keep nothing "
                f"(line {numbers})"
            ]
        return technique

    @property
    def files(self) -> list[str]:
        """The user's list file, if any."""
        return [self.path] if self.path else []
