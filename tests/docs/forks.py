"""`stacks` without its start: each command is forked off a process that has the program loaded but has run nothing.

`python -m docs.forks SOCKET` is that process; `CLIENT` is the program that stands in for `stacks` on the PATH. Saves
more than a second a command. Pages that activate `.venv` get the real one instead, which comes first on their PATH, and
so does a command that runs on until somebody ends it.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path

from app import bootstrap

CLIENT = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] and sys.argv[1] in {runs_on!r}:
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    asked = json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}})
    socket.send_fds(line, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(asked.encode())
    sys.exit((line.recv(1) or b"\\x7d")[0])
"""

RUNS_ON = ["serve", "worker", "mcp", "demo"]


def serve(address: str) -> None:
    """Carry out commands until the process is ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forked ones: each answers its own client
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while True:
            line, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _carry_out(line)
                os._exit(0)  # this process is a copy: what the original would tidy up at its end is not its own
            line.close()


def _carry_out(line: socket.socket) -> None:
    """Become the command that a client asks for, with its streams, environment and directory; tell it the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as incoming:
        asked = json.loads(incoming.read(int.from_bytes(size, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.argv = ["stacks", *asked["argv"]]
    code = 125  # what ended without saying how
    try:
        bootstrap.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(bytes([code]))


def client(folder: Path, address: Path) -> Path:
    """Write the stand-in for `stacks` into `folder`, which is returned."""
    folder.mkdir()
    program = folder / "stacks"
    real = str(Path(sys.executable).with_name("stacks"))
    program.write_text(CLIENT.format(python=sys.executable, address=str(address), real=real, runs_on=RUNS_ON))
    program.chmod(0o755)
    return folder


if __name__ == "__main__":
    serve(sys.argv[1])
