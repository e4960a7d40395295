"""What the checks of the Pod Security Standards share: versions, what they find, and how it is worded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from apimachinery.kinds.fields import Json, items, lookup

Version = tuple[int, int]
LATEST: Version = (1, 1 << 30)
USER_NAMESPACES: Version = (1, 35)
"""From here on a pod with users of its own may do what would be dangerous with the host's."""
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,8})")


def parse_version(text: str) -> Version | None:
    """``latest`` or ``v1.N``; None for anything else."""
    if text == "latest":
        return LATEST
    found = _VERSION.fullmatch(text)
    return None if found is None else (1, int(found[1]))


@dataclass(frozen=True, slots=True)
class Violation:
    """What a pod may not have, and where it has it."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


def containers(spec: Json) -> Iterator[Json]:
    """All containers of a pod: init containers first, ephemeral ones last."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from items(spec, key)


def quoted(texts: Iterable[str]) -> str:
    """Texts in quotes, with commas."""
    return ", ".join(f'"{text}"' for text in texts)


def some(word: str, names: list[str]) -> str:
    """A word and the names it is about, in the plural for several."""
    return f"{word}{'s' if len(names) != 1 else ''} {quoted(names)}"


def setters_of(pod: bool, names: list[str]) -> list[str]:
    """Who sets something: the pod, and containers by name."""
    return (["pod"] if pod else []) + ([some("container", names)] if names else [])


def names_of(spec: Json, wrong: Callable[[Json], bool]) -> list[str]:
    """The names of the containers for which ``wrong`` holds."""
    return [str(container.get("name")) for container in containers(spec) if wrong(container)]


def context(container: Json, *keys: str) -> object:
    """A value of the security context of a pod or container; None where it is not there."""
    return lookup(container, "securityContext", *keys)


def is_windows(spec: Json) -> bool:
    """Whether a pod says that it is for Windows."""
    return bool(lookup(spec, "os", "name") == "windows")


def has_own_users(spec: Json, version: Version) -> bool:
    """Whether a pod has users of its own, in a version that takes that for safe."""
    return version >= USER_NAMESPACES and spec.get("hostUsers") is False
