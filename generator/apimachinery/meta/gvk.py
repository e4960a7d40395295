"""Group and version, ``apiVersion``, which joins them, and kinds of both.

The core group is the empty string and is left out: ``v1``, but ``apps/v1``.
"""

from __future__ import annotations

from typing import NamedTuple


class GroupVersion(NamedTuple):
    """A group and a version of it. ``str()`` gives the apiVersion."""

    group: str
    version: str

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """From an apiVersion; what is before the last slash is the group."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GVK(NamedTuple):
    """A kind of a version of a group."""

    group: str
    version: str
    kind: str
