import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.technique import MaskingTally, Technique, merge_markers


@pytest.mark.parametrize(
    ("line", "merged"),
    [
        ("[MASK] [MASK] x", "[MASK] x"),
        ("[MASK]  \t\u00a0[MASK][MASK].", "[MASK]."),
        ("[MASK], [MASK]", "[MASK], [MASK]"),
        ("[MASK]'s [MASK]", "[MASK]'s [MASK]"),
        ("[PERSON] [PERSON] [DATE] [DATE] [PERSON]", "[PERSON] [DATE] [PERSON]"),
        ("[\\MASK] [\\MASK] [MASK]", "[\\MASK] [\\MASK] [MASK]"),
        ("[MASK] [\\MASK] [MASK]", "[MASK] [\\MASK] [MASK]"),
        ("[MASK] ", "[MASK] "),
        ("", ""),
    ],
)
def test_merged_lines(line, merged):
    assert merge_markers(line) == merged


TEXT = st.text(alphabet="aA tomcat.,'\"[]\\MASK5@-\t\u00a0é😀", max_size=60)


@given(st.lists(TEXT, max_size=4), st.sampled_from(["mask", "class"]), st.booleans())
def test_merging_counts_words_as_before_and_the_sidecar_restores_the_text(lines, style, fast):
    technique = AllowedWords(["cat", "a"], "list")
    method = technique.mask if fast else lambda *args, **kw: Technique.mask(technique, *args, **kw)
    plain_tally, merged_tally = MaskingTally(), MaskingTally()
    plain = list(method(lines, style, plain_tally, with_spans=True))
    merged = list(method(lines, style, merged_tally, with_spans=True, merge=True))
    assert plain_tally == merged_tally
    assert [[span.original for span in spans] for _, spans in plain] == [
        [span.original for span in spans] for _, spans in merged
    ]
    for line, (text, spans) in zip(lines, merged, strict=True):
        stretches = {}
        for span in spans:
            start, _ = stretches.get(span.marker, (span.start, 0))
            stretches[span.marker] = (start, span.end)
        originals = iter(line[start:end] for start, end in (stretches[index] for index in sorted(stretches)))
        pieces = [next(originals) if isinstance(piece, Marker) else piece for piece in parse_masked(text)]
        assert "".join(pieces) == line
        assert next(originals, None) is None
        assert sorted(stretches) == list(range(len(stretches)))
