"""Facts about invented persons: rates and k computed by hand, and attackers."""

import pytest
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.persons.attackers import frequency, language_model, verbatim
from tasks.persons.facts import Document
from tasks.persons.questions import LONGEST, passage_about, questions
from tasks.persons.risk import collective, individual, measured, sizes


def person(description, **facts):
    found = [{"tag": tag, "keyword": keyword, "certainty": 5, "hardness": 1} for tag, keyword in facts.items()]
    return {"description": description, "PIIs": found}


def document(text, *persons):
    return Document.model_validate({"text": text, "subjects": list(persons)})


ADA, OTTO = "Ada Quill, a baker of Ulm. ", "Otto Zwick is a baker who lives in Graz. "
DOCUMENTS = [
    document(
        ADA + OTTO,
        person("Ada Quill", NAME="Ada Quill", OCCUPATION="Baker", LOCATION="Ulm / Germany", AGE=""),
        person("Otto Zwick", NAME="Otto Zwick", OCCUPATION="Baker", LOCATION="Graz / Austria"),
    ),
    document("Nobody is here."),
    document("Ida Stern, pilot", person("Ida Stern", NAME="Ida Stern", OCCUPATION="Pilot"), person("Someone")),
]


def asked_of(documents, texts=None, most=20, seed=1):
    texts = [each.text for each in documents] if texts is None else texts
    return questions(documents, texts, range(len(documents)), most, seed)


def names(attacker, asked, documents=DOCUMENTS, model=None):
    return [one.answer in places for one, places in zip(asked, attacker(asked, documents, model), strict=True)]


def test_rates_and_k_are_those_by_hand():
    asked = asked_of(DOCUMENTS)
    assert [(one.document, one.person, one.fact.attribute) for one in asked] == [
        *((0, number, name) for number in (0, 1) for name in ("NAME", "OCCUPATION", "LOCATION")),
        *((2, 0, name) for name in ("NAME", "OCCUPATION")),
    ]
    answers = list(zip(asked, [True, True, False, False, True, True, False, False], strict=True))
    assert collective(answers).value == pytest.approx(4 / 8)
    assert individual(answers).value == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    # Ada: two bakers; a name is no quasi-identifier. Otto: the only baker of Graz. Ida: nothing, so all four persons.
    assert sizes(answers, DOCUMENTS) == [2, 1, 4]
    named = [{one.answer} if hit else set() for one, hit in answers]
    found = measured(asked, named, [set()] * len(asked), DOCUMENTS)
    assert (found["cpr"], found["cpr_blind"], found["cpr_places"]) == (0.5, 1.0, 8)
    assert (found["persons"], found["alone"], found["k_median"]) == (3, 1, 2)
    assert found["by_attribute"]["LOCATION"]["cpr"] == 0.5
    assert found["cpr_chance"] == pytest.approx(1 - (3 / 3 + 3 / 2 + 2 / 2) / 8)


def test_candidates_depend_on_the_seed_alone_and_have_the_answer_once():
    documents = [document("x", person("", NAME=f"Person {number}")) for number in range(40)]
    asked, again, other = asked_of(documents), asked_of(documents, ["y"] * 40), asked_of(documents, seed=2)
    assert [one.candidates for one in asked] == [one.candidates for one in again]
    assert [one.candidates for one in asked] != [one.candidates for one in other]
    assert {len(set(one.candidates)) for one in asked} == {20}
    assert [one.candidates[one.answer] for one in asked] == [f"Person {number}" for number in range(40)]
    assert len({one.answer for one in asked}) > 10


@pytest.mark.parametrize(
    ("keyword", "text", "found"),
    [
        ("Ada Quill", "QUILL alone is no name", False),
        ("Ulm / Germany", "somewhere in ULM", True),
        ("+61 (5) 913-1851", "call 615 913 1851 now", True),
        ("יעל כהן", "היום פגשתי את יעל כהן.", True),
        ("محمد", "ذهب [MASK] إلى السوق", False),
    ],
)
def test_verbatim_finds_facts_that_stand_in_the_text(keyword, text, found):
    attribute = "LOCATION" if "/" in keyword else "NAME"
    assert names(verbatim, asked_of([document(text, person("", **{attribute: keyword}))])) == [found]


def test_frequency_knows_other_documents_alone():
    documents = [document("", person("", OCCUPATION=name)) for name in ("baker", "baker", "pilot", "Baker")]
    assert names(frequency, asked_of(documents), documents) == [True, True, False, True]


def test_a_passage_has_the_sentences_about_the_person():
    rain = "Rain fell on the mat and on the cat all day. "
    text = rain * 30 + "Mr. Otto Zwick lives in Graz. " + rain * 30 + "He bakes."
    passage = passage_about("Otto Zwick - lives in Graz", text)
    assert passage == rain * 4 + "Mr. Otto Zwick lives in Graz. He bakes."
    assert len(passage_about("Otto", " ".join(["Otto", *map(str, range(999))])).split()) == LONGEST


def test_the_language_model_ranks_by_passage_minus_half_of_the_prior(tmp_path):
    from tasks.language_model.causal_lm.folder import load_for_scoring

    tokenizer = causal_tokenizer("The name of this person is Tom Rome Paris cat dog")
    model, expected = load_for_scoring(save(random_llama(tokenizer), tokenizer, tmp_path)), []
    documents = [document(f"Tom {value}", person("Tom", NAME=value)) for value in ("Rome", "Paris", "cat", "dog")]
    asked = asked_of(documents)
    for one in asked:
        answers = [("The", "name", "of", "this", "person", "is", value) for value in one.candidates]
        (read,), (alone,) = (
            model.score_sentences([[(*before, *each) for each in answers]]) for before in (one.passage.split(), ())
        )
        expected.append({int((read - alone / 2).argmax())})
    assert language_model(asked, documents, model) == expected
