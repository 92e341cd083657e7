from collections import Counter

import pytest

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.errors import ParameterError
from tasks.labelled_text.settings import LABEL_CLASSES as CLASSES_OF_GENERATED_TEXT
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.masking_evaluation.label_classes import LABEL_CLASSES, LabelMapping, label_mapping

OF_CORPORA = {
    "PER": "PERSON", "person": "PERSON", "location": "LOCATION", "corporation": "ORGANISATION",
    "group": "ORGANISATION", "creative-work": "WORK", "product": "MISCELLANEOUS", "nothing": None,
}  # fmt: skip
"""CoNLL 2003 and WNUT 2017."""


@pytest.mark.parametrize(
    "said",
    [OF_CORPORA, ENTITY_CLASSES, CLASSES_OF_GENERATED_TEXT, {name: name for name in CLASSES if name != MASK}],
    ids=["corpora", "taggers", "generated text", "classes"],
)
def test_a_label_has_the_same_class_wherever_it_comes_from(said):
    of_gold = LabelMapping({})
    known = {label: name for label, name in said.items() if name is not None or label == "nothing"}
    assert {label: of_gold.class_of(label) for label in known} == known
    assert set(LABEL_CLASSES.values()) <= set(CLASSES) - {MASK}


def test_the_users_own_mapping_goes_first():
    mapping = label_mapping({"PER": "GROUP", "role": None}, "--label")
    assert (mapping.class_of("PER"), mapping.class_of("role"), mapping.class_of("LOC")) == ("GROUP", None, "LOCATION")
    assert [mapping.is_private(label) for label in ("PER", "role", "unheard")] == [True, False, True]
    labels = Counter({"PER": 2, "role": 1, "unheard": 3})
    assert mapping.in_force(labels) == {"PER": "GROUP", "role": None}
    assert mapping.unmapped(labels) == {"unheard": 3}
    with pytest.raises(ParameterError, match=r"--label\.x: 'PERSN' is no class \(did you mean 'PERSON'\?\)"):
        label_mapping({"x": "PERSN"}, "--label")
