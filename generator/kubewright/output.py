"""Putting a generated package on disk: all of it or nothing.

- Each package folder holds ``MANIFEST.sha256``, the hash of every file that was generated into it, in the form
  ``sha256sum -c`` reads. A file named there and no longer produced is removed. A file not named there was
  written by hand: it is kept, and never overwritten.
- A changed package is built whole in a staging folder next to it, then exchanged with it in one step
  (``renameat2(RENAME_EXCHANGE)`` on Linux, two renames elsewhere). A run that dies leaves the old tree, and
  at most a staging folder that the next run clears away.
"""

from __future__ import annotations

import ctypes
import difflib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import File
from kubewright.location import Location

MANIFEST = "MANIFEST.sha256"
HOOKS = "hooks.py"
"""Written by hand next to the generated modules of a group-version."""
_TABLE = re.compile(rb"^(HOOKS|CONVERSIONS)\b", re.MULTILINE)
_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between a folder and what should be in it: paths relative to it, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(slots=True)
class Tree:
    """The wanted content of one package folder."""

    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, files: Iterable[File], diagnostics: Diagnostics, emitter: str) -> None:
        """Takes the files of one emitter. A path twice, or one that leaves the folder, is an error."""
        for file in files:
            path = PurePosixPath(file.path)
            # An emitter must not write outside of its package, nor over the manifest.
            if path.is_absolute() or ".." in path.parts or str(path) != file.path or file.path == MANIFEST:
                diagnostics.error(
                    "K402", f"emitter {emitter} wrote to {file.path!r}", Location(str(self.folder))
                )
            elif file.path in self.files:
                diagnostics.error(
                    "K402", f"emitter {emitter} wrote {file.path} a second time", Location(str(self.folder))
                )
            else:
                self.files[file.path] = file.content.encode("utf-8")

    def keep_others(self) -> None:
        """Wants every file of the manifest as it is, unless it is wanted otherwise: for partial runs."""
        for path in read_manifest(self.folder).keys() - self.files.keys():
            content = _read(self.folder / path)
            if content is not None:
                self.files[path] = content

    def manifest(self) -> bytes:
        """The manifest of the wanted files."""
        lines = [f"{_hash(content)}  {path}\n" for path, content in sorted(self.files.items())]
        return "".join(lines).encode()

    def compare(self, diagnostics: Diagnostics) -> Changes:
        """What would change. A hand-written file in the way of a generated one is an error."""
        known = read_manifest(self.folder)
        added, changed, unchanged = [], [], 0
        for path, content in sorted(self.files.items()):
            present = _read(self.folder / path)
            # Compared by content: a file that is touched but equal is left alone.
            if present == content:
                unchanged += 1
            elif present is None:
                added.append(path)
            elif path in known:
                changed.append(path)
            # Not in the manifest, so somebody wrote it by hand.
            else:
                diagnostics.error(
                    "K403",
                    f"{path} is in the way: it was not generated",
                    Location(str(self.folder / path)),
                    "move it, or give the package another name",
                )
        self._orphans(diagnostics)
        removed = sorted(path for path in known if path not in self.files and (self.folder / path).is_file())
        # The files may be right while the manifest is missing or old.
        if not (added or changed or removed) and _read(self.folder / MANIFEST) != self.manifest():
            (changed if known else added).append(MANIFEST)
        return Changes(tuple(added), tuple(changed), tuple(removed), unchanged)

    def _orphans(self, diagnostics: Diagnostics) -> None:
        """Adds an error for each ``hooks.py`` of a group-version that is not made any more: nobody would call it."""
        wanted = {path.partition("/")[0] for path in self.files}
        for path in sorted(self.folder.glob(f"*/{HOOKS}")):
            # A hooks.py without either table has nothing that could be lost.
            if path.parent.name not in wanted and _TABLE.search(_read(path) or b""):
                diagnostics.error(
                    "K405",
                    f"the hooks of {path.parent.name} belong to no version that is generated",
                    Location(str(path)),
                    "move what is still needed to the hooks.py of another version, then delete the file",
                )

    def diff(self, changes: Changes, limit: int = 400) -> str:
        """A unified diff from disk to wanted, at most ``limit`` lines."""
        lines: list[str] = []
        for path in sorted({*changes.added, *changes.changed, *changes.removed}):
            if path == MANIFEST:
                continue
            old = (_read(self.folder / path) or b"").decode("utf-8", "replace").splitlines()
            new = self.files.get(path, b"").decode("utf-8", "replace").splitlines()
            name = f"{self.folder.name}/{path}"
            lines += difflib.unified_diff(
                old,
                new,
                name if path not in changes.added else "/dev/null",
                name if path not in changes.removed else "/dev/null",
                lineterm="",
            )
            if len(lines) > limit:
                more = len(changes.added) + len(changes.changed) + len(changes.removed)
                lines = [*lines[:limit], f"… ({more} files differ)"]
                break
        return "\n".join(lines)

    def write(self, changes: Changes) -> None:
        """Makes the folder what it should be, in one step. Raises ``OSError`` where the disk refuses."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        # What a killed run has left may occupy the names that are needed now.
        recover(self.folder)
        staging = _staging(self.folder)
        try:
            self._stage(staging)
            if self.folder.exists():
                _exchange(staging, self.folder)
            else:
                staging.rename(self.folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _stage(self, staging: Path) -> None:
        generated = read_manifest(self.folder).keys() | self.files.keys() | {MANIFEST}
        for path, content in self.files.items():
            target = staging / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        for path in _paths_below(self.folder):
            # Hand-written files move along with the exchange.
            if path not in generated:
                target = staging / path
                target.parent.mkdir(parents=True, exist_ok=True)
                _link_or_copy(self.folder / path, target)
        (staging / MANIFEST).write_bytes(self.manifest())


def read_manifest(folder: Path) -> dict[str, str]:
    """Path → hash of what was generated into ``folder``; empty where nothing was. Lines that are not entries
    of ours (a merge conflict, an absolute path) are passed over."""
    content = _read(folder / MANIFEST)
    entries = {}
    for line in (content or b"").decode("utf-8", "replace").splitlines():
        digest, separator, path = line.partition("  ")
        pure = PurePosixPath(path)
        if separator and len(digest) == 64 and not pure.is_absolute() and ".." not in pure.parts:
            entries[path] = digest
    return entries


def is_intact(folder: Path) -> bool:
    """Whether every file of the manifest is there with its hash."""
    entries = read_manifest(folder)
    return bool(entries) and all(
        (content := _read(folder / path)) is not None and _hash(content) == digest
        for path, digest in entries.items()
    )


def recover(folder: Path) -> None:
    """Clears away what interrupted runs left next to ``folder``, and puts the old tree back if it was moved."""
    # The old tree was moved aside, and the new one had not come yet.
    for left in sorted(folder.parent.glob(f".{folder.name}.*.old")):
        if not folder.exists():
            left.rename(folder)
        else:
            shutil.rmtree(left, ignore_errors=True)
    for left in folder.parent.glob(f".{folder.name}.*.new"):
        owner = left.name.split(".")[-2]
        # Another run may be writing at this moment.
        if not owner.isdigit() or not _is_running(int(owner)):
            shutil.rmtree(left, ignore_errors=True)


def _staging(folder: Path) -> Path:
    staging = folder.parent / f".{folder.name}.{os.getpid()}.new"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    return staging


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":  # signal 0 is Ctrl+C there: it must not be sent to ask. What is left stays
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _exchange(staging: Path, folder: Path) -> None:
    """Swaps two folders; afterwards ``staging`` holds the old tree."""
    at_fdcwd, rename_exchange = -100, 2
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if renameat2 is not None:
        arguments = (at_fdcwd, os.fsencode(staging), at_fdcwd, os.fsencode(folder), rename_exchange)
        # Fails on file systems that cannot exchange; two renames follow then.
        if renameat2(*arguments) == 0:
            return
    aside = staging.with_suffix(".old")
    folder.rename(aside)
    staging.rename(folder)
    shutil.rmtree(aside, ignore_errors=True)


def _paths_below(folder: Path) -> Iterable[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _CACHES)
        for name in sorted(files):
            yield Path(root, name).relative_to(folder).as_posix()


def _link_or_copy(source: Path, target: Path) -> None:
    # Another file system, or one without hard links.
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
