"""What rescoring found, as lines for a person."""

from typing import Any

from tasks.speech.word_errors.measurement import shown_rate


def rescored_lines(measured: dict[str, Any]) -> list[str]:
    """The result as a short table."""
    bonus = measured["insertion_bonus_alone"]
    rows = [
        ("recogniser alone", measured["baseline"], ""),
        ("insertion bonus alone", bonus, f"bonus {bonus['insertion_bonus']:g}"),
    ]
    with_model = measured["lm_weight"] is not None
    if with_model:
        rows.append(("with language model", measured, _shown_weights(measured)))
    lines = [f"{'':24}{'word error rate':24}{'ins':>7}{'del':>7}{'sub':>7}  weights tuned on dev"]
    for name, rates, weights in rows:
        counts = "".join(f"{rates[key]:>7,}" for key in ("insertions", "deletions", "substitutions"))
        lines.append(f"{name:24}{shown_rate(rates):24}{counts}  {weights}".rstrip())
    lines.append(f"{'oracle of the lists':24}{100 * measured['oracle_wer']:.2f} %")
    difference, interval = measured["difference_to_baseline"], measured["difference_to_baseline_ci"]
    ends = f" [{100 * interval[0]:+.2f}, {100 * interval[1]:+.2f}]" if interval else ""
    counts = f"{measured['utterances']:,} utterances, {measured['words']:,} words, {measured['hypotheses']:,} distinct "
    gained = f"; difference {100 * difference:+.2f}{ends}; {measured.get('lm_hypotheses_per_second', 0):,.0f} scored/s"
    lines.append(f"{counts}hypotheses{gained if with_model else ''}")
    if overlap := measured["overlap"]:
        share = overlap["shared_8_gram_share"]
        lines.append(
            f"overlap with the training text: {overlap['shared_sentences']:,} of {overlap['references']:,} references, "
            + ("no 8-grams" if share is None else f"{share:.2%} of their 8-grams")
        )
    return lines


def _shown_weights(measured: dict[str, Any]) -> str:
    shown = [f"lm {measured['lm_weight']:g}", f"bonus {measured['insertion_bonus']:g}"]
    if measured.get("unknown_word_bonus"):
        shown.append(f"unknown word {measured['unknown_word_bonus']:g}")
    if measured["source_weight"] is not None:
        shown.append(f"source -{measured['source_weight']:g}")
    return ", ".join(shown)
