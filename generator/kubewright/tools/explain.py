"""``kubewright explain``: what a field of a kind is for, from a release's definitions or from CRDs, without a cluster.

Exit codes: 0 explained, 1 no such kind or field, 2 the command line or input cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from apimachinery.meta.json import Json
from kubewright.config import specs_folder
from kubewright.diagnostics import Diagnostics, printable
from kubewright.ir.versions import join_api_version, version_priority
from kubewright.ir.words import plural_of
from kubewright.source.catalog import read_catalog
from kubewright.source.kubernetes_validate import load
from kubewright.tools.inputs import crds
from kubewright.tools.inputs.sources import DESCRIPTIONS, lacks_prose

FOUND, MISSING, MISUSED = 0, 1, 2
_MARKER = "x-kubernetes-group-version-kind"
_WIDTH = 100
_MAX_DEPTH = 12


def run(options: argparse.Namespace) -> int:
    """Prints group, kind, version, type, description and fields."""
    diagnostics = Diagnostics()
    described = [*_custom(options.crds, diagnostics)]
    document = load(options.kubernetes, diagnostics, with_prose=True)
    if not diagnostics.has_errors and document is not None:
        described += _builtin(document.value["$defs"], options.kubernetes, diagnostics)
    if diagnostics.has_errors or document is None:
        for item in diagnostics:
            print(item, file=sys.stderr)
        return MISUSED
    found = _chosen(described, options.path, options.api_version)
    if found is None:
        return MISSING
    chosen, fields = found
    definitions: dict[str, Json] = document.value["$defs"]
    if chosen.is_builtin and not options.recursive and lacks_prose([f"kubernetes:{options.kubernetes}"]):
        _say(_describe(definitions, chosen.api_version))
    schema: Json = chosen.schema
    passed = chosen.kind
    for name in fields:
        properties = _properties(_resolved(schema, definitions), definitions)
        if name.removesuffix("[]") not in properties:
            _say(f"{passed} has no field {name!r}; {_instead(name, properties)}")
            return MISSING
        schema = properties[name.removesuffix("[]")]
        passed += f".{name}"
    sys.stdout.write(_text(chosen, fields, schema, definitions, recursive=options.recursive))
    return FOUND


def _describe(definitions: dict[str, Json], api_version: str) -> str:
    """Read descriptions from the kubeconfig's cluster; return a note that says so, or where else they are."""
    from kubewright.tools.inputs.cluster_prose import NoClusterError, describe_from_cluster

    try:
        server = describe_from_cluster(definitions, api_version)
    except NoClusterError as reason:
        return f"{DESCRIPTIONS}; no cluster gave them either: {reason}"
    return f"the descriptions are those of the cluster at {server}: a source checkout has none of its own"


def _say(text: str) -> None:
    print(f"kubewright explain: {printable(text)}", file=sys.stderr)


def _chosen(described: list[_Described], path: str, api_version: str) -> tuple[_Described, list[str]] | None:
    """The kind that a path begins with, and the fields that follow; None, with a message to the user, if there is none.
    A kind may be followed by its group, with or without a version: ``ingresses.networking.k8s.io.spec``."""
    first, _, rest = path.partition(".")
    of_name = [d for d in described if first.lower() in d.names]
    found: list[tuple[bool, tuple[int, int, tuple[int, int, int, str]], _Described, str]] = []
    for each in of_name:
        if api_version not in ("", each.api_version) or not (each.served or api_version):
            continue
        group, _, version = each.api_version.rpartition("/")
        for prefix in (f"{version}.{group}", group) if group else (version,):
            if rest == prefix or rest.startswith(f"{prefix}."):
                found.append((True, each.rank, each, rest[len(prefix) + 1 :]))
                break
        else:
            found.append((False, each.rank, each, rest))
    if found:
        _, _, chosen, fields = max(found, key=lambda one: one[:2])
        return chosen, fields.split(".") if fields else []
    if of_name:
        there = ", ".join(sorted({each.api_version for each in of_name}))
        _say(f"no kind {first!r} in {api_version or 'a served version'}; it is in {there}")
    else:
        near = get_close_matches(first.lower(), sorted({name for d in described for name in d.names}), 1)
        meant = f"; did you mean {near[0]!r}?" if near else "; give its CRD by --crds"
        if "/" in first or not first:
            meant = "; a path begins with a kind and has dots: deploy.spec.strategy"
        _say(f"no kind {first!r}{meant}")
    return None


