"""The allow list (paper 3.1, ``allowList``): keep the words of a hand-made list of safe common words.

``tasks.corpora.words`` defines words. A word stays unmasked if its folded form is on the list. Each rule has a test:

- **Inflections**: each form must itself be on the list. ``walk`` on the list keeps neither ``walks`` nor ``walked``,
  since a rule that strips endings would also let names through (``Banks``, ``Marks``, ``Woods``). The shipped list
  has the common forms.
- **Contractions** of pronouns and the like (``don't``, ``it's``) are words that must be on the list, with the straight
  or the curly apostrophe. A possessive ending is never masked and never unmasks a word: ``Tom's`` becomes ``[MASK]'s``.
- **Hyphens and slashes**: each part is looked up by itself: ``Chicago-based`` becomes ``[MASK]-based``.
- **Casing** makes no difference: ``The``, ``THE`` and ``the`` are one word. So ``May`` is unmasked where ``may`` is.
- **Digits**: a word with a digit is masked unless this number is on the list; the shipped list has none. Signs next to
  a number stay: ``$5`` becomes ``$[MASK]``.
- **E-mail addresses, URLs, @handles and #tags** are one word each, and masked whole, whatever words they contain.
- **Unicode**: words are compared by NFKC, case folding and without format characters. Full-width letters and a soft
  hyphen inside a word make no difference. Accents do: ``café`` is unmasked only if ``café`` is on the list. Words of
  any other script are masked; emoji, symbols and punctuation are not words and stay.
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
