"""Several small files in one: ``-- name --`` lines, each followed by the content of that file."""

from __future__ import annotations

import re
from pathlib import Path

_MARK = re.compile(r"^-- (\S+) --\n", re.MULTILINE)


def split(text: str) -> dict[str, str]:
    """File name → content, in order."""
    pieces = _MARK.split(text)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def join(files: dict[str, str]) -> str:
    """The inverse of ``split``."""
    return "".join(f"-- {name} --\n{content}" for name, content in files.items())


def unpack(files: dict[str, str], folder: Path) -> None:
    """Writes ``files`` below ``folder``."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
