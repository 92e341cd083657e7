"""Facts about the persons of documents, in the form of SPIA (ACL 2026, arXiv:2604.21211).

A facts file has JSON lines, a document each::

    {"text": "...", "subjects": [{"description": "Ada Quill - a baker", "PIIs": [
        {"tag": "OCCUPATION", "keyword": "baker", "certainty": 5, "hardness": 1}]}]}

``description`` says which person is meant. An empty ``keyword`` is no fact. ``hardness`` is from 1 (written in the
text) to 5. Other keys are ignored.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.corpora.words import fold
from tasks.errors import CorpusError

DIRECT = "NAME IDENTIFICATION_NUMBER DRIVER_LICENSE_NUMBER PHONE_NUMBER PASSPORT_NUMBER EMAIL_ADDRESS".split()
"""Attributes that identify a person directly; all others are quasi-identifiers."""


class Fact(BaseModel, strict=True, frozen=True):
    """One attribute of a person."""

    attribute: str = Field(alias="tag", min_length=1)
    keyword: Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
    hardness: int = 0

    @property
    def value(self) -> tuple[str, str]:
        """Attribute and folded keyword: the form in which facts are compared."""
        return self.attribute, fold(self.keyword)


class Person(BaseModel, strict=True, frozen=True):
    """A person of a document."""

    description: str
    facts: Annotated[list[Fact], AfterValidator(lambda facts: [fact for fact in facts if fact.keyword])] = Field(
        alias="PIIs"
    )


class Document(BaseModel, strict=True, frozen=True):
    """A document and its persons; another version of a document has none."""

    text: str
    persons: list[Person] = Field(alias="subjects", default=[])


def facts_of(documents: Iterable[Document]) -> list[Fact]:
    """All facts of all persons."""
    return [fact for document in documents for person in document.persons for fact in person.facts]


def read_documents(path: str | Path) -> list[Document]:
    """The documents; ``CorpusError`` names the first malformed line, without its text."""
    found = []
    for number, line in enumerate(read_lines(path, "documents"), start=1):
        try:
            found.append(Document.model_validate(read_json_line(line)))
        except NoJson as error:
            raise CorpusError(f"{str(path)!r}: line {number} {error}; write one document a line") from None
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"])) or "the document"
            raise CorpusError(f"{str(path)!r}: line {number}: {place}: {problem['msg']}; correct the line") from None
    return found