def _instead(name: str, properties: Json) -> str:
    near = get_close_matches(name, properties, 3, 0.6)
    if near:
        return "did you mean " + " or ".join(map(repr, near)) + "?"
    return "it has " + (", ".join(properties) or "no fields")


@dataclass(frozen=True, slots=True)
class _Described:
    api_version: str
    kind: str
    names: frozenset[str]
    schema: Json
    rank: tuple[int, int, tuple[int, int, int, str]]
    served: bool = True

    @property
    def is_builtin(self) -> bool:
        """Whether a release describes it, and no CRD."""
        return self.rank[0] == 0


def _builtin(definitions: Mapping[str, Json], release: str, diagnostics: Diagnostics) -> Iterator[_Described]:
    of_kind = {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in definitions.items()
        for gvk in schema.get(_MARKER, ())
    }
    catalog = read_catalog(specs_folder() / "kubernetes", release, of_kind, diagnostics)
    groups = [group.name for group in catalog.groups]  # the first one wins, as in discovery
    served = {(r.group, r.version, r.kind): r for r in catalog.resources}
    for key, name in of_kind.items():
        group, version, kind = key
        resource = served.get(key)
        names = _names(kind, "")
        if resource is not None:
            names = frozenset({kind.lower(), resource.plural, resource.singular, *resource.short_names})
        place = -groups.index(group) if group in groups else -len(groups)
        rank = (0, place, version_priority(version))
        yield _Described(join_api_version(group, version), kind, names, definitions[name], rank)


def _custom(paths: list[Path], diagnostics: Diagnostics) -> Iterator[_Described]:
    for crd in crds.read_crds(paths, diagnostics):
        spec = crd.value["spec"]
        names = spec.get("names")
        if not isinstance(names, dict):
            continue
        versions = spec.get("versions")
        for version in versions if isinstance(versions, list) else ():
            holder = version.get("schema") if isinstance(version, dict) else None
            schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
            if isinstance(schema, dict):
                kind, name = str(names.get("kind")), str(version.get("name"))
                short = names.get("shortNames")
                known = _names(kind, str(names.get("plural", "")))
                known |= {str(each) for each in short} if isinstance(short, list) else set()
                rank = (1, 0, version_priority(name))
                served = version.get("served") is not False
                yield _Described(f"{spec.get('group')}/{name}", kind, known, schema, rank, served)


def _names(kind: str, plural: str) -> frozenset[str]:
    return frozenset({kind.lower(), plural or plural_of(kind)})


def _resolved(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The schema with what it refers to; its own description wins."""
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref")
        if reference is None and len(only := schema.get("allOf") or []) == 1:
            reference = only[0].get("$ref")
        if not isinstance(reference, str):
            break
        target = definitions.get(reference.rpartition("/")[2], {})
        own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        schema = {**target, **own}
    return schema


def _properties(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The fields of an object, of a list's items, of a map's values."""
    for _ in range(_MAX_DEPTH):
        if "properties" in schema:
            found: Json = schema["properties"]
            return found
        inner = schema.get("items") or schema.get("additionalProperties")
        if not isinstance(inner, dict):
            return {}
        schema = _resolved(inner, definitions)
    return {}


_ALWAYS_NAMED = frozenset({"IntOrString", "Quantity"})
"""Strings and numbers that are called by their name; of others the JSON type says more."""


def _type(schema: Json, definitions: Mapping[str, Json]) -> str:
    """What kubectl shows of a type: the name of a struct, ``[]`` and ``map[string]`` before what they hold."""
    reference = schema.get("$ref") or next((one.get("$ref") for one in schema.get("allOf") or ()), None)
    named = str(reference).rpartition(".")[2] if reference else ""
    schema = _resolved(schema, definitions)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "")
    if schema.get("x-kubernetes-int-or-string"):
        return "IntOrString"
    if kind == "array":
        return f"[]{_type(schema.get('items') or {}, definitions)}"
    if isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
        return f"map[string]{_type(schema['additionalProperties'], definitions)}"
    if named and (named in _ALWAYS_NAMED or kind in (None, "", "object")):
        return named
    return {"object": "Object"}.get(str(kind), str(kind or "Object"))


