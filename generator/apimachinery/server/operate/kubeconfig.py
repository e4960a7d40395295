"""The kubeconfig that reaches a server."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

NAME = "kubewright"


def kubeconfig(url: str, *, authority: bytes = b"", token: str = "", namespace: str = "default") -> str:
    """A kubeconfig as JSON text, which is YAML too, with one cluster, user and context."""
    cluster: dict[str, str | bool] = {"server": url}
    if url.startswith("http:"):
        cluster["insecure-skip-tls-verify"] = True  # the official JavaScript client refuses http without it
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    context = {"cluster": NAME, "user": NAME, "namespace": namespace}
    shown = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token} if token else {}}],
        "contexts": [{"name": NAME, "context": context}],
        "current-context": NAME,
    }
    return json.dumps(shown, indent=2) + "\n"


def write_kubeconfig(path: Path, text: str) -> None:
    """Writes a kubeconfig that only its owner may read, whole or not at all. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    part.replace(path)
