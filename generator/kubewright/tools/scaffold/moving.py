"""A kind in another group, perhaps under another name: its newest version begins a kind there, and the old kind is
deprecated in favour of it. Manifests are rewritten by the conversions (``kubewright migrate --crds --rules``); a server
does not convert between groups, so objects are written again as the new kind."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from kubewright.emit.code.names import module_names
from kubewright.emit.code.render import render
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.scaffold import overrides
from kubewright.tools.scaffold.changes import KindFile
from kubewright.tools.scaffold.contents import (
    add_hooks,
    add_resources,
    group_roles,
    kind_roles,
    sample_as,
    sample_of,
)
from kubewright.tools.scaffold.conversion_file import new_conversions
from kubewright.tools.scaffold.editing import group_versions
from kubewright.tools.scaffold.retiring import deprecate, identifier
from kubewright.tools.scaffold.writing import FilePlan, RefusedError


@dataclass(frozen=True, slots=True)
class NewHome:
    """What a kind is to be called, and since which release."""

    group: str
    kind: str
    plural: str
    release: str


def move_kind(old: KindFile, home: NewHome) -> FilePlan:
    """The files of the kind in its new group, and the edits of the old one. Raises ``RefusedError``."""
    version = old.versions[-1]
    _, entry = old.entry(version)
    if (home.group, home.kind) == (old.group, old.kind):
        raise RefusedError(f"{old.path}: {old.kind} is of {old.group} already", code=1)
    if entry.get("deprecated"):
        raise RefusedError(
            f"{old.place(version)}: {version} of {old.kind} is deprecated", "it is moved already"
        )
    stem = _stem(old, home)
    new = f"{home.group}/{version}"
    use = f"{new}/{home.kind}"
    plan = deprecate(old, old.versions, home.release, use, {(new, home.kind): {"introduced": home.release}})
    plan.new[old.path.with_name(f"{stem}.yaml")] = _crd(old, home, version)
    sample = sample_of(old.folder, old.path, old.crd, version)
    text = sample_as(sample, old.api_version(version), new, old.kind)
    plan.new[old.folder / f"samples/{stem}-{version}.yaml"] = _renamed(text, old.kind, home.kind)
    _conversions(plan, old, home, version)
    _listed(plan, old, home, stem)
    _hooks(plan, old, home, version)
    plan.notes.append(
        f"{old.kind} of {old.group} is deprecated now, in favour of {home.kind} of {home.group}; objects are written "
        "again as the new kind:\n"
        f"  kubectl get {old.crd['spec']['names']['plural']}.{old.group} -A -o yaml |"
        f" kubewright migrate - --crds {old.path.parent} --rules {old.folder} --write"
    )
    if old.crd["spec"]["names"].get("shortNames"):
        plan.notes.append(f"short names stay with {old.kind} of {old.group} until it goes")
    plan.notes.append("next: kubewright generate")
    return plan


def _stem(old: KindFile, home: NewHome) -> str:
    """How the files of the new kind are called: its plural, with the first label of the group where that is taken."""
    taken = (old.path.parent / f"{home.plural}.yaml").exists()
    return f"{home.plural}.{home.group.partition('.')[0]}" if taken else home.plural


def _crd(old: KindFile, home: NewHome, version: str) -> str:
    """The text of the old CRD as that of the new kind, with one version. Raises ``RefusedError``."""
    crd = copy.deepcopy(old.crd)
    crd.pop("status", None)
    crd["metadata"]["name"] = f"{home.plural}.{home.group}"
    spec = crd["spec"]
    spec["group"] = home.group
    names = spec["names"]
    names.pop("shortNames", None)  # the old kind has them, and two kinds of one short name shadow each other
    if home.kind != old.kind:
        names |= {"kind": home.kind, "plural": home.plural}
        for word, name in (("listKind", f"{home.kind}List"), ("singular", home.kind.lower())):
            if word in names:
                names[word] = name
    spec["versions"] = [old.entry(version)[1] | {"served": True, "storage": True}]
    edited = rewrite(old.text, old.crd, crd)
    if not edited.kept:
        raise RefusedError(f"{old.path}: it cannot be copied line by line", "write it in block style")
    return edited.text


def _renamed(sample: str, kind: str, new: str) -> str:
    return sample.replace(f"\nkind: {kind}\n", f"\nkind: {new}\n")


def _conversions(plan: FilePlan, old: KindFile, home: NewHome, version: str) -> None:
    """Adds the new kind to the conversions of the old one, as the hub where its copy is the hub."""
    new, copied = f"{home.group}/{version}", old.api_version(version)
    rules = old.conversions()
    if rules is None:
        if home.kind != old.kind or len(old.versions) > 1:
            raise RefusedError(
                f"{old.folder / 'conversions'} has no conversions of {old.kind}",
                "see docs/rules.md, Conversions",
            )
        new_conversions(plan, old.folder / f"conversions/{old.path.stem}.yaml", home.kind, new, [copied])
        return
    rules.add_version(new, copied, leads=True)
    if home.kind != old.kind:
        rules.name_kinds(new, home.kind)
    rules.write_to(plan)


def _listed(plan: FilePlan, old: KindFile, home: NewHome, stem: str) -> None:
    """Adds roles and tests of the new kind, roles of the group where it has none, and lists what is applied."""
    names: dict[str, Any] = {"group": home.group, "plural": home.plural, "kind": home.kind}
    roles = kind_roles(stem, names)
    if not any(group == home.group for group, _ in group_versions(old.folder)):
        roles |= group_roles(home.group, f"rbac/{home.group.partition('.')[0]}-")
    plan.new |= {old.folder / name: text for name, text in roles.items()}
    plan.new[old.folder / f"tests/test_{identifier(stem)}.py"] = render(
        "scaffold_test", **names, stem=stem, identifier=identifier(stem)
    )
    add_resources(plan, old.folder, [f"crds/{stem}.yaml", *roles])


def _hooks(plan: FilePlan, old: KindFile, home: NewHome, version: str) -> None:
    """Copies the hooks of the old kind to the new one. Raises RefusedError if the new group would rename the module of
    hooks written by hand: modules of groups that share their first label get longer names."""
    pairs = group_versions(old.folder)
    modules, renamed = module_names(pairs), module_names({*pairs, (home.group, version)})
    package = overrides.find_package(old.folder, pairs)
    for pair, module in modules.items():
        if package is not None and module != renamed[pair] and package.hooks(*pair).is_file():
            raise RefusedError(
                f"{package.hooks(*pair)} would be of a module called {renamed[pair]}: the groups begin with one word",
                f"rename its folder to {renamed[pair]} after `kubewright generate`, or take another --to-group",
            )
    add_hooks(plan, old.folder, home.kind, home.group, version, (old.group, version, old.kind))
