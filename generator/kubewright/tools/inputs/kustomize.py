"""Kustomizations as far as they can be built without kustomize: local resources, and the patches on them.

``Kustomizations`` reads what a kustomization names; ``build`` applies patches in kustomize's order (those of bases
first). Generated and remote resources are unknown here, so a patch may have no target; that is no fault of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apimachinery.meta.json import Json
from kubewright.diagnostics import Diagnostics
from kubewright.source.text import KUSTOMIZATIONS
from kubewright.tools.validate.inputs import Chunk, decoded, split

API_GROUP = "kustomize.config.k8s.io"
_COMMENTED = re.compile(r"^\s*#.*?([\w./-]+\.(?:ya?ml|json))\b", re.MULTILINE)
_BASES = ("resources", "bases")
_NOT_OBJECTS = ("configurations", "transformers", "generators", "validators")
MAX_DEPTH = 32


def is_kustomization(value: Any, file: str) -> bool:
    """Whether a document is a kustomization or a component: by its apiVersion, or by the name of its file."""
    if not isinstance(value, dict):
        return False
    if str(value.get("apiVersion", "")).startswith(f"{API_GROUP}/"):
        return True
    return Path(file).name in KUSTOMIZATIONS and not value.get("apiVersion")


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch of a kustomization: its documents, and the objects that it is for (None: those it names itself)."""

    chunk: Chunk
    value: Any
    outer: Chunk
    """The kustomization."""
    pointer: str
    """Where the patch's text is in the kustomization; empty for a file of its own."""
    target: Json | None


@dataclass(slots=True)
class Resource:
    """An object among what a kustomization puts together, with the names that patches may know it by."""

    obj: Json
    origin: tuple[str, int, int]
    """File, line and number of the item in a List that it was read from."""
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Kustomization:
    """One ``kustomization.yaml``, read."""

    chunk: Chunk
    value: Json
    folder: Path

    def paths(self, *keys: str) -> Iterator[Path]:
        """The local paths that some of its lists name, as they are written."""
        for key in keys:
            entries = self.value.get(key)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, str) and "\n" not in entry and "://" not in entry:
                    yield self.folder / entry

    def patches(self) -> Iterator[Patch]:
        """Its patches, in the order in which kustomize applies them."""
        for key in ("patchesStrategicMerge", "patches", "patchesJson6902"):
            entries = self.value.get(key)
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                yield from self._patches(entry, f"/{key}/{index}")

    def _patches(self, entry: Any, pointer: str) -> Iterator[Patch]:
        target: Any = None
        text: Any = entry
        if isinstance(entry, dict):
            path, target = entry.get("path"), entry.get("target")
            text, pointer = (path, pointer) if path else (entry.get("patch"), f"{pointer}/patch")
            if path and isinstance(path, str) and "\n" in path:
                return
        if not isinstance(text, str):
            return
        inline = "\n" in text or text.lstrip()[:1] in ("[", "{")
        chunks = (
            [Chunk(self.chunk.file, self.chunk.line, text.encode("utf-8", "replace"))]
            if inline
            else read_quietly(self.folder / text)
        )
        for chunk in chunks:
            value = decoded(chunk)
            if value is not None:
                chosen = target if isinstance(target, dict) else None
                yield Patch(chunk, value, self.chunk, pointer if inline else "", chosen)


def read_quietly(path: Path) -> list[Chunk]:
    """The documents of a file; none where it cannot be read, which others report."""
    try:
        return split(path.read_bytes(), str(path), Diagnostics())
    except OSError:
        return []


@dataclass(slots=True)
class Roles:
    """What kustomizations use files for, by normalized path."""

    resources: set[str] = field(default_factory=set)
    patches: set[str] = field(default_factory=set)
    configuration: set[str] = field(default_factory=set)
    """Files that are input of kustomize itself, or of what it generates."""

    def is_resource(self, file: str) -> bool:
        """Whether a kustomization names a file as one of its resources."""
        return os.path.normpath(file) in self.resources

    def is_object(self, file: str) -> bool:
        """Whether a file may hold objects that are judged by themselves."""
        name = os.path.normpath(file)
        if name in self.resources:
            return True
        if name in self.patches or name in self.configuration:
            return False
        # A folder of patches: those that no kustomization names (yet) are patches too.
        return Path(name).parent not in {Path(patch).parent for patch in self.patches}


