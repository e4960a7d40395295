"""What a controller consists of: a program over the generated package, its tests on a server for tests, the role that
those tests record, an image and manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubewright.emit.code.names import class_name
from kubewright.emit.code.render import render
from kubewright.tools.scaffold import overrides
from kubewright.tools.scaffold.contents import find_kind
from kubewright.tools.scaffold.editing import insert, read
from kubewright.tools.scaffold.writing import FilePlan, RefusedError


def new_controller(kind: str, group: str, version: str, folder: Path) -> FilePlan:
    """The files of a kind's controller. Raises ``RefusedError`` where there is not exactly one CRD of the kind, where
    it has no such version or no status, or where no package is generated of it."""
    place, crd, _ = find_kind(kind, group, folder)
    spec = crd["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    served = {entry["name"]: entry for entry in spec["versions"]}
    version = version or next(
        (e["name"] for e in spec["versions"] if e.get("storage")), spec["versions"][0]["name"]
    )
    if version not in served:
        raise RefusedError(f"{place} has no version {version}", f"there are: {', '.join(served)}")
    package = overrides.find_package(folder, {(group, name) for name in served})
    if package is None:
        raise RefusedError(
            f"no package in {folder / 'kubewright.yaml'} has {folder / 'crds'} as a source",
            "add one: the controller imports its models",
        )
    if not _has_generation(served[version]):
        raise RefusedError(
            f"{place}: {version} has no status subresource with observedGeneration",
            "add both: the controller reports there which generation it has reconciled",
        )
    singular = spec["names"].get("singular") or kind.lower()
    names: dict[str, Any] = {
        "kind": kind,
        "model": class_name(kind),
        "group": group,
        "version": version,
        "plural": plural,
        "singular": singular,
        "identifier": singular.replace("-", "_"),
        "package": package.folder.name,
        "module": package.modules[group, version],
        "generated": package.folder.parent.name,
        "name": f"{singular}-controller",
        "namespaced": spec["scope"] == "Namespaced",
    }
    plan = FilePlan()
    program = f"controllers/{names['identifier']}_controller.py"
    plan.new[folder / program] = render("scaffold_controller", **names)
    plan.new[folder / f"tests/test_{names['identifier']}_controller.py"] = render(
        "scaffold_controller_test", **names
    )
    role, deploy = f"rbac/{plural}-controller.yaml", f"deploy/{names['name']}"
    plan.new[folder / role] = render("scaffold_controller_role", **names)
    plan.new[folder / f"{deploy}/Dockerfile"] = render("scaffold_controller_dockerfile", **names)
    plan.new[folder / f"{deploy}/deployment.yaml"] = render("scaffold_controller_deployment", **names)
    _list(plan, folder / "kustomization.yaml", [role, f"{deploy}/deployment.yaml"])
    plan.notes.append(f"next: kubewright generate, pytest tests, then edit {folder / program}")
    plan.notes.append(f"RECORD_ROLE=1 pytest tests rewrites {folder / role}")
    return plan


def _has_generation(version: Any) -> bool:
    try:
        schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        return "observedGeneration" in schema and "status" in (version.get("subresources") or {})
    except (KeyError, TypeError):
        return False


def _list(plan: FilePlan, place: Path, entries: list[str]) -> None:
    """Puts files into the kustomization, where there is one."""
    if not place.is_file():
        return
    value, text = read(place)
    listed = value.get("resources") if isinstance(value, dict) else None
    if isinstance(listed, list) and listed:
        missing = [entry for entry in entries if entry not in listed]
        wanted = value | {"resources": [*listed, *missing]}
        plan.edits[place] = (text, insert(place, text, "resources", "- ", missing, wanted))
