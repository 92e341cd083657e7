"""Mask and fill the first sentences of your own text, and show them on a page with the reasons.

Nothing has to be set up. The command uses only lists and models that ship with palimpsest, and
needs no params.yaml. Three techniques mask: a list of common words, a conditional random field, and
a small Transformer. Two methods fill the masked words: surrogates, and a small masked language
model.

The page shows the raw text, so it is readable by you alone (mode 0600).

examples:
    palimpsest try mail.txt
    palimpsest try tickets.xlsx --text-field description
"""

import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tasks.corpora.own_text import OwnTextOptions, said_of
from tasks.errors import CorpusError
from tasks.options import WRITE, Argument, Command

if TYPE_CHECKING:
    from tasks.masking.preview import Previewed

SUMMARY = "mask and fill some of your own text, and show it on a page: nothing to set up"

_TECHNIQUES = ("allow_list", "crf", "word_classifier")
_METHODS = ("surrogate", "top_k")
_SENTENCES, _SHOWN = 1000, 20


class TryOptions(OwnTextOptions):
    """Options of the command: the text, and the path of the page."""

    text: Annotated[str, Argument(positional=True, metavar="FILE")]
    """your text: a file, a folder, or the URL of a database"""
    output: Annotated[str, WRITE] = "try.html"
    """file for the page"""


def run(options: TryOptions) -> None:
    """Read, mask, fill, and write the page."""
    from tasks.corpora.division import EMPTY, normalise
    from tasks.corpora.languages import language_shares
    from tasks.corpora.sources.text_files import files_left_out
    from tasks.files.atomic_file import atomic_writer
    from tasks.masking.preview import preview_page

    left_out, guessed, sentences = Counter[str](), Counter[str](), list[str]()
    with options.reader_of(options.text) as settings:
        source = settings.open()
        for document in (one for part in source.parts for one in source.documents(part)):
            left_out.update(document.left_out)
            guessed.update(document.guessed)
            texts = [normalise(text) for text in document.texts]
            left_out[EMPTY] += texts.count("")
            sentences += filter(None, texts)
            if len(sentences) >= _SENTENCES:
                break
    del sentences[_SENTENCES:]
    for warning in (files_left_out(source.ignored), *(f"{count:,} {what}" for what, count in guessed.items())):
        if not warning.startswith("0 "):
            print(f"palimpsest: warning: {warning}", file=sys.stderr)
    if not sentences:
        raise CorpusError(f"{Path(settings.source).name!r} holds no text; it needs at least one sentence")
    spoken = ", ".join(f"{share:.0%} {name}" for name, share in language_shares(sentences).languages.items())
    note = f"The first {len(sentences):,} sentences; language: {spoken or 'unknown'}; left out: {said_of(left_out)}."
    print(note)
    found = [_previewed(name, sentences) for name in _TECHNIQUES]
    with atomic_writer(options.output, private=True) as stream:
        stream.write(preview_page(Path(settings.source).name, found, [note], all_words=False))
    print(f"{options.output}: open it in a browser. It shows raw private text; mode 0600, for your eyes alone.")
    print("Next: 'palimpsest init NAME FILE' compares ways to mask and to fill all of it, and says which to use.")


def _previewed(name: str, sentences: Sequence[str]) -> "Previewed":
    """One technique on all sentences, and each fill of the shown ones."""
    import palimpsest
    from tasks.corpora.masked_text import MASK
    from tasks.masking.preview import PreviewCounts, Previewed, preview_lines
    from tasks.masking.techniques import AnyTechnique, settings_named
    from tasks.settings.checks import check_settings

    settings = check_settings(AnyTechnique, settings_named(name), f"technique {name}")
    technique = settings.build(None, 1)
    counts = PreviewCounts()
    shown = list(islice(preview_lines(technique, sentences, settings.markers, counts), len(sentences)))
    step = max(1, len(shown) // _SHOWN)
    chosen = [line for line in shown if line.number % step == 0][:_SHOWN]
    fills: dict[int, list[tuple[str, str]]] = {line.number: [] for line in chosen}
    # Stages store a key in their working folder.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()):
        masked = palimpsest.mask([sentences[line.number - 1] for line in chosen], settings)
        # A line without a marker is not filled.
        for method in _METHODS if masked.measured["masked_words"] else ():
            for line, filled in zip(chosen, palimpsest.fill(masked, method), strict=True):
                fills[line.number].append((method.replace("_", "-"), filled))
    share = counts.masked_fraction or 0.0
    most = counts.labels.most_common(4)
    classes = ", ".join(f"{'no class' if label == MASK else label} {number:,}" for label, number in most)
    print(f"{name:<15} masks {share:6.1%} of {counts.words:,} words ({classes or 'none'})")
    for warning in masked.warnings:
        print(f"palimpsest: warning: {name}: {warning}", file=sys.stderr)
    return Previewed(name.replace("_", " "), chosen, counts, [*technique.announcements(), *masked.warnings], fills)


COMMAND = Command(TryOptions, run)
