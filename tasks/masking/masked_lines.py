"""The masked lines of a text: as a stream in this process, or in shards by several workers, with the same bytes.

A technique by line is given the same parts of a text either way, so that the same lines stand in a batch. A stream, a
text of one shard, a technique that learns from the text and one that only looks words up (others would need longer to
be given their lines) stay in this process, and nothing of them is kept.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.text_lines import is_stream
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import MaskingTally, Technique
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.shards.sharded_work import SHARD_LINES, ShardedWork, blocks
from tasks.shards.work_key import model_state, work_key
from tasks.shards.workers import Advance, Work

if TYPE_CHECKING:
    from tasks.masking.mask import MaskFiles

_Masked = tuple[str, list[MaskedSpan]]
_Shard = tuple[int, list[str]]
"""Number of a shard, and its lines."""


@dataclass(frozen=True)
class MaskedShard:
    """What a worker makes of a shard."""

    lines: list[_Masked]
    tally: MaskingTally
    counters: list[Counter[Any]]
    """Of the technique, for this shard."""


@contextmanager
def masked_lines(
    technique: Technique,
    lines: Iterable[str],
    tally: MaskingTally,
    settings: TechniqueSettings,
    files: "MaskFiles",
    resources: ResourceSettings,
    *,
    with_spans: bool,
) -> Iterator[Iterable[_Masked]]:
    """As ``Technique.mask``. Finished shards are kept until the block ends well.

    Raises what ``ShardedWork`` does.
    """
    lines = iter(lines)
    is_alone = resources.devices == 1 and not resources.cluster
    if (
        is_alone
        or not (technique.is_by_line and technique.is_costly)
        or any(map(is_stream, (files.input, files.output)))
    ):
        yield _here(technique, lines, tally, settings, with_spans)
        return
    first = list(islice(lines, SHARD_LINES + 1))
    lines = chain(first, lines)
    if len(first) <= SHARD_LINES:
        yield _here(technique, lines, tally, settings, with_spans)
        return
    work: ShardedWork[MaskedShard] = ShardedWork(
        enumerate(blocks(lines, SHARD_LINES)),
        partial(_masker, settings, files.word_counts, resources.threads, with_spans),
        resources,
        uses_model=_uses_torch(settings),
        output=files.output,
        key=partial(_key, settings, files, resources.threads, with_spans),
    )
    with closing(work):
        with closing(work.finished()) as finished:
            yield (line for shard in finished for line in _counted(shard.result, technique, tally))
        work.remove()


def _here(
    technique: Technique, lines: Iterator[str], tally: MaskingTally, settings: TechniqueSettings, with_spans: bool
) -> Iterator[_Masked]:
    markers = settings.markers
    options = {"with_spans": with_spans, "merge": markers.merge}
    if not technique.is_by_line:
        yield from technique.mask(lines, markers.style, tally, **options)
        return
    for line in lines:
        yield from technique.mask(chain([line], islice(lines, SHARD_LINES - 1)), markers.style, tally, **options)
        technique.lines_before += SHARD_LINES


def _masker(settings: TechniqueSettings, word_counts: str | None, threads: int, with_spans: bool) -> Work:
    technique = settings.build(word_counts, threads)

    def masked(shard: _Shard, advance: Advance) -> MaskedShard:
        number, lines = shard
        technique.lines_before, tally = number * SHARD_LINES, MaskingTally()
        markers = settings.markers
        found = list(technique.mask(lines, markers.style, tally, with_spans=with_spans, merge=markers.merge))
        counted = list(map(Counter, technique.counters()))
        for counter in technique.counters():
            counter.clear()
        return MaskedShard(found, tally, counted)

    return masked


def _counted(shard: MaskedShard, technique: Technique, tally: MaskingTally) -> list[_Masked]:
    tally.add(shard.tally)
    for whole, part in zip(technique.counters(), shard.counters, strict=True):
        whole.update(part)
    return shard.lines


def _key(settings: TechniqueSettings, files: "MaskFiles", threads: int, with_spans: bool) -> str:
    from tasks.records.stage_report import content_hash

    plain = as_plain(settings)
    read = [files.input, *settings.files, *([files.word_counts] if files.word_counts else [])]
    decides = {
        "settings": plain,
        "spans": with_spans,
        "content": [content_hash(path) for path in read],
        "models": {name: model_state(name) for name in _named(plain, "model")},
    }
    return work_key(decides, threads, uses_model=_uses_torch(settings))


def _uses_torch(settings: TechniqueSettings) -> bool:
    return "transformers" in _named(as_plain(settings), "kind")


def _named(plain: object, key: str) -> list[str]:
    """What plain settings, and those of their parts, have at a key."""
    if isinstance(plain, list):
        return [name for each in plain for name in _named(each, key)]
    if not isinstance(plain, dict):
        return []
    own = [plain[key]] if isinstance(plain.get(key), str) else []
    return own + [name for each in plain.values() for name in _named(each, key)]
