"""All files of a scaffold or none: new ones never take another's place, edited ones are exchanged whole.

Everything is first written to temporary files next to the targets. New files are then linked into place, which fails
where something stands; edited ones are renamed over the text they were made of, and what goes is deleted last. A fault
on the way undoes what was done.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics, printable
from kubewright.source.text import parse_documents


class RefusedError(Exception):
    """Why nothing was written, with the exit code: 1 something is in the way, 2 the input cannot be used."""

    def __init__(self, message: str, hint: str = "", code: int = 2) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        said = printable(str(self.args[0]))
        return f"{said}\n  hint: {printable(self.hint)}" if self.hint else said


@dataclass(slots=True)
class FilePlan:
    """What to write: ``new`` text by path, ``edits``: path to (text it was made of, text it becomes), and ``gone``:
    path to the text it has."""

    new: dict[Path, str] = field(default_factory=dict)
    edits: dict[Path, tuple[str, str]] = field(default_factory=dict)
    gone: dict[Path, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def edit(self, path: Path, before: str, after: str) -> None:
        """Adds an edit, or goes on with one that is there; nothing where the text stays as it is."""
        first = self.edits[path][0] if path in self.edits else before
        if first != after:
            self.edits[path] = (first, after)

    def delete(self, path: Path) -> None:
        """Adds the deletion of a file, whatever edits it had."""
        self.gone[path] = self.edits.pop(path)[0] if path in self.edits else path.read_bytes().decode()

    def current(self, path: Path) -> str:
        """The text that a file has after the edits so far; empty for one that goes."""
        if path in self.edits:
            return self.edits[path][1]
        return "" if path in self.gone else path.read_bytes().decode()

    def write(self) -> None:
        """Writes everything. Raises ``RefusedError`` (code 1) before anything is written if a new file exists or an
        edited one changed meanwhile, ``OSError`` with everything undone if the machine refuses."""
        present = [path for path in self.new if os.path.lexists(path)]
        if present:
            raise RefusedError(
                "already exists: " + ", ".join(map(str, present)),
                "nothing was written; scaffold never overwrites files",
                1,
            )
        texts = {path: before for path, (before, _) in self.edits.items()} | self.gone
        for path, before in texts.items():
            if path.read_bytes() != before.encode():
                raise RefusedError(f"{path} changed while the command ran", "run the command again", 1)
        folders: list[Path] = []
        staged: list[tuple[Path, Path]] = []
        done: list[Path] = []
        exchanged: list[Path] = []
        deleted: list[Path] = []
        try:
            _make_folders(self.new, folders)
            texts = self.new | {path: after for path, (_, after) in self.edits.items()}
            for path, text in texts.items():
                staged.append((_stage(path, text), path))
            for temporary, path in staged:
                if path in self.new:
                    os.link(temporary, path)
                    done.append(path)
            for temporary, path in staged:
                if path in self.edits:
                    temporary.replace(path)
                    exchanged.append(path)
            for path in self.gone:
                path.unlink()
                deleted.append(path)
        except BaseException as fault:
            for path in deleted:
                path.write_bytes(self.gone[path].encode())
            for path in exchanged:
                path.write_bytes(self.edits[path][0].encode())
            for path in done:
                path.unlink(missing_ok=True)
            _clear(staged)
            for folder in reversed(folders):
                with suppress(OSError):  # somebody else put something there meanwhile
                    folder.rmdir()
            if isinstance(fault, FileExistsError):
                raise RefusedError(f"already exists: {fault.filename2}", "nothing was written", 1) from None
            raise
        _clear(staged)


def _stage(path: Path, text: str) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=".scaffold-", dir=path.parent)
    staged = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        staged.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
    except BaseException:
        staged.unlink()
        raise
    return staged


def _clear(staged: list[tuple[Path, Path]]) -> None:
    for temporary, _ in staged:
        temporary.unlink(missing_ok=True)


def _make_folders(paths: dict[Path, str], made: list[Path]) -> None:
    """Makes the folders of the files; ``made`` gets those that were missing, outer ones first."""
    for parent in dict.fromkeys(path.parent for path in paths):
        missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            made.append(folder)


def says(text: str, wanted: Any) -> bool:
    """Whether an edited text is one document and holds just this value."""
    documents = parse_documents(text.encode(), "", Diagnostics())
    return [document.value for document in documents] == [wanted]
