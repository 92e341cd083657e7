"""A chat model on this machine that speaks OpenAI's protocol, for commands that ask one."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace


@contextmanager
def chat_server() -> Iterator[SimpleNamespace]:
    """Its ``url``, what was ``asked`` as (path, authorization, body), and ``answer`` of a prompt, which may be set:
    an answer of ``None`` is a failure."""
    chat = SimpleNamespace(asked=[], answer=lambda prompt: "1")

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat.asked.append((self.path, self.headers.get("Authorization"), body))
            answer = chat.answer(body["messages"][0]["content"])
            self.send_response(200 if answer is not None else 503)
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [{"message": {"content": answer}}]}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        chat.url = f"http://127.0.0.1:{server.server_port}/v1"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield chat
        server.shutdown()
