"""Lines written by a language model of the user's, at an address with OpenAI's protocol.

Every answer is added to a file of JSON lines as it arrives, and is read from there the next time. With all answers in
the file no request is sent, and the lines are the same. Only prompts are sent. The prompts that ship have names of
languages and topics and nothing else. The user's own prompts could be private text, and are sent to this machine only.
"""

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.settings.base import Settings

SHIPPED = Path(__file__).parent / "prompts.txt"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PLACES = ("{first}", "{second}", "{topic}", "{lines}")


class EndpointSettings(Settings):
    """Address of a language model, and its prompts."""

    url: str | None = None
    """Address before ``/chat/completions``, such as http://127.0.0.1:8080/v1; null: recorded answers only."""
    model: str = "default"
    """Name of the model, as the endpoint knows it."""
    temperature: float = Field(default=1.0, ge=0, le=2)
    """Sampling temperature."""
    key_variable: str | None = None
    """Environment variable with the key of the endpoint; the key itself is stored nowhere."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for an answer."""
    lines: int = Field(default=20, ge=1, le=200)
    """Lines that a prompt asks for."""
    rounds: int = Field(default=1, ge=1)
    """How often each prompt is sent."""
    prompts: str | None = None
    """File of your own prompts, in the form of ``tasks/mixed_text/prompts.txt``; null: the 30 that ship."""

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://none")
        if parts.username or parts.query:
            raise ValueError(
                "an address with a key in it would appear in reports; give the key by endpoint.key_variable"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address; give one such as http://127.0.0.1:8080/v1")
        return url


def prompts_of(settings: EndpointSettings, first: str, second: str) -> list[str]:
    """Each style with each topic, for two languages by name.

    Raises ``ParameterError`` if the user's own prompts would go to another machine, ``CorpusError`` without a style.
    """
    host = urlsplit(settings.url).hostname if settings.url else None
    if settings.prompts and host and host not in _LOOPBACK:
        raise ParameterError(
            f"endpoint.prompts {settings.prompts!r} would be sent to {host!r}, and may be private; send your own "
            "prompts to this machine only"
        )
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
    """The lines of all answers; recorded answers are read from the file ``answers``.

    Raises ``ModelError`` if the endpoint fails, or if an answer is missing and no endpoint is given. Raises
    ``CorpusError`` for a file of another form or with another model's answers.
    """
    known = _recorded(settings, answers)
    for number, prompt in product(range(settings.rounds), prompts):
        answer = known.get((number, prompt))
        if answer is None:
            answer = _asked(settings, prompt, number)
            row = {"round": number, "model": settings.model, "prompt": prompt, "answer": answer}
            # Readable for the owner alone: the user's own prompts may be private.
            with open(answers, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as record:
                record.write(json.dumps(row, ensure_ascii=False) + "\n")
        yield from filter(None, map(_bare, answer.splitlines()))


def _recorded(settings: EndpointSettings, path: str) -> dict[tuple[int, str], str]:
    found: dict[tuple[int, str], str] = {}
    for at, line in enumerate(read_lines(path, "answers") if Path(path).exists() else (), start=1):
        try:
            row = read_json_line(line)
            key, model, answer = (row["round"], row["prompt"]), row["model"], row["answer"]
        except (NoJson, KeyError, TypeError):
            raise CorpusError(f"answers {path!r}, line {at}: not written by 'palimpsest generate-mixed'") from None
        if settings.url and model != settings.model:
            raise CorpusError(
                f"answers {path!r}, line {at}: of model {model!r}, and {settings.model!r} is asked; give another file"
            )
        found[key] = answer
    return found


def _asked(settings: EndpointSettings, prompt: str, number: int) -> str:
    import httpx

    if settings.url is None:
        raise ModelError(
            "answers to some prompts are not recorded and endpoint.url is not set; give endpoint.url, or the settings "
            "that the answers were recorded with"
        )
    key = os.environ.get(settings.key_variable) if settings.key_variable else None
    if settings.key_variable and not key:
        raise ParameterError(f"endpoint.key_variable {settings.key_variable!r} is not set in the environment")
    try:
        reply = httpx.post(
            f"{settings.url.rstrip('/')}/chat/completions",
            json={
                "model": settings.model,
                "messages": [{"role": "user", "content": prompt}],
                "temperature": settings.temperature,
                "seed": number,
            },
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings.timeout,
            # Requests to this machine ignore the proxy of the environment.
            trust_env=urlsplit(settings.url).hostname not in _LOOPBACK,
        ).raise_for_status()
        answer = reply.json()["choices"][0]["message"]["content"]
    except httpx.HTTPError as error:
        raise ModelError(f"endpoint {settings.url!r} does not answer: {error or type(error).__name__}") from None
    except (ValueError, LookupError, TypeError):
        answer = None
    if not isinstance(answer, str):
        raise ModelError(f"endpoint {settings.url!r} answers in another form than OpenAI's chat completions")
    return answer


def _bare(line: str) -> str:
    """A line of an answer without its number, bullet, dialogue dash and surrounding quotes."""
    line = line.strip()
    head, _, rest = line.partition(" ")
    if head in ("-", "*", "•", "–", "—") or head.rstrip(".):").isdecimal():
        line = rest.strip()
    return line.strip('"“”')
