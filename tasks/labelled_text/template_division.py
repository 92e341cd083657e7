"""Which part a template belongs to: train, valid or test, by a hash of its folded text.

The hash decides alone, so a template stays in its part whatever other templates, files or seeds there are, and near
duplicates (other case, punctuation or digits) are in one part.
"""

import hashlib

from tasks.corpora.sources.document import PARTS, Part
from tasks.labelled_text.template import Template

__all__ = ["PARTS", "part_of"]


def part_of(template: Template, valid_share: float, test_share: float) -> Part:
    """The part of a template, for the share of the templates (not of the sentences) that each part gets."""
    digest = hashlib.sha256(b"part\0" + template.folded.encode("utf-8")).digest()
    place = int.from_bytes(digest[:8]) / 2**64
    if place < test_share:
        return "test"
    return "valid" if place < test_share + valid_share else "train"
