"""The allow list (paper 3.1, ``allowList``): keep the words of a hand-made list of safe common words.

What a word is says ``tasks.corpora.words``; it is kept if its folded form is on the list, else it is masked. For text
this comes to, each with a test:

- **Inflections**: each form must itself be on the list. ``walk`` on the list keeps neither ``walks`` nor ``walked``,
  since a rule that strips endings would also let names through (``Banks``, ``Marks``, ``Woods``). The shipped list has
  the common forms.
- **Contractions** of pronouns and the like (``don't``, ``it's``) are words that must be on the list, with the straight
  or the curly apostrophe. A possessive ending is never masked and never keeps a word: ``Tom's`` becomes ``[MASK]'s``.
- **Hyphens and slashes**: each part is looked up by itself: ``Chicago-based`` becomes ``[MASK]-based``.
- **Casing** makes no difference: ``The``, ``THE`` and ``the`` are one word. So ``May`` is kept where ``may`` is.
- **Digits**: a word with a digit is masked unless just this number is on the list; the shipped list has none. Signs
  round a number stay: ``$5`` becomes ``$[MASK]``.
- **E-mail addresses, URLs, @handles and #tags** are one word each, and masked whole, whatever words they hold.
- **Unicode**: words are compared by NFKC, case folding and without format characters. Full-width letters and a soft
  hyphen inside a word make no difference, accents do: ``café`` is kept only if ``café`` is on the list. Words of any
  other script are masked; emoji, symbols and punctuation are no words and stay.
"""

from pathlib import Path
from typing import Any, ClassVar, Literal

from tasks.corpora.word_list import WordList, read_word_list
from tasks.masking.lists.kept_words import KeptWords
from tasks.masking.settings import TechniqueSettings

SHIPPED_LIST = Path(__file__).parent / "allow_list.txt"
"""5,000 common words without names, places and numbers; ``build_allow_list.py`` makes it."""


class AllowList(TechniqueSettings):
    """Keep words on a list of safe common words, mask all others."""

    sentence: ClassVar[str] = "Keep words of a list of safe common words, mask all others."
    kind: Literal["allow_list"]
    path: str | None = None
    """A list of your own, one word a line; ``null``: the list of 5,000 words that ships with palimpsest."""

    def build(self, word_counts: str | None, threads: int) -> "AllowedWords":
        """The words of the list."""
        return AllowedWords(read_word_list(self.path or SHIPPED_LIST), self)

    @property
    def files(self) -> list[str]:
        """The user's list."""
        return [self.path] if self.path else []


class AllowedWords(KeptWords):
    """Keep the words of an allow list."""

    def __init__(self, word_list: WordList, settings: AllowList) -> None:
        super().__init__(word_list.words, settings.kind)
        self._path, self._unusable_lines = settings.path, word_list.unusable_lines
        self.languages = () if settings.path else ("en",)

    def reason(self, folded_word: str) -> str:
        """On the list, or not."""
        on_list = "on" if folded_word in self.kept_words else "not on"
        return f"{on_list} the allow list of {len(self.kept_words):,} words"

    def in_force(self) -> dict[str, Any]:
        """How long the list is, and how many of its lines no word of a text can match."""
        return {"list_words": len(self.kept_words), "unusable_list_lines": len(self._unusable_lines)}

    def announcements(self) -> list[str]:
        """Lines of a user's list that do nothing."""
        if not self._unusable_lines:
            return []
        numbers = ", ".join(map(str, self._unusable_lines[:5])) + (", ..." if len(self._unusable_lines) > 5 else "")
        return [
            f"word list {self._path!r}: {len(self._unusable_lines):,} lines are not one word each and keep nothing "
            f"(line {numbers})"
        ]
