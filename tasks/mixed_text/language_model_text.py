"""Lines that a language model of the user's writes, behind an address that speaks OpenAI's protocol.

Every answer is written into a file of JSON lines as it comes, and is taken from there the next time: with all answers
there nobody is asked, and the same lines come out. What is sent is prompts: those that ship name languages and topics
and nothing else. Prompts of the user's own could be private text; they go to this machine alone unless the user says
that they are public.
"""

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.settings.base import Settings

SHIPPED = Path(__file__).parent / "prompts.txt"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PLACES = ("{first}", "{second}", "{topic}", "{lines}")


class EndpointSettings(Settings):
    """Where a language model answers, and what it is asked."""

    url: str | None = None
    """Address in front of ``/chat/completions``, such as http://127.0.0.1:8080/v1; null: recorded answers alone."""
    model: str = "default"
    """Name of the model, as the endpoint knows it."""
    temperature: float = Field(default=1.0, ge=0, le=2)
    """Temperature of the draws."""
    key_variable: str | None = None
    """Environment variable that holds the key of the endpoint; the key itself stands nowhere."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for an answer."""
    lines: int = Field(default=20, ge=1, le=200)
    """Lines that a prompt asks for."""
    rounds: int = Field(default=1, ge=1)
    """How often each prompt is given."""
    prompts: str | None = None
    """File of your own prompts, in the form of ``tasks/mixed_text/prompts.txt``; null: the 30 that ship."""
    prompts_are_public: bool = False
    """Your own prompts hold no private text, and may go to an address that is not this machine."""

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://none")
        if parts.username or parts.query:
            raise ValueError(
                "an address with a key in it would stand in reports; give the key by endpoint.key_variable"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address; give one such as http://127.0.0.1:8080/v1")
        return url


def prompts_of(settings: EndpointSettings, first: str, second: str) -> list[str]:
    """Each style with each topic, for two languages by name.

    ``ParameterError`` where the user's own would go to another machine; ``CorpusError`` where the file has no style.
    """
    host = urlsplit(settings.url).hostname if settings.url else None
    if settings.prompts and not settings.prompts_are_public and host and host not in _LOOPBACK:
        raise ParameterError(
            f"endpoint.prompts {settings.prompts!r} would be sent to {host!r}; if it holds no private text, give "
            "endpoint.prompts_are_public=true"
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
    """The lines of all answers, those in the file first asked for there.

    ``ModelError`` where the endpoint does not answer as it should, or where there is none and an answer is missing;
    ``CorpusError`` for a file of another form, or of another model's answers.
    """
    known = _recorded(settings, answers)
    record: IO[str] | None = None
    try:
        for number, prompt in product(range(settings.rounds), prompts):
            answer = known.get((number, prompt))
            if answer is None:
                answer = _asked(settings, prompt, number)
                record = record or _opened(answers)
                row = {"round": number, "model": settings.model, "prompt": prompt, "answer": answer}
                record.write(json.dumps(row, ensure_ascii=False) + "\n")
                record.flush()
            yield from filter(None, map(_bare, answer.splitlines()))
    finally:
        if record:
            record.close()


def _opened(path: str) -> IO[str]:
    """To add to, readable for the owner alone: prompts of the user's own may be private."""
    return open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))


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
    from urllib.error import URLError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """The key goes to the address that was given and to no other."""

        def redirect_request(self, *_: object, **__: object) -> None:
            return None

    if settings.url is None:
        raise ModelError(
            "answers to some prompts are not recorded and there is nobody to ask; give endpoint.url, or the settings "
            "that the answers were recorded with"
        )
    body = {
        "model": settings.model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": settings.temperature,
        "seed": number,
    }
    headers = {"Content-Type": "application/json"}
    if settings.key_variable:
        key = os.environ.get(settings.key_variable)
        if not key:
            raise ParameterError(f"endpoint.key_variable {settings.key_variable!r} is not set in the environment")
        headers["Authorization"] = f"Bearer {key}"
    # What goes to this machine goes past a proxy that the environment names.
    opener = build_opener(Stay, *([ProxyHandler({})] if urlsplit(settings.url).hostname in _LOOPBACK else []))
    request = Request(f"{settings.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with opener.open(request, timeout=settings.timeout) as reply:
            answer = json.load(reply)["choices"][0]["message"]["content"]
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise ModelError(f"endpoint {settings.url!r} does not answer: {reason}") from None
    except (ValueError, LookupError, TypeError):
        answer = None
    if not isinstance(answer, str):
        raise ModelError(f"endpoint {settings.url!r} answers in another form than OpenAI's chat completions")
    return answer


def _bare(line: str) -> str:
    """A line of an answer without its number, bullet or speaker's dash, and without quotes round it."""
    line = line.strip()
    head, _, rest = line.partition(" ")
    if head in ("-", "*", "•", "–", "—") or head.rstrip(".):").isdecimal():
        line = rest.strip()
    return line.strip('"“”')
