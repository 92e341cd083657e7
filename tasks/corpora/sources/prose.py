"""Documents of paragraphs: HTML, Markdown, Word and PDF. A file is a document, and a paragraph a unit.

Formatting is taken off. Blocks of code, pictures, comments and headers of pages are no text.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator

from tasks.corpora.sources.archives import refuse_zip_bomb
from tasks.corpora.sources.document import split_sentences
from tasks.corpora.sources.given_file import MEDIA, GivenFile, Unit
from tasks.corpora.sources.html_text import text_of_html
from tasks.errors import CorpusError

CODE, MARKUP, PAGES = "code", "markup", "pages"
"""Reasons to leave out a block of code, HTML or settings in Markdown, or a page without a text layer."""
_SETTINGS = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[a-zà-öø-ÿ])")


def prose_units(file: GivenFile) -> Iterator[Unit]:
    """The sentences of each paragraph."""
    for paragraph in _PARAGRAPHS[file.form](file):
        if sentences := split_sentences(" ".join(paragraph.split())):
            yield Unit(file.name, sentences)


def _of_markdown(file: GivenFile) -> Iterator[str]:
    """Paragraphs, headings, entries of lists and cells; links and emphasis leave their text."""
    from markdown_it import MarkdownIt

    text, settings = _SETTINGS.subn("", file.text())
    file.left_out[MARKUP] += settings
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        file.left_out[CODE] += token.type in ("fence", "code_block")
        file.left_out[MARKUP] += token.type == "html_block"
        if token.type == "inline":
            pieces = token.children or []
            yield "".join(" " if "break" in one.type else one.content for one in pieces if one.type != "html_inline")


def _of_word(file: GivenFile) -> Iterator[str]:
    """Paragraphs and cells of tables, in their order."""
    from docx import Document
    from docx.text.paragraph import Paragraph

    refuse_zip_bomb(file.path, file.name)
    with file.parsed():
        opened = Document(str(file.path))
        file.left_out[MEDIA] += len(opened.inline_shapes)
        # Text boxes are in a file twice, for old and new versions of Word.
        for found in opened.element.body.xpath(".//w:p[not(ancestor::w:txbxContent)]"):
            yield Paragraph(found, opened).text


def _of_pdf(file: GivenFile) -> Iterator[str]:
    """Blocks of lines of each page; a word that a hyphen divides between two lines is joined."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with file.parsed():
        reader = PdfReader(file.path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise CorpusError(f"{file.name!r} is protected by a password; save a copy without one")
        for number, page in enumerate(reader.pages, start=1):
            text = page.extract_text()
            file.left_out[PAGES] += not text.strip()
            if number == len(reader.pages) == file.left_out[PAGES]:
                raise CorpusError(f"{file.name!r} has no text, only pictures of it; recognise its text first")
            yield from re.split(r"\n\s*\n", _DIVIDED.sub("", text))


_PARAGRAPHS: dict[str, Callable[[GivenFile], Iterable[str]]] = {
    "html": lambda file: text_of_html(file.text()).split("\n"),
    "markdown": _of_markdown,
    "docx": _of_word,
    "pdf": _of_pdf,
}
