"""What a new group, kind or version consists of: which files, by which templates, and which edits of present files.

The folder of a group: ``kubewright.yaml``, ``kustomization.yaml``, ``README.md``, ``crds/``, ``samples/``, ``rbac/``,
``tests/``, ``lifecycle.yaml``, a ``hooks.py`` where each group-version is generated, and from the second version of a
kind on ``conversions/``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubewright.config import FILE_NAME
from kubewright.emit.code.render import render
from kubewright.ir.versions import version_priority
from kubewright.tools.scaffold import overrides, release_plan
from kubewright.tools.scaffold.conversion_file import find_conversions, new_conversions
from kubewright.tools.scaffold.editing import group_versions, insert, read
from kubewright.tools.scaffold.versioning import add_version
from kubewright.tools.scaffold.writing import FilePlan, RefusedError

_ROLES = {"viewer": "view", "editor": "edit", "admin": "admin"}
_READ = "get, list, watch"
_VERBS = {
    "viewer": (_READ, "get"),
    "editor": (f"{_READ}, create, update, patch, delete", "get"),
    "admin": (f"{_READ}, create, update, patch, delete, deletecollection", "get, update, patch"),
}
"""Role → verbs on the objects, verbs on their status: only who administers writes it in a controller's stead."""


@dataclass(frozen=True, slots=True)
class KindNames:
    """The names of a new kind; they are valid and plain YAML text."""

    kind: str
    plural: str
    group: str
    version: str
    scope: str
    short_name: str
    release: str
    columns: tuple[tuple[str, str], ...] = ()
    """Printer columns of its own: name and path. Ready is before them, Age after."""

    @property
    def singular(self) -> str:
        """The kind in lower case."""
        return self.kind.lower()


IGNORED = """\
# written by `kubewright serve`: a kubeconfig with an administrator's token, and databases
kubeconfig
*.kubeconfig
*.db
*.db-*
# keys and tokens in --cert-dir
*.key
admin-token
# Python
.venv/
__pycache__/
.pytest_cache/
"""
"""``.gitignore`` of a group's folder."""


def new_group(name: str, domain: str, folder: Path) -> FilePlan:
    """The files of an empty group ``name.domain``. A ``.gitignore`` that is there already is left as it is. Raises
    ``OSError`` where it cannot be read."""
    group = f"{name}.{domain}"
    plan = FilePlan()
    package = f"{name.replace('-', '_')}_api"
    plan.new[folder / "kubewright.yaml"] = render("scaffold_kubewright", group=group, package=package)
    plan.new[folder / "README.md"] = render("scaffold_readme", group=group, package=package)
    plan.new[folder / "kustomization.yaml"] = render("scaffold_kustomization")
    plan.new |= {folder / name: text for name, text in group_roles(group).items()}
    plan.new[folder / "samples/README.md"] = (
        "# Samples\n\nOne object per kind and version, named `PLURAL-VERSION.yaml`. The tests validate all of them.\n"
    )
    ignored = folder / ".gitignore"
    if not ignored.exists():
        plan.new[ignored] = IGNORED
    elif "kubeconfig" not in ignored.read_text(encoding="utf-8", errors="replace").split():
        plan.notes.append(f"add kubeconfig to {ignored}: `serve` writes an administrator's token there")
    plan.notes.append(f"next: kubewright scaffold kind KIND --version v1alpha1 --output {folder}")
    return plan


def group_of(folder: Path) -> str | None:
    """The group that a folder was made for, by the name of its viewer role; ``None`` where none tells."""
    place = folder / "rbac/viewer.yaml"
    value: Any = read(place)[0] if place.is_file() else None
    try:
        name = value["metadata"]["name"]
    except (KeyError, TypeError):
        return None
    return name.removesuffix("-viewer") if isinstance(name, str) and name.endswith("-viewer") else None


