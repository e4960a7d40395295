"""Generated code, constructed: a child imports every module of a package and builds both of its clients with all their
resources. ``exported`` is a CustomResourceDefinition as ``kubectl get crd -o yaml`` shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

from kubewright.pipeline import Built

ROOT = Path(__file__).parents[3]
Json = Any
CONSTRUCT = """\
import importlib, pkgutil, sys
from functools import cached_property
from apimachinery.client.config import Config

config = Config(server="http://127.0.0.1:1")
resources = 0
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    modules = {module.name for module in pkgutil.walk_packages(package.__path__, name + ".")}
    for module in sorted(modules):
        importlib.import_module(module)
    for stem, class_name in (("client", "Client"), ("async_client", "AsyncClient")):
        if f"{name}.{stem}" not in modules:  # nothing is served
            continue
        client = getattr(importlib.import_module(f"{name}.{stem}"), class_name)(config)
        for attribute, value in vars(type(client)).items():
            if isinstance(value, cached_property):
                resources += len(vars(getattr(client, attribute)))
print(resources)
"""


def write(built: Built, folder: Path) -> None:
    """Writes the package below ``folder``."""
    for path, content in built.tree.files.items():
        target = folder / built.package.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def construct(folder: Path, *packages: str) -> int:
    """How many resources the clients of ``packages`` below ``folder`` have together. AssertionError
    where one cannot be built."""
    paths = [str(ROOT / "generator"), str(ROOT / "generated"), str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", CONSTRUCT, *packages],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


def exported(crd: Json) -> Json:
    """``crd`` as a server shows it: defaults filled in, a status, and who wrote which field when."""
    made = deepcopy(crd)
    metadata, spec = made["metadata"], made["spec"]
    names, versions = spec["names"], [version["name"] for version in spec["versions"]]
    metadata |= {
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "generation": 2,
        "resourceVersion": "4711",
        "uid": "6c2f0f5e-90a5-4b0c-8f5e-0d8a3b1b8c11",
        "managedFields": [
            {
                "apiVersion": made["apiVersion"],
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:group": {}, "f:versions": {".": {}, 'k:{"name":"v1"}': {}}}},
                "manager": "kube-apiserver",
                "operation": "Update",
                "subresource": "status",
                "time": "2026-01-02T03:04:05Z",
            }
        ],
    }
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    if spec.setdefault("conversion", {"strategy": "None"}).get("strategy") == "Webhook":
        spec["conversion"].setdefault("webhook", {}).setdefault("clientConfig", {})["caBundle"] = "Cg=="
    times = {"lastTransitionTime": "2026-01-02T03:04:05Z", "message": "", "reason": "NoConflicts"}
    made["status"] = {
        "acceptedNames": deepcopy(names),
        "conditions": [
            {**times, "status": "True", "type": each} for each in ("NamesAccepted", "Established")
        ],
        "storedVersions": versions,
    }
    return made
