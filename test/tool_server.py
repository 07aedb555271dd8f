"""Runs deplo's command-line tools for lit: a process that has imported one forks a child for each command.

To start Python and import the tool takes 0.3 s, 2 s with PyTorch; a fork takes a hundredth. Each command
still has a process of its own, with the arguments, directory, environment and standard streams of its caller.

    python tool_server.py FD MODULE     serves `MODULE.run` on a listening socket; imports it when first asked
    start(directory, name, module)      starts that, and writes the executable `directory/name` that asks it
"""

import atexit
import gc
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from importlib import import_module
from pathlib import Path

CLIENT = """\
#!{python} -IS
import _socket, marshal, posix, sys
asked = marshal.dumps((posix.getcwd(), sys.argv, posix.environ))
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
streams = b"".join(each.to_bytes(4, sys.byteorder) for each in (0, 1, 2))
rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
server.sendmsg([len(asked).to_bytes(8, "little")], rights)
server.sendall(asked)
answer = server.recv(4)
posix._exit(int.from_bytes(answer, "little") if answer else 125)
"""
"""The executable, which imports nothing that takes time."""


def start(directory: Path, name: str, module: str, environment: dict[str, str]) -> None:
    """Start a server of `module.run` until this process ends, and write the command `directory/name`."""
    address = str(directory / f"{name}.socket")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    arguments = [sys.executable, __file__, str(listener.fileno()), module]
    server = subprocess.Popen(arguments, pass_fds=[listener.fileno()], env=environment)
    listener.close()
    atexit.register(server.kill)
    executable = directory / name
    executable.write_text(CLIENT.format(python=sys.executable, address=address))
    executable.chmod(0o755)


def serve(listener: socket.socket, module: str) -> None:
    """Answer commands for ever, each by a child."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    select.select([listener], [], [])
    tool = preload(module)
    gc.freeze()
    while True:
        caller, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(caller, tool)
        caller.close()


def preload(module: str):
    """Import the tool, and all that it would import later."""
    tool = import_module(module)
    for later in ("deplo.tools.check_each_pass", "deplo.interpreter.promises", "deplo.tools.running"):
        import_module(later)
    if module.endswith(".deplo"):
        import_module("deplo.tools.commands")
    for load in import_module("deplo.passes").get_all_passes().values():
        load()
    return tool


def answer(caller: socket.socket, tool) -> None:
    """Run the command that a caller asks for in a child of its own, and tell the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    header, streams, _, _ = socket.recv_fds(caller, 8, 3)
    (length,) = struct.unpack("<Q", header)
    asked = b""
    while len(asked) < length:
        asked += caller.recv(length - len(asked))
    child = os.fork()
    if child == 0:
        caller.close()
        for stream, number in zip(streams, (0, 1, 2), strict=True):
            os.dup2(stream, number)
            os.close(stream)
        directory, sys.argv, environment = marshal.loads(asked)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update({os.fsdecode(k): os.fsdecode(v) for k, v in environment.items()})
        tool.main()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    caller.sendall((code if code >= 0 else 128 - code).to_bytes(4, "little"))
    os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
