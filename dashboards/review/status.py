"""State of a review as lines of text: lines read, estimates, agreement, and missing lines."""

from tasks.review.agreement import Agreement, agreements
from tasks.review.reading import Reading
from tasks.review.record import Mark, waiting


def status(reading: Reading) -> str:
    """Lines read, estimates for the technique, agreement, and how many more lines reach the limit."""
    said, review = reading.bound(), reading.review
    readers = sorted({each.reviewer for each in review.lines})
    found = [
        f"{reading.corpus}: {said['lines']:,} of {review.plan.lines:,} lines read"
        + (f" by {', '.join(readers)}" if readers else "")
    ]
    if said["lines"]:
        found.append(f"time: {sum(each.seconds for each in review.lines) / 60:.0f} minutes in all")
    if beyond := waiting(review):
        found.append(f"{beyond:,} of these lines count when the lines before them in the plan are read")
    found += bound_lines(reading)
    for each in agreements(review, reading.lines):
        found.append(_agreement(each))
    return "\n".join(found)


def bound_lines(reading: Reading) -> list[str]:
    """The estimates for the technique, and the number of further lines that reach the limit."""
    said, found = reading.bound(), []
    for name, title in (("direct", "direct identifiers"), ("quasi", "quasi-identifiers")):
        if name in said:
            rate, recall = said[name]["per_thousand"], said[name]["recall"]
            counts = f"{said[name]['unmasked_found']} of {said[name]['found']} found are unmasked"
            found.append(
                f"{reading.technique}: {title} unmasked per 1,000 lines: {rate['value']:.1f} "
                f"[{rate['low']:.1f}, {rate['high']:.1f}]; recall "
                + (f"{recall['value']:.1%} [{recall['low']:.1%}, {recall['high']:.1%}]" if recall else "not known")
                + f"; {counts}"
            )
    if "direct" in said and said["direct"]["per_thousand"]["high"] <= reading.limit:
        found.append(f"the upper bound reaches the limit of {reading.limit:g} (release.unmasked_direct)")
    elif said["needed"] is None:
        found.append(f"no number of lines reaches the limit of {reading.limit:g} (release.unmasked_direct)")
    else:
        # Lines with several identifiers take more lines, and none was read.
        least = "" if said["lines"] else "at least "
        found.append(
            f"{least}{said['needed']:,} more lines reach the limit of {reading.limit:g} (release.unmasked_direct), "
            "if none of them has an unmasked direct identifier"
        )
    return found


def differences(reading: Reading) -> str:
    """Line and place of every word on which two reviewers differ."""
    found = []
    for agreement in agreements(reading.review, reading.lines):
        found.append(_agreement(agreement))
        for each in agreement.differences:
            one, other = (_named(mark) for mark in (each.first, each.second))
            first, second = agreement.reviewers
            found.append(f"  line {each.line + 1}, {each.start} to {each.end}: {first} {one}, {second} {other}")
    return (
        "\n".join(found) or "No line was read by two reviewers. 'palimpsest review CELL --second' has such lines read."
    )


def _agreement(agreement: Agreement) -> str:
    marked, classes = (
        "undefined" if kappa is None else f"{kappa:.2f}" for kappa in (agreement.kappa_marked, agreement.kappa_class)
    )
    return (
        f"{' and '.join(agreement.reviewers)}: {agreement.lines:,} lines, {agreement.words:,} words; Cohen's kappa "
        f"{marked} (marked or not), {classes} (class); {len(agreement.differences):,} words differ"
    )


def _named(mark: Mark | None) -> str:
    return "not marked" if mark is None else f"{mark.label} {'direct' if mark.direct else 'quasi'}"
