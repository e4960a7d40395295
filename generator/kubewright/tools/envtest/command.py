"""``kubewright envtest``: programs for KUBEBUILDER_ASSETS, or a command that runs with them.

Exit codes: that of the command; 0 where the folder was written, 2 where it cannot be.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from apimachinery.server.catalog.options import OptionError, parse_controllers
from kubewright.diagnostics import printable
from kubewright.tools.envtest.assets import AssetsError, write_assets
from kubewright.tools.envtest.kube_apiserver import WARM
from kubewright.tools.envtest.warm import Warm, can_fork

MISUSED = 2
NOT_STARTED = 127
"""What shells answer for a command that is not there."""


def run(options: argparse.Namespace) -> int:
    """Writes the folder, or runs the command with one of its own."""
    if os.name != "posix":
        print(
            "kubewright envtest: error: the programs are shell scripts, for Linux and macOS", file=sys.stderr
        )
        return MISUSED
    command = [word for place, word in enumerate(options.program) if place or word != "--"]
    try:
        parse_controllers(options.controllers)
        words = [f"--controllers={options.controllers}"]
        if bool(command) == bool(options.output):
            raise AssetsError("give --output DIR, or -- COMMAND")
        if command:
            return _run(command, words)
        made = write_assets(options.output, words)
    except (AssetsError, OptionError) as fault:
        print(printable(f"kubewright envtest: error: {fault}"), file=sys.stderr)
        return MISUSED
    if not options.quiet:
        print(
            f"wrote {', '.join(path.name for path in made)}; export KUBEBUILDER_ASSETS={options.output.resolve()}"
        )
    return 0


def _run(command: list[str], words: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="kubewright-envtest-") as text:
        folder = Path(text)
        forking = can_fork()
        write_assets(folder / "bin", words, image=not forking)
        # TEST_ASSET_* go before the folder.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TEST_ASSET_")}
        environment = kept | {"KUBEBUILDER_ASSETS": str(folder / "bin")}
        try:
            if not forking:
                return subprocess.run(command, env=environment, check=False).returncode
            with Warm(folder) as warm:
                return warm.run(command, environment | {WARM: str(warm.path)})
        except (FileNotFoundError, PermissionError) as fault:
            if fault.filename != command[0]:
                raise
            print(printable(f"kubewright envtest: {command[0]}: {fault.strerror}"), file=sys.stderr)
            return NOT_STARTED
