"""What a new group, kind or version consists of: which files, by which templates, and which edits of present files.

The folder of a group: ``kubewright.yaml``, ``kustomization.yaml``, ``README.md``, ``crds/``, ``samples/``, ``rbac/``,
``tests/``, and from the second version of a kind on ``conversions/``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.emit.render import render
from kubewright.ir.versions import version_priority
from kubewright.source.text import read_single
from kubewright.tools.scaffolding.versioning import add_version
from kubewright.tools.scaffolding.writing import Plan, RefusedError, says

_ROLES = {"viewer": "view", "editor": "edit", "admin": "admin"}
_READ = "get, list, watch"
_VERBS = {
    "viewer": (_READ, "get"),
    "editor": (f"{_READ}, create, update, patch, delete", "get"),
    "admin": (f"{_READ}, create, update, patch, delete, deletecollection", "get, update, patch"),
}
"""Role → verbs on the objects, verbs on their status: only who administers writes it in a controller's stead."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The names of a new kind; they are valid and plain YAML text."""

    kind: str
    plural: str
    group: str
    version: str
    scope: str
    short_name: str

    @property
    def singular(self) -> str:
        """The kind in lower case."""
        return self.kind.lower()


def new_group(name: str, domain: str, folder: Path) -> Plan:
    """The files of an empty group ``name.domain``."""
    group = f"{name}.{domain}"
    plan = Plan()
    plan.new[folder / "kubewright.yaml"] = render(
        "scaffold_kubewright", group=group, package=f"{name.replace('-', '_')}_api"
    )
    plan.new[folder / "README.md"] = render("scaffold_readme", group=group)
    plan.new[folder / "kustomization.yaml"] = render("scaffold_kustomization")
    for role, builtin in _ROLES.items():
        plan.new[folder / f"rbac/{role}.yaml"] = render(
            "scaffold_group_role", group=group, role=role, builtin=builtin
        )
    plan.new[folder / "samples/README.md"] = (
        "# Samples\n\nOne object for each kind and version, `PLURAL-VERSION.yaml`: the tests validate them all.\n"
    )
    plan.notes.append(
        f"next: kubewright scaffold kind KIND --group {group} --version v1alpha1 --out {folder}"
    )
    return plan


