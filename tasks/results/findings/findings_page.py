"""The findings as a Markdown document: numbers only, never text of a corpus."""

from collections.abc import Iterable, Mapping, Sequence

from tasks.records.cells import NO_LANGUAGE_MODEL, ORACLE, PRETRAINED
from tasks.results.findings.findings_beyond import GOAL, Best, Beyond, Gap, Restored, Share
from tasks.results.findings.findings_claims import Finding
from tasks.results.findings.findings_comparison import Comparison
from tasks.results.findings.findings_forgetting import forgetting_parts
from tasks.results.findings.findings_speech import Rate, SpokenDataset, System
from tasks.results.forgetting import Report
from tasks.results.grid import ABSENT, markdown, plain_grid, words
from tasks.results.measure import ABOVE, BELOW
from tasks.results.titles import technique_name

_SIDES = {"for": "for", "against": "**against**", "open": "undecided"}
_BESIDE = {"more": "**more**", "fewer": "fewer", "open": "undecided"}


def findings_page(
    claims: Sequence[Finding],
    known: Sequence[Finding],
    more: Beyond,
    spoken: Sequence[SpokenDataset],
    forgotten: Mapping[str, Sequence[Report]],
    *,
    cells: int,
    seeds: int,
    confidence: float,
) -> str:
    """The document; ``claims`` are judged by all words, ``known`` by words of the vocabulary alone."""
    parts = [
        "# Findings",
        f"Made by `palimpsest findings` from {cells} cells with {seeds} {'seed' if seeds == 1 else 'seeds'}. "
        f"A difference counts where its {confidence:.0%} interval excludes the limit: a paired bootstrap over the test "
        "sentences, widened by the spread over seeds where there are several. *Confirmed*: every comparison is for the "
        "claim. *Contradicted*: more are against it than for it; for a claim on every method, any is. *Not confirmed*: "
        "anything between, or a part of the claim that could not be compared. *Not tested*: its methods are not part "
        "of the experiment, none of their numbers can be compared, or no comparison has an interval.",
        "## The paper's eight claims",
        _table(
            ["", "claim", "all words", "known words"],
            [
                [str(finding.number), finding.claim, f"**{finding.verdict}**", other.verdict]
                for finding, other in zip(claims, known, strict=True)
            ],
        ),
    ]
    for finding, other in zip(claims, known, strict=True):
        parts += [
            f"### {finding.number}. {finding.claim}",
            f"All words: **{finding.verdict}**. {finding.evidence}",
        ]
        if (other.comparisons, other.missing) != (finding.comparisons, finding.missing):
            parts.append(f"Known words: **{other.verdict}**. {other.evidence}")
        if finding.comparisons or other.comparisons:
            parts.append(_comparisons(finding, other))
    parts += speech_parts(spoken)
    parts += [
        "## Beyond the paper",
        f"In brackets the {confidence:.0%} interval over test sentences and seeds, in parentheses the smallest and the "
        "largest of several seeds. Over known words alone a fill gains by never writing a word that the language model "
        "does not know; over all words it pays for that.",
        "Left out, since their perplexities follow another protocol than those of their data set's first Oracle: "
        + "; ".join(more.other_protocol)
        + ". Gaps from or to one of them are not known."
        if more.other_protocol
        else "",
        "Left out, since they have no seed in common: " + "; ".join(more.no_common_seed) + "."
        if more.no_common_seed
        else "",
        "### How much of the gap is closed",
        "*Closed*: the share of the way from Baseline1 (0 %) to Oracle (100 %), in log perplexity. *Of Top-K's gap*: "
        "the distance from Oracle that is left, per that of the paper's Top-K by the same filler (for a fill without "
        "a filler, of the nearest Top-K), in perplexity. *Goal*: whether its interval over known words is at "
        f"{GOAL:.0%} or below.",
        _gaps(more.gaps),
        "### The best fill of each technique",
        "Which is best is read off the same test text, so the interval to the next best flatters the best a little.",
        "Over known words:",
        _best(more.best),
        "Over all words:",
        _best(more.best_all_words),
        "### Coincidence, beside guessing",
        "The share of masked words that the fill happens to write (Wilson's interval), and what drawing words by their "
        "frequency would hit. It is not what an attacker gets: one with a strong model finds more; that figure is not "
        "measured yet.",
        _restored(more.restored),
        *forgetting_parts(forgotten),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown(plain_grid("", words(*headings), rows))


def _comparisons(finding: Finding, known: Finding) -> str:
    over_all, over_known = (
        {(c.dataset, c.technique, c.first, c.second): c for c in each.comparisons} for each in (finding, known)
    )
    rows = []
    # Over known words another fill may be the best, so that a comparison stands on one side alone.
    for place in dict.fromkeys([*over_all, *over_known]):
        both = over_all.get(place), over_known.get(place)
        dataset, technique, first, second = place
        seeds = next(comparison.seeds for comparison in both if comparison)
        row = [dataset, technique_name(technique), first, second, str(seeds)]
        for comparison in both:
            row += [ratio_text(comparison), _SIDES[comparison.outcome] if comparison else ABSENT]
        rows.append(row)
    headings = ["dataset", "technique", "first", "second", "seeds", "ratio", "claim", "ratio, known words", "claim"]
    return _table(headings, rows)


def ratio_text(comparison: Comparison | None) -> str:
    """``0.934 [0.921, 0.948]``; a dash where there is none."""
    if comparison is None:
        return ABSENT
    if comparison.low is None or comparison.high is None:
        return f"{comparison.ratio:.3f}"
    return f"{comparison.ratio:.3f} [{comparison.low:.3f}, {comparison.high:.3f}]"


def _gaps(gaps: Sequence[Gap]) -> str:
    return _table(
        [
            *("dataset", "technique", "fill", "seeds"),
            *("closed, known words", "of Top-K's gap, known words", "goal"),
            *("closed, all words", "of Top-K's gap, all words"),
        ],
        [
            [
                *(g.dataset, technique_name(g.technique), g.label, str(g.seeds)),
                *(_share(share, g.seeds) for share in (g.closed, g.of_top_k)),
                _SIDES[g.goal] if g.goal else ABSENT,
                *(_share(share, g.seeds) for share in (g.closed_all_words, g.of_top_k_all_words)),
            ]
            for g in gaps
        ],
    )


def _share(share: Share | None, seeds: int) -> str:
    """``16% [11%, 21%] (14% to 18%)``, and over how many of the fill's seeds if not all."""
    if share is None:
        return ABSENT
    text = _percent(share.value)
    if share.interval and share.interval[0] != share.interval[1]:
        text += f" [{_percent(share.interval[0])}, {_percent(share.interval[1])}]"
    if share.smallest != share.largest:
        text += f" ({_percent(share.smallest)} to {_percent(share.largest)})"
    return text if share.seeds == seeds else f"{text}, {share.seeds} of {seeds} seeds"


def _percent(share: float) -> str:
    return "0%" if abs(share) < 0.005 else f"{share:.0%}"


def _best(best: Sequence[Best]) -> str:
    table = _table(
        ["dataset", "technique", "best fill", "perplexity", "per the next best", "next best", "per the best control"],
        [
            [
                b.dataset,
                technique_name(b.technique),
                b.label,
                f"{b.perplexity:.1f}",
                ratio_text(b.to_next),
                b.to_next.second if b.to_next else ABSENT,
                f"{ratio_text(b.to_control)} {b.to_control.second}" if b.to_control else ABSENT,
            ]
            for b in best
        ],
    )
    fewer = [
        f"{b.dataset}, {technique_name(b.technique)}: {', '.join(map(str, b.seeds))}" for b in best if b.of_fewer_seeds
    ]
    note = f"Over the seeds that all fills there have, fewer than some have: {'; '.join(fewer)}."
    return f"{table}\n\n{note}" if fewer else table


def _restored(restored: Sequence[Restored]) -> str:
    return _table(
        ["dataset", "technique", "fill", "coincidence", "by guessing", "beside guessing"],
        [
            [
                r.dataset,
                technique_name(r.technique),
                r.label,
                f"{r.rate:.2%}" + (f" [{r.interval[0]:.2%}, {r.interval[1]:.2%}]" if r.interval else ""),
                ABSENT if r.by_frequency is None else f"{r.by_frequency:.2%}",
                _BESIDE[r.beside_guessing] if r.beside_guessing else ABSENT,
            ]
            for r in restored
        ],
    )


def speech_parts(datasets: Sequence[SpokenDataset]) -> list[str]:
    """The parts of the document; none without word error rates."""
    if not datasets:
        return []
    parts = [
        "## Word error rates",
        "The shape of the paper's Table 6: word error rate in per cent with its interval over utterances and, with "
        f"several seeds, over utterances and seeds. {BELOW} fewer, {ABOVE} more errors than with the pretrained "
        "language model: the interval of the paired difference excludes 0. What has no technique stands under each.",
    ]
    for found in datasets:
        seeds = max(system.seeds for system in found.systems)
        parts += [
            f"### {found.dataset}, {found.kind}",
            f"{found.utterances:,} utterances with {found.words:,} words; seeds: {seeds}.",
            _rates(found),
            "Differences in points, paired by utterance:",
            _differences(found.systems),
            _what_it_says(found),
        ]
        if any(rate is not None for system in found.systems for rate in system.wer_masked.values()):
            parts += ["On the words of the references that each technique would mask:", _masked_rates(found)]
    return parts


def _by_label(found: SpokenDataset) -> dict[str, dict[str, System]]:
    """Systems by label and technique; a reference stands under every technique."""
    lines: dict[str, dict[str, System]] = {}
    for system in found.systems:
        names = found.techniques if system.technique is None else (system.technique,)
        lines.setdefault(system.label, {}).update(dict.fromkeys(names, system))
    return lines


def _rates(found: SpokenDataset) -> str:
    rows = []
    for label, systems in _by_label(found).items():
        cells = (systems.get(name) for name in found.techniques)
        rows.append([label, *(_marked(system) if system else ABSENT for system in cells)])
    if found.room is not None:
        alone = _rate_text(found.room.insertion_bonus_alone)
        rows.insert(1, ["No language model, insertion bonus", *([alone] * len(found.techniques))])
        best = f"{100 * found.room.best_of_lists:.2f}"
        rows.append(["*best hypothesis of every list*", *([best] * len(found.techniques))])
    return _table(["", *map(technique_name, found.techniques)], rows)


def _marked(system: System) -> str:
    difference = system.differences[PRETRAINED]
    sign = ""
    if difference is not None and difference.undecided is False:
        sign = f" {BELOW if difference.value < 0 else ABOVE}"
    return _rate_text(system.wer) + sign


def _masked_rates(found: SpokenDataset) -> str:
    rows = [
        [
            label,
            *(
                _rate_text(systems[name].wer_masked.get(name)) if name in systems else ABSENT
                for name in found.techniques
            ),
        ]
        for label, systems in _by_label(found).items()
    ]
    return _table(["", *map(technique_name, found.techniques)], rows)


def _differences(systems: Sequence[System]) -> str:
    of_lists = any(system.difference_to_insertion_bonus_alone is not None for system in systems)
    subtracted = any(system.source_weight is not None for system in systems)
    headings = ["", "technique", "to no LM", *(["to insertion bonus alone"] if of_lists else []), "to pretrained"]
    headings += ["to Oracle", "LM weight", "insertion bonus", *(["source weight"] if subtracted else [])]
    rows = []
    for system in systems:
        if system.lm_weight is None:
            continue
        row = [system.label, technique_name(system.technique) if system.technique else ABSENT]
        row.append(_points(system.differences[NO_LANGUAGE_MODEL]))
        if of_lists:
            row.append(_points(system.difference_to_insertion_bonus_alone))
        row += [_points(system.differences[name]) for name in (PRETRAINED, ORACLE)]
        row += [_number(system.lm_weight), _number(system.insertion_bonus)]
        rows.append(row + ([_number(system.source_weight)] if subtracted else []))
    return _table(headings, rows)


def _what_it_says(found: SpokenDataset) -> str:
    """What adaptation moves, and what the lists would allow."""
    sentences = []
    if found.oracle is not None:
        difference = _points(found.oracle.differences[PRETRAINED])
        match found.adaptation_moves:
            case True:
                sentences.append(
                    f"**Adaptation moves the rate**: Oracle against the pretrained model {difference} points."
                )
            case False:
                sentences.append(
                    "**Adaptation moves nothing that can be told from 0**: Oracle, adapted on the unmasked text, "
                    f"differs from the pretrained model by {difference} points, so the rates say nothing of the fills."
                )
    if found.room is not None:
        sentences.append(
            "The lists: the recogniser's own choice is as good as any of its list for "
            f"{found.room.best_first_share:.1%} of the utterances, and the best hypothesis of every list would give "
            f"{100 * found.room.best_of_lists:.2f} %."
        )
        sentences += _shares_of_the_room(found)
    return " ".join(sentences)


def _shares_of_the_room(found: SpokenDataset) -> list[str]:
    """How much of the distance to the lists' best the pretrained model and Oracle gain."""
    alone = next((system.wer.value for system in found.systems if system.lm_weight is None), None)
    if found.room is None or alone is None or alone <= found.room.best_of_lists:
        return []
    way = alone - found.room.best_of_lists
    gains = {"an insertion bonus alone": found.room.insertion_bonus_alone.value}
    gains |= {
        f"{name} at weight {_number(system.lm_weight)}": system.wer.value
        for name, label in (("the pretrained model", "Pretrained"), ("Oracle", "Oracle"))
        for system in found.systems
        if system.label == label
    }
    shares = ", ".join(f"{name} {(alone - rate) / way:.0%}" for name, rate in gains.items())
    subtracted = any(system.source_weight is not None for system in found.systems)
    source = "" if subtracted else " The recogniser's own language was not taken off (no source model is named)."
    return [f"Of the way there: {shares}.{source}"]


def _rate_text(rate: Rate | None) -> str:
    """``19.79 [19.13, 20.41]`` in per cent."""
    if rate is None:
        return ABSENT
    ends = "" if rate.low is None or rate.high is None else f" [{100 * rate.low:.2f}, {100 * rate.high:.2f}]"
    return f"{100 * rate.value:.2f}{ends}"


def _points(rate: Rate | None) -> str:
    """``-0.31 [-0.52, -0.11]`` in points; bold where the interval excludes 0."""
    if rate is None:
        return ABSENT
    ends = "" if rate.low is None or rate.high is None else f" [{100 * rate.low:+.2f}, {100 * rate.high:+.2f}]"
    text = f"{100 * rate.value:+.2f}{ends}"
    return f"**{text}**" if rate.undecided is False else text


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3g}"
