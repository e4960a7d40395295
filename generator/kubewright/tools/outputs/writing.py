"""Files of a tool put into a folder: all or none, and never over what somebody wrote by hand.

The folder keeps ``MANIFEST.sha256`` of what was made (``output.Tree``): only that is replaced, and taken away when it
is made no more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import File
from kubewright.output import Tree, recover

OK, REFUSED, MISUSED = 0, 1, 2


def put(
    files: Sequence[File], options: argparse.Namespace, diagnostics: Diagnostics, *, partial: bool
) -> int:
    """Writes ``files`` into ``options.output`` and says what changed; the exit code. ``partial`` keeps what former runs
    made next to them. Files in the way are errors in ``diagnostics``; nothing is written then. Raises ``OSError``."""
    folder: Path = options.output.resolve()
    if folder == Path.cwd() or folder in Path.cwd().parents:
        print(
            f"--output {options.output}: this folder, or one above it, cannot be exchanged", file=sys.stderr
        )
        return MISUSED
    if folder.exists() and not folder.is_dir():
        print(f"--output {options.output}: not a folder", file=sys.stderr)
        return MISUSED
    if folder.parent.is_dir():
        recover(folder)
    tree = Tree(folder)
    tree.add(files, diagnostics, "output")
    if partial:
        tree.keep_others()
    changes = tree.compare(Diagnostics() if options.replace else diagnostics)
    if diagnostics.has_errors:
        return REFUSED
    if options.check:
        difference = tree.diff(changes)
        print(difference, end="\n" if difference else "")
        return REFUSED if changes else OK
    tree.write(changes)
    for verb, paths in (("wrote", (*changes.added, *changes.changed)), ("removed", changes.removed)):
        for path in paths:
            print(f"{verb} {options.output / path}", file=sys.stderr)
    return OK
