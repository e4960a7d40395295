"""``kubewright`` for shells, without the start of a Python that has all to import: half of what most commands cost.

A *stem* process imports the commands once. The script on the PATH hands it arguments, folder, environment and the
three standard files over a socket; a fork of the stem then runs the command as ``python -m kubewright`` would, and the
script ends with its exit code, and a command whose script was ended is ended too. That each command finds its imports
alone is ``test_extras``' to ask.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Self

STEM = """
import importlib, json, os, runpy, signal, socket, sys, threading
from kubewright.cli import COMMANDS
for command in COMMANDS.values():
    importlib.import_module(command.module)
importlib.import_module("apimachinery.server.process")
given = [*filter(None, os.environ["PYTHONPATH"].split(os.pathsep))]
own = [path for path in sys.path if path and path not in given]
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(8)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
while True:
    wire, _ = server.accept()
    if os.fork():
        wire.close()
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    server.close()
    said, files, _, _ = socket.recv_fds(wire, 1 << 20, 3)
    words, folder, environment = json.loads(said)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["kubewright", *words]
    sys.path[:] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *own]
    threading.Thread(target=lambda: wire.recv(1) or os.kill(os.getpid(), signal.SIGTERM), daemon=True).start()
    code = 1
    try:
        runpy.run_module("kubewright", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for file in (sys.stdout, sys.stderr):
        file.flush()
    wire.send(bytes([code]))
    os._exit(code)
"""
SCRIPT = """\
import json, os, socket, sys
wire = socket.socket(socket.AF_UNIX)
wire.connect(sys.argv[1])
said = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(wire, [said], [0, 1, 2])
code = wire.recv(1)
sys.exit(code[0] if code else "kubewright was killed")
"""


class Stem:
    """The process that is forked, for one environment: ``search`` alone, or with what is installed here. Ends with its
    ``with`` block."""

    def __init__(self, search: str, folder: Path, *, alone: bool = True) -> None:
        self._address = folder / "stem"
        self._script = folder / "kubewright.py"
        self._script.write_text(SCRIPT)
        found = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [sys.executable, *["-S"] * alone, "-c", STEM, self._address],
            env={**found, "PYTHONPATH": search},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    @property
    def words(self) -> list[str]:
        """The beginning of a command that runs ``kubewright``."""
        return [sys.executable, "-I", "-S", str(self._script), str(self._address)]

    def command(self) -> str:
        """The same for a shell."""
        return shlex.join(self.words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self._process.kill()
        self._process.communicate()
