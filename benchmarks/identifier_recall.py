"""Recall of the release technique for the 18 identifiers of HIPAA's Safe Harbor method (45 CFR 164.514(b)(2)).

    python -m benchmarks.build_shipped --gold GOLD --held-out held_out --output crf
    python -m benchmarks.identifier_recall data/labelled/test.jsonl held_out crf  # writes a table of docs/privacy.md

An identifier counts as found if every one of its words is masked. Three kinds of text:

- ``forms``: sentences of ``identifiers.yaml`` with values by Faker (synthetic). No tagger that ships has learned from
  them. They cover identifiers that no labelled corpus here has, such as medical record numbers.
- ``data/labelled/test.jsonl`` of a run (synthetic). No tagger that ships has seen its templates.
- ``held_out``: real and synthetic labelled text. The taggers that ship have learned from it and find nearly all, which
  says nothing. So it is read by presidio and a conditional random field that was trained without it: a lower bound of
  ``every_tagger``, which adds the word classifier. The field's threshold was chosen on these texts.

Intervals are Wilson's at 95 % and take identifiers for independent; sentences of one form are alike, so they are
somewhat narrow. The output has numbers and labels only, never text.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from faker import Faker

from benchmarks.stored_numbers import publish
from tasks.filling.restoration import wilson_interval
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled
from tasks.masking.techniques import AnyTechnique, settings_named
from tasks.masking_evaluation.judged_line import judged_lines
from tasks.masking_evaluation.label_classes import LabelMapping
from tasks.settings.checks import check_settings

RELEASED, LOWER_BOUND = "every_tagger", "crf or presidio"
SENTENCES = 60
"""Of each label of the forms."""
DATA = yaml.safe_load(Path(__file__).with_name("identifiers.yaml").read_text(encoding="utf-8"))
IDENTIFIERS: Mapping[str, tuple[str, str, str]] = DATA["identifiers"]
VALUES: Mapping[str, Callable[[Any], str]] = {
    "DATE_OF_BIRTH": lambda fake: fake.date_of_birth(minimum_age=18, maximum_age=95).strftime("%m/%d/%Y"),
    "AGE_OVER_89": lambda fake: str(fake.random_int(90, 104)),
    "FAX": lambda fake: fake.numerify("(###) ###-####"),
    "US_SSN": lambda fake: fake.ssn(),
    "MEDICAL_RECORD": lambda fake: fake.random_element(
        (fake.numerify("#######"), fake.bothify("MR-######"), fake.numerify("##-##-##"))
    ),
    "HEALTH_PLAN": lambda fake: fake.bothify("???#########").upper(),
    "MEDICAL_LICENSE": lambda fake: fake.bothify("??#######").upper(),
    "VIN": lambda fake: fake.vin(),
    "SERIAL_NUMBER": lambda fake: fake.bothify("??-####-####").upper(),
    "UUID": lambda fake: fake.uuid4(),
    "PASSPORT": lambda fake: fake.bothify("?########").upper(),
    "USER_NAME": lambda fake: "@" + fake.user_name(),
}


def main(templates: Path, held_out: Path, crf: str) -> None:
    """Measure, store the numbers and write the table."""
    parts = [{"kind": "entity_tagger", "tagger": {"kind": "crf", "model": crf}}, settings_named("presidio")]
    union = {"kind": "combination", "rule": "union", "parts": parts}
    texts = [("forms", RELEASED, forms()), ("templates", RELEASED, read_labelled(templates))]
    texts += [(path.stem, LOWER_BOUND, read_labelled(path)) for path in sorted(held_out.glob("*.jsonl"))]
    results = {}
    for name, by, lines in texts:
        settings = settings_named(RELEASED) if by == RELEASED else union
        technique = check_settings(AnyTechnique, settings, by).build(None, 1)
        results[name] = {"technique": by, "labels": measured(lines, technique)}
    publish("identifier_recall", "docs/privacy.md", {"texts": results}, table)


def forms() -> Iterator[LabelledLine]:
    """Sentences with one identifier each; the same at every call."""
    fake = Faker("en_US")
    fake.seed_instance(1)
    for label, sentences in DATA["forms"].items():
        for index in range(SENTENCES):
            before, _, after = sentences[index % 3].partition("{}")
            written = VALUES[label](fake)
            span = LabelledSpan(len(before), len(before) + len(written), label)
            yield LabelledLine(before + written + after, (span,), index + 1)


def measured(lines: Iterable[LabelledLine], technique: Any) -> dict[str, dict[str, int]]:
    """Identifiers and those masked whole, by label."""
    gold = list(lines)
    found = list(technique.findings([line.text for line in gold]))
    labels: dict[str, Counter[str]] = {}
    for line in judged_lines(gold, found, LabelMapping({})):
        for span in line.spans:
            labels.setdefault(span.label, Counter()).update(identifiers=1, found=line.all_masked(span.words))
    return {label: dict(counts) for label, counts in sorted(labels.items())}


def table(results: Mapping[str, Any]) -> str:
    """The Markdown table of docs/privacy.md, from the stored numbers."""
    rows = ["| | identifier | marker | every_tagger, new synthetic text | lower bound, held-out text |"]
    rows.append("|---|---|---|---:|---:|")
    texts = results["texts"]
    by = {kind: [text for text in texts.values() if text["technique"] == kind] for kind in (RELEASED, LOWER_BOUND)}
    for letter, (name, marker, labels) in IDENTIFIERS.items():
        synthetic, held_out = (recall(by[kind], labels) for kind in (RELEASED, LOWER_BOUND))
        rows.append(f"| {letter} | {name} | {marker or 'not text: not covered'} | {synthetic} | {held_out} |")
    people = IDENTIFIERS["A"][2]
    names = [f"`{name}` {recall([text], people)}" for name, text in texts.items() if text in by[LOWER_BOUND]]
    return "\n".join(rows) + f"\n\nNames in the held-out texts: {'; '.join(names)}."


def recall(texts: Iterable[Mapping[str, Any]], labels: str) -> str:
    """The share of identifiers of these labels that were found in texts, with its interval."""
    counts = [text["labels"][label] for text in texts for label in labels.split() if label in text["labels"]]
    if not counts:
        return "–"
    identifiers, found = (sum(each[key] for each in counts) for key in ("identifiers", "found"))
    low, high = wilson_interval(found, identifiers) or (0.0, 1.0)
    return f"{found / identifiers:.1%} [{low:.1%}, {high:.1%}] of {identifiers:,}".replace("%", " %")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
