"""Where the volumes of a container are mounted, and the files that it sees: those of its pod, of the volumes that its
containers share, and those that it was given."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, MutableMapping

from apimachinery.meta.json import Json
from apimachinery.server.node.commands import Command
from apimachinery.server.node.given_files import given_files
from apimachinery.server.node.programs import Files, environment_of
from apimachinery.server.node.variables import ContainerConfigError

_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


def check_mounts(command: Command, container: Json) -> None:
    """Works out the subPathExpr of each mount. Raises ContainerConfigError where one is no path within its volume."""
    environment = environment_of(command)
    for mount in container.get("volumeMounts") or ():
        sub_path = _expanded(mount.get("subPathExpr") or "", environment)
        if posixpath.isabs(sub_path):
            raise ContainerConfigError(f"error SubPath `{sub_path}` must not be an absolute path")
        if ".." in sub_path.split("/"):
            raise ContainerConfigError(f"unable to provision SubPath `{sub_path}`: must not contain '..'")


def _expanded(text: str, environment: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        if match[1] not in environment:
            raise ContainerConfigError(f'missing value for "{match[1]}"')
        return environment[match[1]]

    return _REFERENCE.sub(value, text)


class MountedFiles(MutableMapping[str, bytes]):
    """The files of a container by absolute path. What is written goes to the pod, below a name of the volume where one
    is mounted; what it was given can be written over, but not deleted."""

    def __init__(self, files: Files, given: Mapping[str, bytes], mounts: list[tuple[str, str]]) -> None:
        self._files, self._given, self._mounts = files, given, mounts

    def _key(self, path: str) -> str:
        for at, root in self._mounts:
            if path == at or path.startswith(at.rstrip("/") + "/"):
                return root + path[len(at.rstrip("/")) :]
        return path

    def __getitem__(self, path: str) -> bytes:
        key = self._key(path)
        return self._files[key] if key in self._files else self._given[path]

    def __setitem__(self, path: str, data: bytes) -> None:
        self._files[self._key(path)] = data

    def __delitem__(self, path: str) -> None:
        del self._files[self._key(path)]

    def __iter__(self) -> Iterator[str]:
        return iter({*self._given, *(path for key in self._files for path in self._paths(key))})

    def _paths(self, key: str) -> Iterator[str]:
        if key.startswith("/") and self._key(key) == key:
            yield key
        for at, root in self._mounts:
            if key == root or key.startswith(root + "/"):
                yield at.rstrip("/") + key[len(root) :]

    def __len__(self) -> int:
        return sum(1 for _ in self)


def files_of(command: Command, container: Json, files: Files) -> MountedFiles:
    """The files that a command sees in a container of a pod that has ``files``."""
    mounts = []
    for mount in container.get("volumeMounts") or ():
        sub_path = mount.get("subPath") or ""
        if mount.get("subPathExpr"):
            sub_path = _expanded_or_empty(mount["subPathExpr"], environment_of(command))
        root = posixpath.normpath(f"volume:{mount['name']}/{sub_path}")
        files.setdefault(root + "/", b"")
        mounts.append((posixpath.normpath(mount["mountPath"]), root))
    mounts.sort(key=lambda each: -len(each[0]))
    return MountedFiles(files, given_files(command.pod, container), mounts)


def _expanded_or_empty(text: str, environment: dict[str, str]) -> str:
    try:
        return _expanded(text, environment)
    except ContainerConfigError:
        return ""
