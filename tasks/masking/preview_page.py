"""The preview as a page: one HTML file with everything in it, readable offline, in light and dark.

The reason of a word shows when the mouse is over it and when it has the keyboard's focus; Escape puts it away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.corpora.masked_text import CLASSES
from tasks.masking.preview import PreviewCounts, PreviewedLine, counted_reasons, why
from tasks.masking.technique import Finding
from tasks.page_templates import page_environment

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Previewed:
    """What one technique makes of a text."""

    title: str
    lines: Sequence[PreviewedLine]
    counts: PreviewCounts
    notes: Sequence[str] = ()
    """What the technique goes by, and warnings."""
    fills: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """By the number of a line, what each way of filling makes of it."""

    @property
    def classes(self) -> list[tuple[str, int]]:
        """The classes of masked words, with their numbers."""
        return [(label, self.counts.labels[label]) for label in CLASSES if self.counts.labels[label]]

    @property
    def reasons(self) -> list[tuple[str, str, str, int]]:
        """Why words are masked, the most frequent reason first."""
        return counted_reasons(self.counts)


def preview_page(title: str, techniques: Sequence[Previewed], notes: Sequence[str] = (), *, all_words: bool) -> str:
    """The page; ``notes`` are about the text itself, ``all_words`` gives kept words their reasons too."""
    from markupsafe import Markup

    environment = page_environment(_FOLDER)
    environment.tests["masked"] = lambda word: isinstance(word, Finding)
    environment.filters["why"] = why
    return environment.get_template("preview_page.html").render(
        style=Markup((_FOLDER / "preview_page.css").read_text(encoding="utf-8")),
        title=title,
        techniques=techniques,
        notes=notes,
        all_words=all_words,
        colours={label: f"c{index}" for index, label in enumerate(CLASSES)},
    )
