"""What a group's webhook consists of: an image that serves the generated package, a Deployment and a Service, a
certificate, and what the cluster must know of it: who converts, fills in defaults and validates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apimachinery.wire import yaml
from kubewright.emit.code.render import render
from kubewright.tools.scaffold import overrides
from kubewright.tools.scaffold.contents import group_of
from kubewright.tools.scaffold.editing import insert, read
from kubewright.tools.scaffold.writing import FilePlan, RefusedError, says
from kubewright.tools.webhook.manifest import configurations, conversions, injected

NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class _Version:
    """See ``manifest.Reviewed``."""

    group: str
    version: str
    plural: str
    has_status: bool


def new_webhook(folder: Path) -> FilePlan:
    """The files of the webhook of a folder's group: a kustomize component in ``deploy/``. Raises ``RefusedError`` where
    there is no CRD of the group, or no package is generated of it."""
    group = group_of(folder)
    versions = [each for each in _versions(folder) if group in (None, each.group)]
    if not versions:
        raise RefusedError(
            f"{folder / 'crds'} has no CRD of the group", "start with: kubewright scaffold kind"
        )
    package = overrides.find_package(folder, {(each.group, each.version) for each in versions})
    if package is None:
        raise RefusedError(
            f"no package in {folder / 'kubewright.yaml'} has {folder / 'crds'} as a source",
            "add one: the webhook serves its rules",
        )
    group = versions[0].group
    name = f"{group.partition('.')[0]}-webhook"
    client = {"service": {"namespace": NAMESPACE, "name": name, "port": 443}}
    certificate = f"{NAMESPACE}/{name}"
    rules = [injected(each, certificate) for each in configurations(versions, client, "Fail")]
    converters = [injected(each, certificate) for each in conversions(versions, client)]
    names: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "package": package.folder.name,
        "generated": package.folder.parent.name,
        "patches": [f"conversion-{each['metadata']['name'].partition('.')[0]}.yaml" for each in converters],
    }
    plan, place = FilePlan(), folder / "deploy" / name
    for file in ("Dockerfile", "deployment.yaml", "certificate.yaml", "kustomization.yaml"):
        template = f"scaffold_webhook_{file.removesuffix('.yaml').lower()}"
        plan.new[place / file] = render(template, **names)
    plan.new[place / "configurations.yaml"] = "---\n".join(yaml.encode(each).decode() for each in rules)
    for file, converter in zip(names["patches"], converters, strict=True):
        plan.new[place / file] = yaml.encode(converter).decode()
    _list(plan, folder / "kustomization.yaml", f"deploy/{name}")
    plan.notes.append(f"next: kubewright generate, build {place / 'Dockerfile'}, kubectl apply -k {folder}")
    plan.notes.append("cert-manager issues the certificate; without cert-manager see docs/howto/webhook.md")
    return plan


def _versions(folder: Path) -> list[_Version]:
    """All versions of all kinds in ``crds/``."""
    found = []
    for path in sorted((folder / "crds").glob("*.yaml")):
        value, _ = read(path)
        spec = value.get("spec") if isinstance(value, dict) else None
        if not isinstance(spec, dict) or value.get("kind") != "CustomResourceDefinition":
            continue
        found += [
            _Version(
                spec["group"],
                version["name"],
                spec["names"]["plural"],
                "status" in (version.get("subresources") or {}),
            )
            for version in spec["versions"]
        ]
    return found


def _list(plan: FilePlan, place: Path, component: str) -> None:
    """Makes the component one of the kustomization, where there is one."""
    if not place.is_file():
        return
    value, text = read(place)
    if not isinstance(value, dict) or component in (value.get("components") or ()):
        return
    wanted = value | {"components": [*(value.get("components") or ()), component]}
    if value.get("components"):
        plan.edits[place] = (text, insert(place, text, "components", "- ", [component], wanted))
        return
    result = f"{text.rstrip()}\ncomponents:\n- {component}\n"
    if says(result, wanted):
        plan.edits[place] = (text, result)
