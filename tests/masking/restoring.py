"""The text behind a masked line, by its sidecar."""

from tasks.corpora.masked_text import Marker, parse_masked


def restored(line, masked_line, spans):
    """The masked line with the stretch of the raw line that each marker stands for."""
    stretches = {}
    for span in spans:
        assert line[span.start : span.end] == span.original
        start, _ = stretches.get(span.marker, (span.start, 0))
        stretches[span.marker] = (start, span.end)
    assert sorted(stretches) == list(range(len(stretches)))
    originals = (line[slice(*stretches[index])] for index in sorted(stretches))
    text = "".join(next(originals) if isinstance(piece, Marker) else piece for piece in parse_masked(masked_line))
    assert next(originals, None) is None
    return text
