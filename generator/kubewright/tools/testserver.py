"""``kubewright testserver``: a server for the tests of any language, which ends with the program that started it.

Exit codes: 0 ended, 2 for options that cannot be; that of the command where one is given.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from kubewright.diagnostics import printable
from kubewright.tools.arguments import serve as serve_arguments
from kubewright.tools.serve.command import run as serve

LOOKED_SECONDS = 0.5
NOT_STARTED = 127
"""What shells answer for a command that is not there."""


def run(options: argparse.Namespace) -> int:
    """Serves from memory on a free port until it is asked to end, or nobody is left to ask, or a command has ended."""
    command = [word for place, word in enumerate(options.program) if place or word != "--"]
    return _beside(command, options) if command else _serve(options)


def _beside(command: list[str], options: argparse.Namespace) -> int:
    """Runs a command next to a server."""
    with tempfile.TemporaryDirectory(prefix="kubewright-testserver-") as folder:
        kubeconfig = (options.kubeconfig or Path(folder, "kubeconfig")).resolve()
        words = [sys.executable, "-m", "kubewright", "testserver", "--kubeconfig", str(kubeconfig)]
        words += ["--port", str(options.port), "--controllers", options.controllers]
        words += ["--packages", options.packages, "--emulated-version", options.emulated_version]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            try:
                # Its last line: the kubeconfig is there, and nothing is written any more to a pipe that is closed.
                if not any(line.startswith(b"next: ") for line in server.stdout):
                    return server.wait()
                environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
                return subprocess.run(command, env=environment, check=False).returncode
            except (FileNotFoundError, PermissionError) as fault:
                print(printable(f"kubewright testserver: {command[0]}: {fault.strerror}"), file=sys.stderr)
                return NOT_STARTED
            finally:
                server.terminate()


def _serve(options: argparse.Namespace) -> int:
    parent = os.getppid()
    with tempfile.TemporaryDirectory(prefix="kubewright-testserver-") as folder:
        parser = argparse.ArgumentParser()
        serve_arguments.add_arguments(parser)
        given = parser.parse_args(["--storage", "memory://", "--tls", "auto", "--log-level", "warning"])
        given.cert_dir = Path(folder)
        given.kubeconfig = options.kubeconfig or Path("-")
        given.port, given.controllers = options.port, options.controllers
        given.emulated_version, given.packages = options.emulated_version, options.packages
        if not options.stay:
            threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        return serve(given)


def _end_with(parent: int) -> None:
    """Asks this process to end once another one is its parent."""
    while os.getppid() == parent:
        time.sleep(LOOKED_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
