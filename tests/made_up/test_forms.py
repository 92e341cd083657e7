import random

from tasks.labelled_text.slots import SLOT_LABELS
from tasks.made_up.made_up import MadeUp, all_values
from tasks.made_up.thing import Thing
from tasks.made_up.writing import written


def test_every_form_can_be_filled_in_every_part():
    for part in ("train", "test"):
        made_up = MadeUp(part)
        for pool in made_up.forms.values():
            for form in pool.values:
                value = written(form, random.Random(form)).format_map(Thing(made_up, random.Random(form)))
                assert value, form
                assert not set("{}~#") & set(value.replace("Apt. #", "")), form


def test_every_kind_of_slot_has_values():
    for kind in SLOT_LABELS:
        assert Thing(all_values(), random.Random(1)).make(kind.lower().removesuffix("_female").removesuffix("_male"))


def test_parts_of_one_thing_agree():
    for seed in range(50):
        thing = Thing(all_values(), random.Random(seed), female=seed % 2 == 0)
        assert thing.make("full_name") == f"{thing['first']} {thing['last']}"
        assert thing.make("pronoun_subject") == ("she" if seed % 2 == 0 else "he")
        assert thing["day"] is thing["day"]
        assert thing.make("initials") == f"{thing['first'][0]}.{thing['last'][0]}."
