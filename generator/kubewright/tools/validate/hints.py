"""What to write instead: hints for the faults that people make most, drawn from the message and the value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Final

from apimachinery.schema.node import SchemaNode

_WANTED: Final = re.compile(r"cannot unmarshal (\w+) into a field of type (\S+)$")
_SUPPORTED: Final = re.compile(
    r'^Unsupported value: (?:\{"\w+":)?"([^"]*)"\}?: supported values: (.*)$', re.DOTALL
)
_INVALID: Final = re.compile(r'^Invalid value: "([^"]*)": ')
_AMOUNT: Final = re.compile(r"^\s*([0-9.,]+)\s*([A-Za-z]*)\s*$")
_TRUE, _FALSE = ("true", "yes", "on", "y", "1"), ("false", "no", "off", "n", "0")


def of_fault(message: str, value: Any) -> str:
    """The hint for a fault with ``value``; empty where there is none."""
    wanted = _WANTED.search(message)
    if wanted is not None:
        return _of_type(wanted[2], value)
    if "quantities must match" in message:
        return _of_amount(value)
    supported = _SUPPORTED.match(message)
    if supported is not None:
        words = [str(word) for word in re.findall(r'"([^"]*)"', supported[2])]
        if near := _nearest(supported[1], words):
            return f'write "{near}"'
    invalid = _INVALID.match(message)
    if invalid is not None and re.search("RFC 1(123|035)", message):
        return _of_name(str(invalid[1]), dots="subdomain" in message)
    if "`selector` does not match template `labels`" in message:
        return "give spec.template.metadata.labels every label of spec.selector.matchLabels"
    if message.startswith("the number ") and isinstance(value, float):
        return f"write a whole number: {round(value)}"
    return ""


def _of_type(wanted: str, value: Any) -> str:
    if wanted == "string" and isinstance(value, bool):
        word = "true" if value else "false"
        return f'quote it: "{word}" (without quotes YAML takes on, yes and true for a boolean)'
    if wanted == "string" and isinstance(value, float):
        return f'quote it: "{value}", with every digit that you wrote'
    if wanted == "string" and isinstance(value, int):
        return f"quote it: {json.dumps(str(value))}"
    if wanted == "bool" and isinstance(value, str | int):
        word = str(value).lower()
        meant = "true" if word in _TRUE else "false" if word in _FALSE else ""
        return f"write {meant} without quotes" if meant else "write true or false"
    if wanted in ("int32", "int64", "uint32") and isinstance(value, str):
        number = value.strip()
        if number.lstrip("-").isdecimal():
            return f"take the quotes away: {number}"
        return "write a whole number"
    if wanted.startswith("[]"):
        return _of_list(value)
    if isinstance(value, list):
        return "a map is wanted here, not a list: write the fields without dashes"
    if isinstance(value, str) and re.match(r"[\w.-]+:\S", value):
        return f"write `{value.replace(':', ': ', 1)}`, with a colon and a space"
    if isinstance(value, str | int | float):
        return "a map is wanted here: write `key: value` lines below, indented by two spaces"
    if isinstance(value, dict) and not wanted.startswith("map["):
        return "one value is wanted here, not a map"
    return ""


def _of_list(value: Any) -> str:
    if isinstance(value, dict):
        return "a list is wanted here: begin each item with a dash (`- name: …`)"
    shown = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else json.dumps(value)
    return f"a list is wanted here: write [{shown}]"


_UNITS: Final = {
    "": "",
    "b": "",
    "k": "k",
    "kb": "k",
    "kib": "Ki",
    "ki": "Ki",
    "m": "M",
    "mb": "M",
    "mib": "Mi",
    "mi": "Mi",
    "g": "G",
    "gb": "G",
    "gib": "Gi",
    "gi": "Gi",
    "t": "T",
    "tb": "T",
    "tib": "Ti",
    "ti": "Ti",
    "core": "",
    "cores": "",
    "cpu": "",
    "cpus": "",
    "millicores": "m",
    "millicpu": "m",
}
"""What people write for a unit, in lower case, and how Kubernetes spells it."""


def _of_amount(value: Any) -> str:
    text = _AMOUNT.match(str(value))
    if text is None:
        return "write a number and a unit, such as 500m, 1.5, 128Mi or 1Gi"
    number, unit = text[1].replace(",", "."), text[2]
    spelt = unit if unit in ("m", "k") else _UNITS.get(unit.lower())
    if spelt is None:
        return "the units are m, k, M, G, T, Ki, Mi, Gi and Ti"
    return f"write {number}{spelt}"


def _of_name(name: str, *, dots: bool) -> str:
    if "://" in name:
        return f"write the host alone: {re.split('[/:?#]', name.partition('://')[2])[0]}"
    wanted = re.sub(r"[^a-z0-9.-]" if dots else r"[^a-z0-9-]", "-", name.lower())
    wanted = re.sub(r"\.{2,}", ".", wanted).strip("-.")[: 253 if dots else 63].strip("-.")
    return f"lower case letters, digits and dashes: {wanted}" if wanted and wanted != name else ""


def of_kind(api_version: str, kind: str, kinds: Iterable[str], versions: Callable[[str], list[str]]) -> str:
    """The hint for a kind that nobody describes: its apiVersion, or the kind that it is nearest to."""
    known = _of_group(api_version, versions(kind))
    if known:
        return f"write apiVersion: {_best(api_version, known)}"
    near = _nearest(kind, list(kinds))
    if not near:
        return ""
    of_near = _of_group(api_version, versions(near)) or [api_version]
    more = "" if api_version in of_near else f" (apiVersion: {_best(api_version, of_near)})"
    return f"did you mean {near}?{more}"


def _of_group(api_version: str, versions: list[str]) -> list[str]:
    """The apiVersions that a group may have been meant to be: of somebody's own group only its own, or one spelt much
    like it, since a kind of another group that is called the same is another kind."""
    group = api_version.rpartition("/")[0]
    if "." not in group or group.endswith(".k8s.io"):
        return versions
    groups = {version.rpartition("/")[0] for version in versions}
    near = {group} & groups or {*get_close_matches(group, sorted(groups), 1, 0.85)}
    return [version for version in versions if version.rpartition("/")[0] in near]


def _best(api_version: str, versions: list[str]) -> str:
    """The version of the same group where there is one, else a stable one."""
    group = api_version.rpartition("/")[0]
    same = [version for version in versions if version.rpartition("/")[0] == group]
    stable = [version for version in same or versions if not re.search("alpha|beta", version)]
    return (stable or same or versions)[-1]


def _nearest(word: str, known: list[str]) -> str:
    of_lower = {each.lower(): each for each in sorted(known, reverse=True)}
    near = get_close_matches(word.lower(), of_lower, 1, 0.8)
    return of_lower[near[0]] if near else ""


def of_level(path: str, name: str, root: SchemaNode) -> str:
    """Where an unknown field belongs: above it, or below one of its neighbours."""
    parent = path.removesuffix(name).rstrip(".")
    steps = [step for step in re.split(r"[.\[]", parent) if step and not step.endswith("]")]
    way: list[tuple[str, SchemaNode]] = [("", root)]
    for step in steps:
        inner = _field(way[-1][1], step)
        if inner is None:
            return ""
        way.append((f"{way[-1][0]}.{step}".lstrip("."), inner))
    for place, node in reversed(way[:-1]):
        if name in node.properties:
            return _belongs(name, place)
    fields = way[-1][1].properties
    if "matchLabels" in fields:
        return "labels are written below matchLabels"
    if "requests" in fields and name in ("cpu", "memory", "storage", "ephemeral-storage"):
        return f"{name} belongs in requests or limits"
    below = _below(way[-1][1], name, 3)
    return _belongs(name, f"{way[-1][0]}.{below}".lstrip(".")) if below else ""


def _belongs(name: str, place: str) -> str:
    where = f"in {place}" if place else "at the top"
    return f"{name} belongs {where}: check the indentation"


def _field(node: SchemaNode, name: str) -> SchemaNode | None:
    inner = node.properties.get(name)
    if inner is None and isinstance(node.additional, SchemaNode):
        inner = node.additional
    return inner.items if inner is not None and inner.items is not None else inner


def _below(node: SchemaNode, name: str, depth: int) -> str:
    """The shortest way down to the only struct that has a field of that name."""
    level = [("", node)]
    for _ in range(depth):
        level = [
            (f"{way}.{key}".lstrip("."), inner)
            for way, each in level
            for key, inner in each.properties.items()
            if key not in ("status", "metadata") and inner.properties
        ]
        hits = [way for way, each in level if name in each.properties]
        if hits:
            return hits[0] if len(hits) == 1 else ""
    return ""


_BROKEN: Final = (  # what libyaml says, and what to look for
    (
        "mapping values are not allowed",
        "quote a value that holds a colon, or indent this line as the one above",
    ),
    (
        "did not find expected key",
        "indent this line as its neighbours; a value with quotes in it must be quoted as a whole",
    ),
    ("did not find expected '-' indicator", "the items of a list begin with a dash in the same column"),
    ("did not find expected ',' or", "close the bracket, or put a comma between the items"),
    ("could not find expected ':'", "write `key: value`, with a colon and a space"),
    ("found unexpected end of stream", "a quote is opened and never closed"),
    ("found unexpected document", "a quote is opened and never closed"),
    ("found undefined alias", "quote a value that begins with *"),
    ("did not find expected alphabetic or numeric character", "quote a value that begins with * or &"),
    ("found unknown escape character", "write \\\\ for a backslash in double quotes, or use single quotes"),
    ("block sequence entries are not allowed", "a list begins on the line below its key"),
)


def of_broken(message: str, line: str, before: str) -> str:
    """The hint for YAML that cannot be read, by the line named and the one before it."""
    if re.match(r"\s*\t", line) or re.match(r"\s*\t", before):
        return "YAML takes no tabs: indent with spaces"
    if "cannot start any token" in message:
        return "quote a value that begins with %, @ or `"
    return next((hint for part, hint in _BROKEN if part in message), "")


def of_lacking(value: dict[str, Any], lacking: list[str], versions: Callable[[str], list[str]]) -> str:
    """The hint for an object without apiVersion or kind."""
    for name in lacking:
        other = next((key for key in value if key.lower() == name.lower() and key != name), "")
        if other:
            return f"did you mean {name}? It is spelt {other}"
    kind = value.get("kind")
    if lacking == ["apiVersion"] and isinstance(kind, str):
        known = versions(kind)
        return f"write apiVersion: {_best('', known)}" if known else ""
    if lacking == ["kind"]:
        return "name the kind, such as `kind: Deployment`"
    return ""
