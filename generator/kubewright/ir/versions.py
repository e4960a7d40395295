"""The order of API versions: stable before beta before alpha, then by number (Kubernetes' version priority)."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}


def version_priority(version: str) -> tuple[int, int, int, str]:
    """A key that sorts versions as Kubernetes does, greatest first: stable over beta over alpha, then the
    major, then the minor number; other names last, in reverse order of the alphabet."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, "".join(chr(0x10FFFF - ord(c)) for c in version) + "\U0010ffff")
    major, stage, minor = match.groups()
    return (_STAGES[stage], int(major), int(minor or 0), "")


def is_stable(version: str) -> bool:
    """Whether a version is neither alpha nor beta (``v1``, ``v2``)."""
    return version_priority(version)[0] == _STAGES[None]


def is_version(text: str) -> bool:
    """Whether ``text`` is a version as Kubernetes counts them: ``v1``, ``v2beta1``."""
    return _VERSION.fullmatch(text) is not None


def join_api_version(group: str, version: str) -> str:
    """What objects say of group and version: ``apps/v1``, and ``v1`` for the core group."""
    return f"{group}/{version}" if group else version
