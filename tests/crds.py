"""A CRD of one version, for tests that care for its spec alone."""

from __future__ import annotations

import json

import yaml


def crd_text(kind: str, spec: str) -> str:
    """The manifest of ``kind`` in ``example.com/v1``, namespaced; ``spec`` is the schema of its spec in YAML."""
    plural = f"{kind.lower()}s"
    properties = {"spec": yaml.safe_load(spec)}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names = {"kind": kind, "plural": plural}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
        },
        indent=1,
    )
