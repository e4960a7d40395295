"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

from apimachinery.server.catalog.options import OptionError


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only its owner may read, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    part.replace(path)


def write_for_option(option: str, path: Path, content: bytes) -> None:
    """Writes a file that an option names, as ``write_private`` does. Raises OptionError."""
    try:
        write_private(path, content)
    except OSError as error:
        raise OptionError(f"{option} {path}: cannot be written: {error.strerror}") from None
