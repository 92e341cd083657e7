from collections import Counter

import pytest

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.errors import ParameterError
from tasks.labelled_text.settings import LABEL_CLASSES as CLASSES_OF_GENERATED_TEXT
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.masking_evaluation.label_classes import LABEL_CLASSES, LabelMapping, label_mapping

KNOWN = {
    "PERSON": "PER person", "LOCATION": "GPE location STREET_ADDRESS", "ORGANISATION": "corporation group",  # WNUT 2017
    "GROUP": "GROUP NRP", "WORK": "creative-work", "MISCELLANEOUS": "product", "IDENTIFIER": "CREDIT_CARD",
    "DATE": "DATE_TIME", None: "nothing",
}  # fmt: skip


@pytest.mark.parametrize(("name", "labels"), KNOWN.items())
def test_labels_of_known_corpora(name, labels):
    assert {label: LabelMapping({}).class_of(label) for label in labels.split()} == dict.fromkeys(labels.split(), name)


def test_every_class_is_its_own_label_and_every_label_has_a_class_that_there_is():
    classes = set(CLASSES) - {MASK}
    assert {name: LABEL_CLASSES.get(name) for name in classes} == {name: name for name in classes}
    assert set(LABEL_CLASSES.values()) <= classes


@pytest.mark.parametrize("others", [ENTITY_CLASSES, CLASSES_OF_GENERATED_TEXT], ids=len)
def test_a_label_has_the_same_class_wherever_it_comes_from(others):
    """A table of corpora that is merged over the others must not say otherwise."""
    said = {label: name for label, name in others.items() if name is not None}
    assert {label: LabelMapping({}).class_of(label) for label in said} == said


def test_the_users_own_mapping_goes_first():
    mapping = label_mapping({"PER": "GROUP", "role": None}, "--label")
    assert (mapping.class_of("PER"), mapping.class_of("role"), mapping.class_of("LOC")) == ("GROUP", None, "LOCATION")
    assert [mapping.is_private(label) for label in ("PER", "role", "unheard")] == [True, False, True]
    labels = Counter({"PER": 2, "role": 1, "unheard": 3})
    assert mapping.in_force(labels) == {"PER": "GROUP", "role": None}
    assert mapping.unmapped(labels) == {"unheard": 3}
    with pytest.raises(ParameterError, match=r"--label\.x: 'PERSN' is no class \(did you mean 'PERSON'\?\)"):
        label_mapping({"x": "PERSN"}, "--label")