def new_kind(kind: KindNames, folder: Path) -> FilePlan:
    """The files of a kind in the folder of a group, and the kustomization's new entries. Raises ``RefusedError``
    where the folder has no kustomization, or one that cannot be edited."""
    names: dict[str, Any] = {
        "kind": kind.kind,
        "plural": kind.plural,
        "singular": kind.singular,
        "group": kind.group,
        "version": kind.version,
        "scope": kind.scope,
        "short_name": kind.short_name,
        "identifier": kind.plural.replace("-", "_"),
    }
    crd = f"crds/{kind.plural}.yaml"
    plan = FilePlan()
    plan.new[folder / crd] = render("scaffold_crd", columns=_columns(kind, names), **names)
    plan.new[folder / f"samples/{kind.plural}-{kind.version}.yaml"] = render("scaffold_sample", **names)
    plan.new[folder / f"tests/test_{names['identifier']}.py"] = render(
        "scaffold_test", stem=kind.plural, **names
    )
    roles = kind_roles(kind.plural, names)
    plan.new |= {folder / name: text for name, text in roles.items()}
    add_resources(plan, folder, [crd, *roles])
    release_plan.add_entry(plan, folder, kind.kind, f"{kind.group}/{kind.version}", kind.release)
    add_hooks(plan, folder, kind.kind, kind.group, kind.version)
    config = "" if folder == Path() else f" --config {folder / FILE_NAME}"
    plan.notes.append(f"next: edit {folder / crd}, then kubewright generate{config}")
    return plan


def group_roles(group: str, prefix: str = "rbac/") -> dict[str, str]:
    """The roles that gather those of a group's kinds: path to text."""
    return {
        f"{prefix}{role}.yaml": render("scaffold_group_role", group=group, role=role, builtin=builtin)
        for role, builtin in _ROLES.items()
    }


def kind_roles(stem: str, names: dict[str, Any]) -> dict[str, str]:
    """The roles of a kind: path to text. ``names`` has its group and plural."""
    return {
        f"rbac/{stem}-{role}.yaml": render(
            "scaffold_role", role=role, verbs=verbs, status_verbs=status_verbs, **names
        )
        for role, (verbs, status_verbs) in _VERBS.items()
    }


def add_resources(plan: FilePlan, folder: Path, entries: list[str]) -> None:
    """Lists files in the kustomization. Raises ``RefusedError`` where there is none, or one that cannot be edited."""
    place = folder / "kustomization.yaml"
    if not place.is_file():
        raise RefusedError(
            f"{folder} is not a group's folder: it has no kustomization.yaml",
            "create one with `kubewright scaffold group`, or pass an existing one with --output",
        )
    value, text = read(place)
    listed = value.get("resources") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed:
        raise RefusedError(f"{place} has no list of resources", "add `resources:` with at least one entry")
    missing = [entry for entry in entries if entry not in listed]
    added = insert(place, text, "resources", "- ", missing, value | {"resources": [*listed, *missing]})
    plan.edit(place, text, added)


_USUAL_COLUMNS = (("Mode", ".spec.mode"),)


