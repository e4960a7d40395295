"""Runs a sub-command in this process."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from kubewright import cli


def kubewright(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    given = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.main([*map(str, arguments)])
    finally:
        sys.stdin = given
    return code, out.getvalue(), err.getvalue()
