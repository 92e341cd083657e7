"""Answers of a language model of the user's, at an address with OpenAI's protocol.

Every answer is added to a file of JSON lines as it arrives, and is read from there the next time. With all answers in
the file no request is sent, and the answers are the same.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.settings.base import Settings

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ChatEndpoint(Settings):
    """Address of a language model."""

    url: str | None = None
    """Address before ``/chat/completions``, such as http://127.0.0.1:8080/v1; null: recorded answers only."""
    model: str = "default"
    """Name of the model, as the endpoint knows it."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature."""
    key_variable: str | None = None
    """Environment variable with the key of the endpoint; the key itself is stored nowhere."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for an answer."""

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


def refuse_elsewhere(endpoint: ChatEndpoint, what: str) -> None:
    """Raise ``ParameterError`` if private prompts, ``what`` in words, would go to another machine."""
    host = urlsplit(endpoint.url).hostname if endpoint.url else None
    if host and host not in _LOOPBACK:
        raise ParameterError(
            f"{what} would be sent to {host!r}, and may be private; send your own prompts to this machine only"
        )


def answers_to(endpoint: ChatEndpoint, prompts: Iterable[tuple[int, str]], record: str) -> Iterator[str]:
    """The answer to each prompt, with its seed; recorded answers are read from the file ``record``.

    Raises ``ModelError`` if the endpoint fails, or if an answer is missing and no endpoint is given. Raises
    ``CorpusError`` for a file of another form or with another model's answers.
    """
    known = _recorded(endpoint, record)
    for number, prompt in prompts:
        answer = known.get((number, prompt))
        if answer is None:
            answer = known[number, prompt] = _asked(endpoint, prompt, number)
            row = {"round": number, "model": endpoint.model, "prompt": prompt, "answer": answer}
            # Readable for the owner alone: the user's own prompts may be private.
            with open(record, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        yield answer


def _recorded(endpoint: ChatEndpoint, path: str) -> dict[tuple[int, str], str]:
    found: dict[tuple[int, str], str] = {}
    for at, line in enumerate(read_lines(path, "answers") if Path(path).exists() else (), start=1):
        try:
            row = read_json_line(line)
            key, model, answer = (row["round"], row["prompt"]), row["model"], row["answer"]
        except (NoJson, KeyError, TypeError):
            raise CorpusError(f"answers {path!r}, line {at}: not written by palimpsest; give another file") from None
        if endpoint.url and model != endpoint.model:
            raise CorpusError(
                f"answers {path!r}, line {at}: of model {model!r}, and {endpoint.model!r} is asked; give another file"
            )
        found[key] = answer
    return found


def _asked(endpoint: ChatEndpoint, prompt: str, number: int) -> str:
    import httpx

    if endpoint.url is None:
        raise ModelError(
            "answers to some prompts are not recorded and endpoint.url is not set; give endpoint.url, or the settings "
            "that the answers were recorded with"
        )
    key = os.environ.get(endpoint.key_variable) if endpoint.key_variable else None
    if endpoint.key_variable and not key:
        raise ParameterError(f"endpoint.key_variable {endpoint.key_variable!r} is not set in the environment")
    try:
        reply = httpx.post(
            f"{endpoint.url.rstrip('/')}/chat/completions",
            json={
                "model": endpoint.model,
                "messages": [{"role": "user", "content": prompt}],
                "temperature": endpoint.temperature,
                "seed": number,
            },
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=endpoint.timeout,
            # Requests to this machine ignore the proxy of the environment.
            trust_env=urlsplit(endpoint.url).hostname not in _LOOPBACK,
        ).raise_for_status()
        answer = reply.json()["choices"][0]["message"]["content"]
    except httpx.HTTPError as error:
        said = (str(error) or type(error).__name__).partition("\n")[0]
        raise ModelError(
            f"endpoint {endpoint.url!r} does not answer: {said}; start it and run the same again, which goes on after "
            "the recorded answers"
        ) from None
    except (ValueError, LookupError, TypeError):
        answer = None
    if not isinstance(answer, str):
        raise ModelError(f"endpoint {endpoint.url!r} answers in another form than OpenAI's chat completions")
    return answer
