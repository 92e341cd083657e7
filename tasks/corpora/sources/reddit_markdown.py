"""What people wrote in a Reddit comment, out of its Markdown and HTML entities.

Quotes of others, code blocks, tables and rules are left out; of links the text stays, of emphasis the words. Bare
URLs, user names (``u/name``) and subreddits (``r/name``) are words like others: masking has to deal with them.
"""

import html
import re

_CODE_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1.*?$|\Z)", re.MULTILINE | re.DOTALL)
_DROPPED_LINE = re.compile(
    r"""^(?:
        \s{0,3}>(?!!).*            # a quote of somebody else (but >! opens a spoiler)
        | (?:\ {4}|\t).*           # code
        | .*\|.*\|.*               # a row of a table
        | \s*(?:[-*_=]\s*){3,}     # a rule
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_LEADING = re.compile(r"^[ \t]*(?:#{1,6}\s*|[-*+]\s+|\d{1,3}[.)]\s+)", re.MULTILINE)
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"\n]*\")?\)")
_SPOILER = re.compile(r">!|!<")
_STRONG = re.compile(r"(\*\*\*|\*\*|\*|~~|(?<!\w)__|(?<!\w)_)(?=\S)([^\n]*?\S)\1(?!\w)")
_SUPERSCRIPT = re.compile(r"\^+\(([^()\n]*)\)|\^+")
_CODE = re.compile(r"`+([^`\n]*)`+")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~^>|/])")


def plain_text(body: str) -> str:
    """The text of a comment; paragraphs and list items end with line ends."""
    # Dumps hold "&amp;nbsp;": what the writer typed, escaped once more on the way out.
    text = html.unescape(html.unescape(body)).replace("\r\n", "\n")
    text = _CODE_FENCE.sub("", text)
    text = _DROPPED_LINE.sub("", text)
    text = _LEADING.sub("", text)
    text = _IMAGE_OR_LINK.sub(r"\1", text)
    text = _SPOILER.sub("", text)
    for _ in range(2):
        text = _STRONG.sub(r"\2", text)
    text = _SUPERSCRIPT.sub(lambda match: f" {match.group(1)}" if match.group(1) else " ", text)
    text = _CODE.sub(r"\1", text)
    return _ESCAPED.sub(r"\1", text).strip()
