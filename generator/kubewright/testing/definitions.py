"""CRDs of a server for tests: read from files, and waited for until they are served."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from apimachinery.meta.errors import ApiError
from kubewright.testing.thread import StartError

CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Request: TypeAlias = Callable[[str, str], Any]
"""Method and path: the JSON of the answer."""


def read_crds(path: Path) -> Iterator[dict[str, Any]]:
    """Reads the CRDs of a file or folder. Raises StartError."""
    from apimachinery.wire import yaml
    from apimachinery.wire.json import DecodeFault

    if not path.exists():
        raise StartError(f"{path} does not exist")
    for file in _files_in(path) if path.is_dir() else [path]:
        try:
            documents = yaml.decode_all(file.read_bytes())
        except DecodeFault as fault:
            raise StartError(f"{file} is not YAML: {fault}") from None
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                yield document


def _files_in(folder: Path) -> list[Path]:
    """All YAML and JSON files in and below a folder. One that cannot be listed is not passed over."""

    def failed(error: OSError) -> None:
        raise StartError(f"{error.filename}: {error.strerror}")

    paths = (Path(root, name) for root, _, names in os.walk(folder, onerror=failed) for name in names)
    return sorted(path for path in paths if path.suffix in (".yaml", ".yml", ".json"))


def wait_until_served(request: Request, manifest: dict[str, Any], seconds: float) -> None:
    """Returns once a definition's objects can be asked for. Raises StartError after so many seconds."""
    path = f"{CRDS_PATH}/{manifest['metadata']['name']}"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        # A definition that nobody has looked at yet has null conditions.
        found = request("GET", path)
        conditions = found.get("status", {}).get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            if _is_discovered(request, found["spec"]):
                return
        time.sleep(0.01)
    raise StartError(f"{manifest['metadata']['name']} is not established after {seconds:g} s")


def _is_discovered(request: Request, spec: dict[str, Any]) -> bool:
    """Whether all served versions of a definition are answered: the condition is written a moment before."""
    for version in (each["name"] for each in spec["versions"] if each.get("served")):
        try:
            resources = request("GET", f"/apis/{spec['group']}/{version}")["resources"]
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        if not any(each["name"] == spec["names"]["plural"] for each in resources):
            return False
    return True
