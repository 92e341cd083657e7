"""Messages between a process that wants a command run and one that runs it, over a private Unix socket.

A message is the command's arguments, folder and environment, with its three standard files. The answer is its exit
status, negative for a signal. Who hangs up ends the command.

As a program, ``python -IS asking.py SOCKET COMMAND…``, it has a command run elsewhere and ends as that does. It imports
only what starts in some hundredths of a second.
"""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

NUMBER = struct.Struct("!i")


def ask(
    address: str, arguments: Sequence[str], folder: str, environment: Mapping[str, str], files: Sequence[int]
) -> socket.socket:
    """The connection of a new request; further ``files`` after the standard ones stay open in the command."""
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(address)
        message = json.dumps([list(arguments), folder, dict(environment)]).encode()
        socket.send_fds(line, [NUMBER.pack(len(message))], files)
        line.sendall(message)
    except OSError:
        line.close()
        raise
    return line


def receive(line: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    """Arguments, folder, environment and files of a request; ``EOFError`` if the other side has gone."""
    head, files, _, _ = socket.recv_fds(line, NUMBER.size, 8)
    if len(head) == NUMBER.size:
        (length,) = NUMBER.unpack(head)
        text = line.recv(length, socket.MSG_WAITALL)
        if len(text) == length:
            arguments, folder, environment = json.loads(text)
            return arguments, folder, environment, files
    for file in files:
        os.close(file)
    raise EOFError


def status_from(line: socket.socket) -> int | None:
    """Wait for the command's exit status; ``None`` if the other side has gone."""
    with line:
        try:
            answer = line.recv(NUMBER.size, socket.MSG_WAITALL)
        except OSError:
            return None
    return int(NUMBER.unpack(answer)[0]) if len(answer) == NUMBER.size else None


def hang_up(line: socket.socket) -> None:
    """End the command and what it has started: the rest of it is killed after some seconds. Returns at once."""
    try:
        line.shutdown(socket.SHUT_WR)
    except OSError:  # it has ended
        return


def main(address: str, *arguments: str) -> int:
    """Have the command run with this process's folder, environment and files; return its exit status."""
    try:
        line = ask(address, arguments, os.getcwd(), os.environ, [0, 1, 2])
    except OSError:
        print("palimpsest: error: the process that runs commands of stages was killed; run it again", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: hang_up(line))
    status = status_from(line)
    if status is None:
        status = -signal.SIGKILL
    if status < 0:
        if status != -signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