def _text(
    chosen: _Described, path: list[str], schema: Json, definitions: Mapping[str, Json], *, recursive: bool
) -> str:
    whole = _resolved(schema, definitions)
    group, _, version = chosen.api_version.rpartition("/")
    lines = [f"GROUP:      {group}"] if group else []
    lines += [f"KIND:       {chosen.kind}", f"VERSION:    {version}", ""]
    if path:
        lines += [f"FIELD: {path[-1]} <{_type(schema, definitions)}>", ""]
    if enum := whole.get("enum"):
        lines += ["ENUM:", *(f"    {value}" for value in enum), ""]
    if whole.get("default") is not None:
        lines += [f"DEFAULT: {_json(whole['default'])}", ""]
    lines += ["DESCRIPTION:", *(_wrapped(_prose(schema, definitions), "    ") or ["    <empty>"]), ""]
    if _properties(whole, definitions):
        lines += ["FIELDS:", *_fields(whole, definitions, "  ", recursive, ())]
    return "\n".join(printable(line.rstrip()) for line in lines).rstrip("\n") + "\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fields(
    schema: Json, definitions: Mapping[str, Json], indent: str, recursive: bool, above: tuple[int, ...]
) -> Iterator[str]:
    holder = schema
    while "properties" not in holder:
        holder = _resolved(holder.get("items") or holder.get("additionalProperties") or {}, definitions)
    if id(holder["properties"]) in above or len(above) > _MAX_DEPTH:
        return
    required = holder.get("required") or ()
    for name, field in sorted(holder["properties"].items()):
        needed = " -required-" if name in required else ""
        whole = _resolved(field, definitions)
        yield f"{indent}{name} <{_type(field, definitions)}>{needed}"
        if enum := whole.get("enum"):
            yield f"{indent}enum: {', '.join(map(str, enum))}"
        if whole.get("default") is not None:
            yield f"{indent}default: {_json(whole['default'])}"
        if not recursive:
            own = str(field.get("description") or "<no description>")
            yield from _wrapped(own, indent + "  ")
            yield ""
        elif _properties(whole, definitions):
            below = (*above, id(holder["properties"]))
            yield from _fields(whole, definitions, indent + "  ", recursive, below)


def _prose(schema: Json, definitions: Mapping[str, Json]) -> str:
    """The descriptions of a field, of its type, and of what a list or map of it holds, as kubectl joins them."""
    return "\n".join(_descriptions(schema, definitions, 0))


def _descriptions(schema: Json, definitions: Mapping[str, Json], depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if schema.get("description"):
        yield str(schema["description"])
    references = [schema, *(schema.get("allOf") or ())]
    inner = [definitions.get(str(one["$ref"]).rpartition("/")[2]) for one in references if "$ref" in one]
    inner += [schema.get("items"), schema.get("additionalProperties")]
    for each in inner:
        if isinstance(each, dict):
            yield from _descriptions(each, definitions, depth + 1)


def _wrapped(text: str, indent: str) -> list[str]:
    """Lines of at most ``_WIDTH``; addresses stay whole, so that they can be followed."""
    wrapper = textwrap.TextWrapper(
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    paragraphs = text.strip().split("\n") if text.strip() else []
    return [line for paragraph in paragraphs for line in wrapper.wrap(paragraph) or [""]]
