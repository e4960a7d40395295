"""A version of a kind, or the whole kind, deprecated and taken away.

What goes leaves no file behind. Rules of conversion stay, marked as those of a version that is gone: manifests of it
are still rewritten (``kubewright migrate --crds --rules``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path

from kubewright.tools.scaffold import overrides, release_plan
from kubewright.tools.scaffold.changes import KindFile
from kubewright.tools.scaffold.contents import sample_of
from kubewright.tools.scaffold.crd_fields import Json
from kubewright.tools.scaffold.editing import group_versions, place_of, read, replaced
from kubewright.tools.scaffold.writing import FilePlan, RefusedError


def deprecate(
    kind: KindFile,
    versions: Iterable[str],
    release: str,
    replacement: str = "",
    added: Mapping[release_plan.Key, Mapping[str, str]] | None = None,
) -> FilePlan:
    """Marks versions in the CRD and in the release plan, which gets ``added`` entries too. ``replacement`` is
    GROUP/VERSION/KIND; without it the newest other version is meant. Raises ``RefusedError``."""
    plan = FilePlan()
    spec = copy.deepcopy(kind.crd["spec"])
    changes: dict[tuple[str, str], dict[str, str]] = {}
    leaving = [*versions]
    for version in leaving:
        index, entry = kind.entry(version)
        if entry.get("deprecated"):
            continue
        use = replacement or _successor(kind, version)
        spec["versions"][index] = marked(entry, kind, use)
        changes[kind.api_version(version), kind.kind] = {"deprecated": release} | (
            {"replacement": use} if use else {}
        )
    if not changes:
        raise RefusedError(f"{kind.place(leaving[-1])}: {kind.kind} is deprecated already", code=1)
    kind.write_to(plan, spec)
    release_plan.change_entries(plan, kind.folder, changes, added)
    release_plan.check_policy(plan, kind.folder)
    return plan


def marked(entry: Json, kind: KindFile, use: str) -> Json:
    """A version's entry that says that it is deprecated; ``name`` and the marks stay together."""
    api_version, _, other = use.rpartition("/")
    said = f"{kind.api_version(entry['name'])} {kind.kind} is deprecated"
    warning = f"{said}; use {api_version} {other}" if use else said
    marks = {"deprecated": True, "deprecationWarning": warning}
    return {
        "name": entry["name"],
        **marks,
        **{word: value for word, value in entry.items() if word not in marks},
    }


def retire_version(kind: KindFile, version: str, release: str) -> FilePlan:
    """Takes a version away: out of the CRD, its sample, its hooks; the plan says since when. Raises ``RefusedError``
    where something still needs it."""
    index, entry = kind.entry(version)
    place = kind.place(version)
    if len(kind.versions) == 1:
        raise RefusedError(
            f"{place}: {version} is the only version of {kind.kind}",
            f"retire the kind: kubewright scaffold retire --kind {kind.kind}",
        )
    if entry.get("storage"):
        raise RefusedError(
            f"{place}: {version} is the storage version",
            "store another one first: "
            f"kubewright scaffold version {_other(kind, version)} --kind {kind.kind} --storage",
        )
    _not_stored(kind, version)
    plan = FilePlan()
    rules = kind.conversions()
    if rules is not None:
        rules.remove(kind.api_version(version), release)
        rules.write_to(plan)
    spec = copy.deepcopy(kind.crd["spec"])
    del spec["versions"][index]
    kind.write_to(plan, spec)
    release_plan.change_entries(
        plan, kind.folder, {(kind.api_version(version), kind.kind): {"removed": release}}
    )
    release_plan.check_policy(plan, kind.folder)
    _drop_sample(plan, kind, version)
    _drop_hooks(plan, kind, [version])
    plan.notes += _mentions(kind, [version], {*plan.gone, *plan.edits})
    plan.notes.append(
        f"a server refuses the CRD while status.storedVersions has {version}: kubewright migrate --from-cluster --write"
    )
    plan.notes.append("next: kubewright generate")
    return plan


