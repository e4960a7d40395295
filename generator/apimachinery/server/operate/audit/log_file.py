"""The log backend: one event a line, in a file that is exchanged for a new one when it is full.

A full file is renamed to NAME-TIME.EXT, where TIME is when it was closed, and compressed where that is wanted, on a
thread. Of those files the newest are kept: not more than ``backups``, none older than ``days``; 0 is without a limit.
A line is never cut: it goes to the operating system in one write.
"""

from __future__ import annotations

import datetime
import gzip
import logging
import os
import re
import shutil
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec

from apimachinery.metrics import Count

log = logging.getLogger("kubewright.server")

_TIME = "%Y-%m-%dT%H-%M-%S.%f"
# What a JSON encoder lets pass and a terminal obeys, in UTF-8: C1, line separators, marks of the reading direction.
_STEERING = re.compile(
    rb"\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]",
)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_BACKUP_TIME = r"-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})"


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is full, in megabytes, and which of the full ones are kept."""

    megabytes: int = 100
    backups: int = 0
    days: int = 0
    compress: bool = False


class LogFile:
    """A backend that appends to ``path``; ``-`` is the standard output. ``legacy`` writes short lines for people."""

    name = "log"

    def __init__(
        self, path: str, rotation: Rotation, lost: Count, *, strict: bool = False, legacy: bool = False
    ) -> None:
        self._path = path
        self._rotation = rotation
        self._lost = lost
        self.strict = strict
        self._legacy = legacy
        self._size = 0
        self._descriptor = -1
        self._complained = False
        self._tidying: threading.Thread | None = None
        if path == "-":
            self._descriptor = sys.stdout.fileno()
        else:
            self._open()

    def _open(self) -> None:
        """Opens the file to append to. Raises OSError."""
        path = Path(self._path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Who may read the log is told what others do.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def start(self) -> None: ...

    def write(self, event: bytes) -> None:
        if self._legacy:
            event = b"".join(map(legacy_line, event.splitlines()))
        if not event.isascii():
            event = _STEERING.sub(_escape, event)
        try:
            if self._path != "-" and self._size + len(event) > self._rotation.megabytes << 20 and self._size:
                self._rotate()
            _write_all(self._descriptor, event)
            self._size += len(event)
            self._complained = False
        except OSError as fault:
            self._lost.value += event.count(b"\n")
            if not self._complained:
                self._complained = True
                log.error("audit events cannot be written: %s", fault, extra={"path": self._path})
            if self.strict:
                raise

    def _rotate(self) -> None:
        path = Path(self._path)
        now = datetime.datetime.now(datetime.UTC)
        full = _full_name(path, now)
        while full.exists() or full.with_name(f"{full.name}.gz").exists():
            # Two within a millisecond: the second must not take the place of the first.
            now += datetime.timedelta(milliseconds=1)
            full = _full_name(path, now)
        os.close(self._descriptor)
        self._descriptor = -1
        try:
            path.rename(full)
        finally:
            self._open()
        if self._tidying is None or not self._tidying.is_alive():
            self._tidying = threading.Thread(target=self._tidy, name="kubewright-audit", daemon=True)
            self._tidying.start()

    def _tidy(self) -> None:
        try:
            tidy(Path(self._path), self._rotation)
        except OSError as fault:
            log.error("old audit logs cannot be tidied: %s", fault, extra={"path": self._path})

    async def close(self) -> None:
        if self._tidying is not None:
            self._tidying.join(10)
        if self._path != "-" and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _full_name(path: Path, closed: datetime.datetime) -> Path:
    return path.with_name(f"{path.stem}-{closed.strftime(_TIME)[:-3]}{path.suffix}")


def _write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        # A disk that is full takes a part.
        data = data[written:]
        written = os.write(descriptor, data)


def tidy(path: Path, rotation: Rotation) -> None:
    """Deletes and compresses full files as ``rotation`` says. Raises OSError."""
    pattern = re.compile(re.escape(path.stem) + _BACKUP_TIME + re.escape(path.suffix) + r"(\.gz)?\Z")
    full = sorted(
        ((match[1], entry) for entry in path.parent.iterdir() if (match := pattern.match(entry.name))),
        reverse=True,
    )
    oldest = ""
    if rotation.days:
        since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=rotation.days)
        oldest = since.strftime(_TIME)[:-3]
    for number, (closed, entry) in enumerate(full):
        if (rotation.backups and number >= rotation.backups) or closed < oldest:
            entry.unlink(missing_ok=True)
        elif rotation.compress and entry.suffix != ".gz":
            # Under another name until it is whole: who dies half-way leaves no backup that looks complete.
            part = entry.with_name(entry.name + ".part")
            with entry.open("rb") as source, gzip.open(part, "wb") as target:
                shutil.copyfileobj(source, target)
            # gzip makes files that everybody may read.
            part.chmod(0o600)
            part.rename(entry.with_name(entry.name + ".gz"))
            entry.unlink()


def legacy_line(event: bytes) -> bytes:
    """An event as a line for people: what ``--audit-log-format=legacy`` of kube-apiserver writes."""
    value = msgspec.json.decode(event)
    user, ref = value.get("user") or {}, value.get("objectRef") or {}
    groups = user.get("groups") or ()
    shown_groups = ",".join(f'"{group}"' for group in groups) or "<none>"
    acts_as = value.get("impersonatedUser") or {}
    as_groups = ",".join(f'"{group}"' for group in acts_as.get("groups") or ()) or "<lookup>"
    address = (value.get("sourceIPs") or [""])[0] or "<unknown>"
    namespace = ref.get("namespace") or "<none>"
    code = (value.get("responseStatus") or {}).get("code")
    parts = [
        f'{value["stageTimestamp"]} AUDIT: id="{value["auditID"]}" stage="{value["stage"]}" ip="{address}"',
        f'method="{value["verb"]}" user="{user.get("username") or "<none>"}" groups="{shown_groups}"',
        f'as="{acts_as.get("username") or "<self>"}" asgroups="{as_groups}"',
        f'user-agent="{value.get("userAgent") or ""}" namespace="{namespace}" uri="{value["requestURI"]}"',
        f'response="{code if code else "<deferred>"}"',
    ]
    line = " ".join(parts).replace("\n", " ")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line).encode() + b"\n"
