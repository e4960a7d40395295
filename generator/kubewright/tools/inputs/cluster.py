"""Reading the APIs of a live cluster into a folder of specs, as the other sources read them.

CustomResourceDefinitions are taken as they are stored, for they say most; other groups (aggregated servers, and
built-in ones where asked for by name) are taken from /openapi/v3, one document a group-version. This is in the
tools because it speaks to a server: the compiler itself reads files alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apimachinery.client import calls
from apimachinery.client.calls import UNSTRUCTURED, Call, ListOptions, Target
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import Request
from apimachinery.client.errors import Forbidden, NotFound
from apimachinery.meta.resources import Resource

_CRDS = Target(
    Resource(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        namespaced=False,
        verbs=("get", "list"),
    )
)


def fetch(
    client: Client,
    folder: Path,
    *,
    groups: tuple[str, ...] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Writes the specs of ``groups`` into ``folder``, of all that are not Kubernetes' own where none is named.

    Returns how many files were written. Raises ``ApiError`` and ``TransportError``; a server without CRDs, or one
    that does not let us list them, is read from /openapi/v3 alone.
    """
    defined = _crds(client, groups, folder, progress)
    index = client.run(get("/openapi/v3"))
    written = len(defined)
    for path, entry in sorted((index.get("paths") or {}).items()):
        parts = path.split("/")
        group = (
            "" if path.startswith("api/") else parts[1] if len(parts) == 3 and parts[0] == "apis" else None
        )
        if group is None or group in defined:
            continue
        if group in groups if groups else not is_kubernetes_own(group):
            progress(f"reading {path}")
            document = client.run(get(entry["serverRelativeURL"]))
            (folder / f"{path.replace('/', '__')}.json").write_text(json.dumps(document), encoding="utf-8")
            written += 1
    return written


def is_kubernetes_own(group: str) -> bool:
    """Whether a group is one of Kubernetes' built-in ones, for which ``kubernetes_api`` is ready-made."""
    return "." not in group or group.endswith(".k8s.io")


def _crds(client: Client, groups: tuple[str, ...], folder: Path, progress: Callable[[str], None]) -> set[str]:
    progress("reading CustomResourceDefinitions")
    found: set[str] = set()
    token, number = "", 0
    while True:
        try:
            page = client.run(calls.list_page(_CRDS, UNSTRUCTURED, ListOptions(), token))
        except (Forbidden, NotFound):
            return found
        for crd in page.items:
            group = crd["spec"]["group"]
            if not groups or group in groups:
                found.add(group)
                crd.update(apiVersion="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
                for server_owned in (
                    "managedFields",
                    "uid",
                    "resourceVersion",
                    "creationTimestamp",
                    "generation",
                ):
                    crd["metadata"].pop(server_owned, None)
                crd.pop("status", None)
                # A server's names are not to be trusted as file names.
                (folder / f"crd{number:05}.json").write_text(json.dumps(crd), encoding="utf-8")
                number += 1
        token = page.next_token
        if not token:
            return found


def get(path: str) -> Call[dict[str, Any]]:
    """The call that reads a JSON document."""
    return Call(Request("GET", path), UNSTRUCTURED.decode, repeatable=True)