def roles(kustomizations: Sequence[Kustomization]) -> Roles:
    """What files are for. A path in a comment of a kustomization counts as a patch: it is one that is switched off."""
    found = Roles()
    for each in kustomizations:
        found.resources |= _normal(each.paths(*_BASES, "crds"))
        found.configuration |= _normal(each.paths(*_NOT_OBJECTS))
        for key in ("configMapGenerator", "secretGenerator", "helmCharts", "replacements"):
            found.configuration |= _normal(_inputs(each, key))
        named = [*each.paths("patchesStrategicMerge")]
        for key in ("patches", "patchesJson6902"):
            entries = each.value.get(key)
            named += (
                each.folder / entry["path"]
                for entry in (entries if isinstance(entries, list) else ())
                if isinstance(entry, dict) and isinstance(entry.get("path"), str)
            )
        found.patches |= _normal(iter(named))
        text = each.chunk.content.decode("utf-8", "replace")
        off = {os.path.normpath(each.folder / name) for name in _COMMENTED.findall(text)}
        found.configuration |= off
    found.configuration -= found.resources
    # Patches that lie among resources say nothing of the folder.
    found.patches -= found.resources
    return found


def _normal(paths: Iterator[Path]) -> set[str]:
    return {os.path.normpath(path) for path in paths}


def _inputs(each: Kustomization, key: str) -> Iterator[Path]:
    entries = each.value.get(key)
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        for name in ("path", "valuesFile"):
            if isinstance(entry.get(name), str):
                yield each.folder / entry[name]
        for name in ("files", "envs", "additionalValuesFiles"):
            listed = entry.get(name)
            for text in listed if isinstance(listed, list) else ():
                if isinstance(text, str):
                    yield each.folder / text.rpartition("=")[2]


@dataclass(slots=True)
class Applied:
    """A patch on one object: the object before and after it, or why it cannot be applied."""

    patch: Patch
    before: Json
    after: Json | None
    refusal: str = ""


Apply = Callable[[Json, Any], Json | None]
"""The object with a patch on it, None where the patch deletes it; raises ``PatchRefused``."""


@dataclass(slots=True)
class Builder:
    """Builds kustomizations, and remembers each patch that was applied."""

    kustomizations: Mapping[str, Kustomization]
    """By normalized folder."""
    apply: Apply
    applied: list[Applied] = field(default_factory=list)
    built: dict[tuple[str, int, int], list[Json]] = field(default_factory=dict)
    """What became of each object, once for each kustomization that is applied."""
    _matched: set[tuple[str, int, str]] = field(default_factory=set)
    _seen: dict[tuple[str, int, str], tuple[Kustomization, Patch]] = field(default_factory=dict)

    def build_all(self) -> None:
        """Builds the kustomizations that no other one uses, for those are what somebody applies."""
        used = {
            os.path.normpath(path)
            for each in self.kustomizations.values()
            for path in each.paths(*_BASES, "components")
        }
        for name in sorted(self.kustomizations):
            made = self.build(name, [], 0)
            if name not in used:
                for one in made:
                    self.built.setdefault(one.origin, []).append(one.obj)

    def unmatched(self) -> list[tuple[Kustomization, Patch]]:
        """Patches that had a target in no build, with the kustomization that names them."""
        return [pair for key, pair in self._seen.items() if key not in self._matched]

    def build(self, folder: str, known: list[Resource], depth: int) -> list[Resource]:
        """What the kustomization of a folder makes; of a component, ``known`` is what it is put on."""
        each = self.kustomizations.get(folder)
        if each is None or depth > MAX_DEPTH:
            return []
        made = list(known)
        for path in each.paths(*_BASES):
            name = os.path.normpath(path)
            if name in self.kustomizations:
                made += self.build(name, [], depth + 1)
            elif path.is_file():
                made += _resources(path)
        for path in each.paths("components"):
            made = self.build(os.path.normpath(path), made, depth + 1)
        for patch in each.patches():
            self._patch(each, patch, made)
        for one in made:
            one.obj = transformed(one.obj, each.value)
        prefix, suffix = each.value.get("namePrefix") or "", each.value.get("nameSuffix") or ""
        if isinstance(prefix, str) and isinstance(suffix, str) and (prefix or suffix):
            for one in made:
                one.names |= {f"{prefix}{name}{suffix}" for name in one.names}
        return made

    def _patch(self, each: Kustomization, patch: Patch, made: list[Resource]) -> None:
        key = (patch.chunk.file, patch.chunk.line, patch.pointer)
        self._seen.setdefault(key, (each, patch))
        is_json = isinstance(patch.value, list)
        for one in list(made):
            if not _is_target(patch, one):
                continue
            self._matched.add(key)
            before = one.obj
            value = patch.value
            if not is_json and patch.target is not None:
                value = _for_object(value, before)
            try:
                after = self.apply(before, value)
            except PatchRefused as fault:
                self.applied.append(Applied(patch, before, None, str(fault)))
                continue
            if after is None:
                made.remove(one)
                continue
            one.obj = after
            self.applied.append(Applied(patch, before, after))


