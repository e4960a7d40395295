"""Files that are read again while the server runs: certificates, tokens, the audit policy.

Every few seconds each file is looked at (its time, size and inode, so that a link which now points elsewhere counts, as
Secrets of a pod are exchanged). What has changed is read by whoever uses it. What cannot be read is said, and what was
read before holds until it can be: half-written files and a certificate whose key has not come yet mend themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from apimachinery.metrics import Metrics

PERIOD_SECONDS = 2.0
log = logging.getLogger("kubewright.server")
State = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Reload:
    """Files that belong together. ``read`` takes their new content, whole or not at all; it raises ValueError or
    OSError, which says why it cannot."""

    name: str
    paths: tuple[Path, ...]
    read: Callable[[], None]


class Reloads:
    """Follows files."""

    def __init__(self, reloads: Sequence[Reload], metrics: Metrics) -> None:
        self._reloads = reloads
        self._states = [_state(reload.paths) for reload in reloads]
        self._refused: dict[str, str] = {}
        self._counts = metrics.counter(
            "kubewright_file_reloads_total", "Files read again while running.", "file", "result"
        )

    async def follow(self) -> None:
        """Follows until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            self.look()

    def look(self) -> None:
        """Looks once."""
        for number, reload in enumerate(self._reloads):
            state = _state(reload.paths)
            if state == self._states[number] and reload.name not in self._refused:
                continue
            try:
                reload.read()
            except (ValueError, OSError) as fault:
                if self._refused.get(reload.name) != str(fault):
                    self._refused[reload.name] = str(fault)
                    self._counts.at(reload.name, "failure").value += 1
                    text = "a changed file cannot be used; what was read before holds: %s"
                    log.error(text, fault, extra={"file": reload.name})
            else:
                self._refused.pop(reload.name, None)
                self._counts.at(reload.name, "success").value += 1
                log.info("read again", extra={"file": reload.name})
            # As it was before reading: what changes meanwhile is seen the next time.
            self._states[number] = state


def _state(paths: Sequence[Path]) -> State:
    states: list[tuple[int, int, int]] = []
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            states.append((0, 0, 0))
        else:
            states.append((found.st_mtime_ns, found.st_size, found.st_ino))
    return tuple(states)