def retire_kind(kind: KindFile, release: str) -> FilePlan:
    """Takes a kind away with all its files. Raises ``RefusedError`` where it is not deprecated, or others are
    converted through it."""
    for version in kind.versions:
        if not kind.entry(version)[1].get("deprecated"):
            raise RefusedError(
                f"{kind.place(version)}: {version} of {kind.kind} is not deprecated",
                f"kubewright scaffold retire --kind {kind.kind} --deprecate",
            )
    plan = FilePlan(gone={kind.path: kind.text})
    rules = kind.conversions()
    if rules is not None:
        own = [each for each in (*rules.spokes, rules.hub) if each.rpartition("/")[0] == kind.group]
        if len(own) == len(rules.spokes) + 1:
            plan.delete(rules.path)
        else:
            for api_version in own:
                rules.remove(api_version, release)
            rules.write_to(plan)
    changes = {(kind.api_version(version), kind.kind): {"removed": release} for version in kind.versions}
    release_plan.change_entries(plan, kind.folder, changes)
    release_plan.check_policy(plan, kind.folder)
    for version in kind.versions:
        _drop_sample(plan, kind, version)
    _drop_hooks(plan, kind, kind.versions)
    _drop_listed(plan, kind)
    plan.notes += _mentions(kind, kind.versions, {*plan.gone, *plan.edits})
    plan.notes.append(f"deleting the CRD in a cluster deletes every {kind.kind}")
    plan.notes.append("next: kubewright generate")
    return plan


def _successor(kind: KindFile, version: str) -> str:
    """The newest other version that is not deprecated, as GROUP/VERSION/KIND."""
    others = [each for each in kind.versions if each != version and not kind.entry(each)[1].get("deprecated")]
    return f"{kind.api_version(others[-1])}/{kind.kind}" if others else ""


def _other(kind: KindFile, version: str) -> str:
    return next((each for each in reversed(kind.versions) if each != version), "VERSION")


def _not_stored(kind: KindFile, version: str) -> None:
    """Refuses where the manifest was read from a cluster that may have objects of the version."""
    stored = (kind.crd.get("status") or {}).get("storedVersions") or []
    if version in stored:
        pointer = f"/status/storedVersions/{stored.index(version)}"
        raise RefusedError(
            f"{place_of(kind.path, pointer)}: objects are stored as {version}",
            "write them again first: kubewright migrate --from-cluster --write",
        )


def _drop_sample(plan: FilePlan, kind: KindFile, version: str) -> None:
    try:
        sample = sample_of(kind.folder, kind.path, kind.crd, version)
    except RefusedError:
        return
    plan.delete(sample)


def _drop_hooks(plan: FilePlan, kind: KindFile, versions: Iterable[str]) -> None:
    package = overrides.find_package(kind.folder, group_versions(kind.folder))
    for version in versions:
        if package is not None:
            overrides.drop_kind(plan, package, kind.kind, kind.group, version)


def _drop_listed(plan: FilePlan, kind: KindFile) -> None:
    """Takes the kind's files out of the kustomization, and deletes its roles and tests."""
    stem = kind.path.stem
    files = [kind.folder / f"rbac/{stem}-{role}.yaml" for role in ("viewer", "editor", "admin")]
    files.append(kind.folder / f"tests/test_{identifier(stem)}.py")
    for path in files:
        if path.is_file():
            plan.delete(path)
    place = kind.folder / "kustomization.yaml"
    if not place.is_file():
        return
    value, text = read(place)
    gone = {path.relative_to(kind.folder).as_posix() for path in plan.gone}
    listed = value.get("resources") if isinstance(value, dict) else None
    if isinstance(listed, list) and gone & {*map(str, listed)}:
        kept = [each for each in listed if each not in gone]
        replaced(plan, place, value, text, value | {"resources": kept})


def identifier(stem: str) -> str:
    """The file name of a CRD as a word of Python."""
    return stem.replace("-", "_").replace(".", "_")


def _mentions(kind: KindFile, versions: Iterable[str], done: Iterable[Path]) -> list[str]:
    """Notes about other files of the folder that name what goes."""
    names = [f'"{version}"' for version in versions] + [kind.api_version(version) for version in versions]
    files = [*kind.folder.glob("controllers/*.py"), *kind.folder.glob("deploy/**/*.yaml")]
    return [
        f"{path} names {next(name for name in names if name in text)}: it is yours to change"
        for path in sorted({*files} - {*done})
        if kind.group in (text := path.read_text("utf-8", "replace")) and any(name in text for name in names)
    ]