_SELECTORS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def transformed(obj: Json, kustomization: Json) -> Json:
    """An object with the namespace and the labels of a kustomization, as far as they decide whether it is valid."""
    namespace = kustomization.get("namespace")
    plain, selecting = _labels(kustomization)
    if not isinstance(namespace, str) and not plain:
        return obj
    obj = {**obj, "metadata": dict(_map(obj.get("metadata")))}
    if isinstance(namespace, str):
        obj["metadata"]["name" if _is_namespace(obj) else "namespace"] = namespace
        subjects = obj.get("subjects")
        if isinstance(subjects, list):
            obj["subjects"] = [
                {"namespace": namespace, **each} if _is_account(each) else each for each in subjects
            ]
        if isinstance(webhooks := obj.get("webhooks"), list):
            obj["webhooks"] = [_in_namespace(each, namespace) for each in webhooks]
    if plain:
        obj["metadata"]["labels"] = {**_map(obj["metadata"].get("labels")), **plain}
    spec = obj.get("spec")
    if selecting and isinstance(spec, dict) and obj.get("kind") in _SELECTORS:
        template = {**_map(spec.get("template"))}
        metadata = {**_map(template.get("metadata"))}
        metadata["labels"] = {**_map(metadata.get("labels")), **selecting}
        selector = {**_map(spec.get("selector"))}
        selector["matchLabels"] = {**_map(selector.get("matchLabels")), **selecting}
        obj["spec"] = {**spec, "selector": selector, "template": {**template, "metadata": metadata}}
    return obj


def _is_namespace(obj: Json) -> bool:
    return obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"


def _in_namespace(webhook: Any, namespace: str) -> Any:
    """A webhook whose Service is in that namespace, if it says none: kustomize follows the name of the Service."""
    client = _map(_map(webhook).get("clientConfig"))
    service = client.get("service")
    if not isinstance(service, dict):
        return webhook
    return {**webhook, "clientConfig": {**client, "service": {"namespace": namespace, **service}}}


def _is_account(subject: Any) -> bool:
    return isinstance(subject, dict) and subject.get("kind") == "ServiceAccount"


def _labels(kustomization: Json) -> tuple[Json, Json]:
    """All labels that a kustomization sets, and those that it sets in selectors too."""
    selecting = {**_map(kustomization.get("commonLabels"))}
    plain = dict(selecting)
    entries = kustomization.get("labels")
    for entry in entries if isinstance(entries, list) else ():
        pairs = _map(_map(entry).get("pairs"))
        plain.update(pairs)
        if _map(entry).get("includeSelectors") is True:
            selecting.update(pairs)
    return plain, selecting


class PatchRefused(Exception):
    """A patch does not fit its target; the text says why."""


def _for_object(patch: Json, obj: Json) -> Json:
    """A patch with a target is for objects of any name: what it calls itself does not count."""
    patch = {**patch, "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    metadata = patch.get("metadata")
    if isinstance(metadata, dict):
        names = {k: v for k, v in metadata.items() if k not in ("name", "namespace")}
        patch["metadata"] = names
    return patch


def _resources(path: Path) -> Iterator[Resource]:
    for chunk in read_quietly(path):
        value = decoded(chunk)
        items = value.get("items") if isinstance(value, dict) and value.get("kind") == "List" else [value]
        for number, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and isinstance(item.get("kind"), str):
                name = str(_map(item.get("metadata")).get("name"))
                yield Resource(item, (os.path.normpath(path), chunk.line, number), {name})


def _is_target(patch: Patch, one: Resource) -> bool:
    obj = one.obj
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    if patch.target is None:
        value = patch.value
        metadata = value.get("metadata") if isinstance(value, dict) else None
        return (
            isinstance(metadata, dict)
            and value.get("kind") == obj.get("kind")
            and str(value.get("apiVersion", "")).rpartition("/")[0] == group
            and metadata.get("name") in one.names
        )
    wanted = patch.target
    metadata = _map(obj.get("metadata"))
    fields = {"group": {group}, "version": {version}, "kind": {str(obj.get("kind"))}, "name": one.names}
    if "namespace" in metadata:
        fields["namespace"] = {str(metadata["namespace"])}
    for name, values in fields.items():
        pattern = wanted.get(name)
        if pattern and not any(_matches(str(pattern), value) for value in values):
            return False
    return _selected(wanted.get("labelSelector"), metadata.get("labels")) and _selected(
        wanted.get("annotationSelector"), metadata.get("annotations")
    )


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:
        return pattern == value


def _selected(selector: Any, labels: Any) -> bool:
    if not selector:
        return True
    pairs = [part.strip() for part in str(selector).split(",")]
    if not isinstance(labels, dict) or any(part.count("=") != 1 or "!" in part for part in pairs):
        return False  # a selector that is not read here chooses nothing rather than too much
    return all(str(labels.get(part.partition("=")[0])) == part.partition("=")[2] for part in pairs)