def new_kind(kind: Kind, folder: Path) -> Plan:
    """The files of a kind in the folder of a group, and the kustomization's new entries. Raises ``RefusedError``
    where the folder has no kustomization, or one that cannot be edited."""
    names = {
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
    plan = Plan()
    plan.new[folder / crd] = render("scaffold_crd", **names)
    plan.new[folder / f"samples/{kind.plural}-{kind.version}.yaml"] = render("scaffold_sample", **names)
    plan.new[folder / f"tests/test_{names['identifier']}.py"] = render("scaffold_test", **names)
    entries = [crd]
    for role, (verbs, status_verbs) in _VERBS.items():
        entries.append(f"rbac/{kind.plural}-{role}.yaml")
        plan.new[folder / entries[-1]] = render(
            "scaffold_role", role=role, verbs=verbs, status_verbs=status_verbs, **names
        )
    place = folder / "kustomization.yaml"
    if not place.is_file():
        raise RefusedError(
            f"{folder} is not the folder of a group: it has no kustomization.yaml",
            "make one with `kubewright scaffold group`, or name it with --out",
        )
    value, text = _read(place)
    listed = value.get("resources") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed:
        raise RefusedError(f"{place} has no list of resources", "write `resources:` with an entry")
    missing = [entry for entry in entries if entry not in listed]
    added = _insert(place, text, "resources", "- ", missing, value | {"resources": [*listed, *missing]})
    plan.edits[place] = (text, added)
    return plan


def new_version(version: str, kind: str, group: str, storage: bool, folder: Path) -> Plan:
    """The CRD's edit, a sample and a conversion stub. Raises ``RefusedError`` where there is not exactly one CRD of
    the kind, no sample to copy, or a file that cannot be edited; code 1 where the version stands already."""
    place, crd, text = _find(kind, group, folder)
    spec = crd["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    made = add_version(text, crd, version, storage, str(place))
    plan = Plan(edits={place: (text, made.text)})

    old = folder / f"samples/{plural}-{made.copied}.yaml"
    _, sample = _read(old) if old.is_file() else (None, "")
    line = rf"(?m)^apiVersion:[ \t]*{re.escape(group)}/{re.escape(made.copied)}[ \t]*$"
    copied, count = re.subn(line, f"apiVersion: {group}/{version}", sample)
    if not count:
        raise RefusedError(
            f"{old}: there is no sample of {made.copied} to copy", f"write one: an object of {kind}"
        )
    plan.new[folder / f"samples/{plural}-{version}.yaml"] = copied

    rules = folder / f"conversions/{plural}.yaml"
    if rules.is_file():
        value, before = _read(rules)
        spokes = value.get("spokes") if isinstance(value, dict) else None
        spoke = f"{group}/{version}"
        if not isinstance(spokes, dict) or not spokes or spoke in spokes or value.get("hub") == spoke:
            raise RefusedError(
                f"{rules}: {spoke} cannot be added to its spokes", "see docs/rules.md, Conversions"
            )
        wanted = value | {"spokes": spokes | {spoke: []}}
        plan.edits[rules] = (before, _insert(rules, before, "spokes", "", [f"{spoke}: []"], wanted))
    else:
        hub, *others = sorted((*made.former, version), key=version_priority, reverse=True)
        plan.new[rules] = render("scaffold_conversion", kind=kind, group=group, hub=hub, spokes=others)

    if made.deprecates:
        plan.notes.append(f"{made.copied} is deprecated now, in favour of {version}")
    else:
        plan.notes.append(f"{made.copied} is not deprecated: {version} is no successor at least as stable")
    if storage:
        plan.notes.append(
            "stored objects stay at their version until they are rewritten; status.storedVersions of the CRD tells"
        )
    else:
        plan.notes.append(
            "the storage version stays: it moves a release after the new version came (deprecation policy, rule #4b);\n"
            "  lint tells L501 as long as a less stable version is stored than one that is served"
        )
    plan.notes.append(
        "fields of the new version that differ need a conversion rule, and a webhook in the cluster"
    )
    return plan


def _find(kind: str, group: str, folder: Path) -> tuple[Path, Any, str]:
    found: list[tuple[Path, Any, str]] = []
    for path in sorted((folder / "crds").glob("*.yaml")):
        value, text = _read(path)
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
            "tell them apart with --group" if found else "name the folder of the group with --out",
        )
    return found[0]


def _read(path: Path) -> tuple[Any, str]:
    """Value and text of a file of one document; faults of it are a refusal."""
    diagnostics = Diagnostics()
    document = read_single(path, diagnostics)
    if document is None or diagnostics.has_errors:
        raise RefusedError("\n".join(map(str, diagnostics)))
    return document.value, path.read_bytes().decode()


def _insert(path: Path, text: str, key: str, mark: str, entries: list[str], wanted: Any) -> str:
    """``text`` with entries at the end of the list or mapping under its top-level ``key``, in block style. What it
    says then must be ``wanted``, else ``RefusedError``."""
    if not entries:
        return text
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    held = next(value for name, value in node.value if name.value == key)
    lines = text.splitlines(keepends=True)
    end = min(held.end_mark.line, len(lines))
    while end > held.start_mark.line + 1 and (
        not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")
    ):
        end -= 1
    if not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    indent = " " * held.start_mark.column
    result = "".join([*lines[:end], *(f"{indent}{mark}{entry}\n" for entry in entries), *lines[end:]])
    if not says(result, wanted):
        raise RefusedError(
            f"{path}: {key} cannot be edited line by line", "write it in block style, without anchors"
        )
    return result
