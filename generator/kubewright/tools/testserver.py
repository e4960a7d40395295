"""``kubewright testserver``: a server for the tests of any language, which ends with the program that started it.

Exit codes: 0 ended, 2 for options that cannot be.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

from kubewright.tools.arguments import serve as serve_arguments
from kubewright.tools.serve.command import run as serve

LOOKED_SECONDS = 0.5


def run(options: argparse.Namespace) -> int:
    """Serves from memory on a free port until it is asked to end, or nobody is left to ask."""
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