def _columns(kind: KindNames, names: dict[str, Any]) -> list[dict[str, str]]:
    """The kind's columns with their types, which are those of the fields. Raises ``RefusedError`` for a path that
    leads to no field with a value of one cell."""
    blank = yaml.safe_load(render("scaffold_crd", columns=[], **names))
    schema = blank["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    columns = []
    for name, path in kind.columns or _USUAL_COLUMNS:
        at = schema
        for step in path.split(".")[1:]:
            at = at.get("properties", {}).get(step, {})
        known = at.get("type")
        if known not in ("string", "integer", "number", "boolean"):
            fields = ", ".join(f".spec.{field}" for field in schema["properties"]["spec"]["properties"])
            raise RefusedError(
                f"--column {name}={path}: no field with a single value at this path", f"spec has {fields}"
            )
        columns.append(
            {"name": name, "path": path, "type": "date" if at.get("format") == "date-time" else known}
        )
    return columns


def add_hooks(
    plan: FilePlan,
    folder: Path,
    kind: str,
    group: str,
    version: str,
    copied: tuple[str, str, str] | None = None,
) -> None:
    """Adds a kind to the ``hooks.py`` of its group-version. It begins with the behaviour of ``copied``: a group, a
    version and a kind."""
    package = overrides.find_package(folder, {(group, version), *group_versions(folder)})
    if package is None:
        plan.notes.append(
            f"no {overrides.FILE} was written: no package in kubewright.yaml has {folder / 'crds'} as a source"
        )
        return
    overrides.add_kind(plan, package, kind, group, version, copied)


def new_version(
    version: str, kind: str, group: str, storage: bool, folder: Path, release: Callable[[str], str]
) -> FilePlan:
    """The CRD's edit, a sample, conversions, entries of the release plan and of ``hooks.py``. ``release`` tells
    the release from the apiVersion that is copied. Raises ``RefusedError`` where there is not exactly one CRD of
    the kind, no sample to copy, or a file that cannot be edited; code 1 where the version stands already."""
    place, crd, text = find_kind(kind, group, folder)
    group = crd["spec"]["group"]
    made = add_version(text, crd, version, storage, str(place))
    plan = FilePlan(edits={place: (text, made.text)})
    new, old = f"{group}/{version}", f"{group}/{made.copied}"

    sample = sample_of(folder, place, crd, made.copied)
    plan.new[sample.with_name(f"{place.stem}-{version}.yaml")] = sample_as(sample, old, new, kind)

    rules = find_conversions(folder, kind, group)
    if rules is not None:
        rules.add_version(new, old, leads=made.deprecates)
        rules.write_to(plan)
    else:
        hub, *others = sorted((*made.former, version), key=version_priority, reverse=True)
        path = folder / f"conversions/{place.stem}.yaml"
        new_conversions(plan, path, kind, f"{group}/{hub}", [f"{group}/{other}" for other in others])

    release_plan.add_entry(plan, folder, kind, new, release(old), old if made.deprecates else "")
    add_hooks(plan, folder, kind, group, version, (group, made.copied, kind))

    if made.deprecates:
        plan.notes.append(f"{made.copied} is now deprecated in favour of {version}")
    else:
        plan.notes.append(f"{made.copied} is not deprecated: {version} is less stable")
    if storage:
        plan.notes.append(
            "stored objects keep their version until they are rewritten; the CRD's status.storedVersions lists them"
        )
    else:
        plan.notes.append(
            "the storage version is unchanged: it may move one release after the new version is introduced\n"
            "  (deprecation policy, rule #4b); until then lint reports L507 if the new version is more stable"
        )
    plan.notes.append(
        "fields that differ between versions need a conversion rule and, in a cluster, a conversion webhook;\n"
        "  `kubewright scaffold rename` and `split` change a field together with its rules"
    )
    return plan


def sample_of(folder: Path, place: Path, crd: Any, version: str) -> Path:
    """The sample of a version, which is called after the file of the CRD, or after the plural. Raises
    ``RefusedError``."""
    names = [f"{stem}-{version}.yaml" for stem in (place.stem, crd["spec"]["names"]["plural"])]
    found = next((path for name in names if (path := folder / "samples" / name).is_file()), None)
    if found is None:
        raise RefusedError(
            f"{folder / 'samples' / names[0]}: no sample of {version} to copy",
            f"write a {crd['spec']['names']['kind']} object there",
        )
    return found


def sample_as(sample: Path, api_version: str, new: str, kind: str) -> str:
    """The text of a sample at another version. Raises ``RefusedError``."""
    line = rf"(?m)^apiVersion:[ \t]*{re.escape(api_version)}[ \t]*$"
    copied, count = re.subn(line, f"apiVersion: {new}", read(sample)[1])
    if not count:
        raise RefusedError(
            f"{sample}: no sample of {api_version.rpartition('/')[2]} to copy",
            f"write a {kind} object there",
        )
    return copied


def find_kind(kind: str, group: str, folder: Path) -> tuple[Path, Any, str]:
    """Path, value and text of the one CRD of a kind. Raises ``RefusedError``."""
    found: list[tuple[Path, Any, str]] = []
    for path in sorted((folder / "crds").glob("*.yaml")):
        value, text = read(path)
        try:
            names, own = value["spec"]["names"], value["spec"]["group"]
            versions = [entry["name"] for entry in value["spec"]["versions"]]
            whole = [value["metadata"]["name"], own, names["kind"], names["plural"], *versions]
        except (KeyError, TypeError, IndexError):
            continue
        if (
            names["kind"] == kind
            and own == (group or own)
            and versions
            and all(isinstance(w, str) for w in whole)
        ):
            found.append((path, value, text))
    if len(found) != 1:
        shown = "several CRDs" if found else "no CRD"
        raise RefusedError(
            f"{folder / 'crds'} has {shown} of kind {kind}",
            "choose one with --group" if found else "pass the group's folder with --output",
        )
    return found[0]
