"""The preview as a page: one HTML file with everything in it, readable offline, in light and dark.

The reason of a word shows when the mouse is over it and when it has the keyboard's focus; Escape puts it away.
"""

from collections.abc import Sequence
from pathlib import Path

from tasks.corpora.masked_text import CLASSES
from tasks.masking.preview import PreviewCounts, PreviewedLine, counted_reasons, why
from tasks.masking.technique import Finding
from tasks.page_templates import page_environment

_FOLDER = Path(__file__).parent


def preview_page(
    title: str, lines: Sequence[PreviewedLine], counts: PreviewCounts, notes: Sequence[str], *, all_words: bool
) -> str:
    """The page; ``notes`` say what the technique goes by, ``all_words`` gives kept words their reasons too."""
    from markupsafe import Markup

    environment = page_environment(_FOLDER)
    environment.tests["masked"] = lambda word: isinstance(word, Finding)
    environment.filters["why"] = why
    return environment.get_template("preview_page.html").render(
        style=Markup((_FOLDER / "preview_page.css").read_text(encoding="utf-8")),
        title=title,
        lines=lines,
        counts=counts,
        notes=notes,
        all_words=all_words,
        classes=[(label, counts.labels[label]) for label in CLASSES if counts.labels[label]],
        colours={label: f"c{index}" for index, label in enumerate(CLASSES)},
        reasons=counted_reasons(counts),
    )
