"""Text of HTML as a browser shows it: a line for each line, and an empty one after each block."""

import re
from collections import Counter
from html.parser import HTMLParser

_QUOTE = "> "
_UNSHOWN = frozenset(("script", "style", "title"))
_BLOCKS = frozenset(
    "address article aside blockquote body center dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr "
    "html li main nav ol p pre section table td th tr ul".split()
)


class _HtmlText(HTMLParser):
    """Parser of the lines that HTML shows."""

    def __init__(self, quote: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._quote = quote
        self._line = ""
        self._open: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Begin a line where the element does; its ancestors decide how its text is read."""
        self.end_line(tag)
        self._open[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        """End the line with the element."""
        self.end_line("" if tag == "br" else tag)
        self._open[tag] = max(self._open[tag] - 1, 0)

    def handle_data(self, data: str) -> None:
        """Collapse white space as HTML does; line ends count in preformatted text only."""
        if any(self._open[tag] for tag in _UNSHOWN):
            return
        first, *others = data.replace("\r", "").split("\n") if self._open["pre"] else [re.sub(r"\s+", " ", data)]
        self._line += first
        for line in others:
            self.end_line("br")
            self._line = line

    def end_line(self, tag: str) -> None:
        """End a line at the beginning or end of an element, if it has one."""
        if tag != "br" and tag not in _BLOCKS:
            return
        if self._line.strip():
            self.lines.append(self._quote * (self._open["blockquote"] > 0) + self._line.lstrip())
        if tag != "br":
            self.lines.append("")
        self._line = ""


def text_of_html(text: str, *, marks_quotes: bool = False) -> str:
    """The lines that HTML shows; ``marks_quotes``: those of a ``blockquote`` as in plain text."""
    reader = _HtmlText(_QUOTE if marks_quotes else "")
    text = text.replace("<![", "<!")  # Outlook's form is a comment to browsers, but an error to Python
    whole, end, rest = text.rpartition(">")
    reader.feed(whole + end + rest.replace("<", "&lt;"))  # newer Pythons drop the text of a tag that never ends
    reader.close()
    reader.end_line("p")
    return "\n".join(reader.lines)
