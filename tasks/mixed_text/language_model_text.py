"""Lines written by a language model of the user's, at an address with OpenAI's protocol.

Only prompts are sent. The prompts that ship have names of languages and topics and nothing else. The user's own prompts
could be private text, and are sent to this machine only.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from pydantic import Field

from tasks.chat_endpoint import ChatEndpoint, answers_to, refuse_elsewhere
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError

SHIPPED = Path(__file__).parent / "prompts.txt"
_PLACES = ("{first}", "{second}", "{topic}", "{lines}")


class EndpointSettings(ChatEndpoint):
    """Address of a language model, and its prompts."""

    temperature: float = Field(default=1.0, ge=0, le=2)
    """Sampling temperature."""
    lines: int = Field(default=20, ge=1, le=200)
    """Lines that a prompt asks for."""
    rounds: int = Field(default=1, ge=1)
    """How often each prompt is sent."""
    prompts: str | None = None
    """File of your own prompts, in the form of ``tasks/mixed_text/prompts.txt``; null: the 30 that ship."""


def prompts_of(settings: EndpointSettings, first: str, second: str) -> list[str]:
    """Each style with each topic, for two languages by name.

    Raises ``ParameterError`` if the user's own prompts would go to another machine, ``CorpusError`` without a style.
    """
    if settings.prompts:
        refuse_elsewhere(settings, f"endpoint.prompts {settings.prompts!r}")
    found: dict[str, list[str]] = {"style": [], "topic": []}
    path = settings.prompts or SHIPPED
    for line in read_lines(path, "prompts"):
        name, colon, text = line.partition(":")
        if colon and name in found:
            found[name].append(text.strip())
    if not found["style"]:
        raise CorpusError(
            f"prompts {str(path)!r} have no line 'style: ...'; {SHIPPED.name} of palimpsest shows the form"
        )
    filled = []
    for style, topic in product(found["style"], found["topic"] or [""]):
        for place, value in zip(_PLACES, (first, second, topic, str(settings.lines)), strict=True):
            style = style.replace(place, value)
        filled.append(style)
    return filled


def written_lines(settings: EndpointSettings, prompts: list[str], answers: str) -> Iterator[str]:
    """The lines of all answers; recorded answers are read from the file ``answers``, with the errors of
    ``answers_to``."""
    for answer in answers_to(settings, product(range(settings.rounds), prompts), answers):
        yield from filter(None, map(_bare, answer.splitlines()))


def _bare(line: str) -> str:
    """A line of an answer without its number, bullet, dialogue dash and surrounding quotes."""
    line = line.strip()
    head, _, rest = line.partition(" ")
    if head in ("-", "*", "•", "–", "—") or head.rstrip(".):").isdecimal():
        line = rest.strip()
    return line.strip('"“”')
