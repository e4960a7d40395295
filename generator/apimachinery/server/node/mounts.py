"""Where the volumes of a container are mounted."""

from __future__ import annotations

import posixpath
import re

from apimachinery.meta.json import Json
from apimachinery.server.node.commands import Command
from apimachinery.server.node.programs import environment_of
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
