"""``kubewright scaffold``: the folder of an API group, a kind in it, a further version of a kind.

What it writes passes ``validate --strict`` and ``lint`` (but L501 while a less stable version than the new one is
stored: when storage moves is the author's to say), generates, and is served. Nothing is ever overwritten: a file
that exists already is an error before anything is written, and a fault on the way leaves nothing behind. Files that a
group or kind shares (kustomization, CRD, conversion rules) are edited with comments and order kept.

Exit codes: 0 written, 1 something is there already, 2 the command line or a present file cannot be used, 3 the machine
refused. Required values that are missing are asked for on a terminal, and are an error elsewhere.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import yaml

from kubewright.ir.versions import is_version
from kubewright.tools.scaffolding.contents import Kind, new_group, new_kind, new_version
from kubewright.tools.scaffolding.writing import Plan, RefusedError

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_WORD = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_FORMS = {
    "NAME": (_WORD, "a lower-case word such as shop"),
    "--domain": (rf"{_LABEL}(?:\.{_LABEL})+", "a DNS domain such as example.com"),
    "--group": (rf"{_WORD}(?:\.{_LABEL})+", "a DNS subdomain such as shop.example.com"),
    "--kind": (r"[A-Z][A-Za-z0-9]{0,62}", "a word in CamelCase such as Widget"),
    "--plural": (_WORD, "a lower-case word such as widgets"),
    "--short-name": (_WORD, "a lower-case word such as wd"),
}
"""Flag → form of its value, and in words. RFC 1123 labels; groups and resources begin with a letter."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    things = parser.add_subparsers(dest="thing", metavar="group|kind|version", required=True)
    group = things.add_parser("group", help="the folder of an API group")
    group.add_argument("name", nargs="?", help="first label of the group")
    group.add_argument("--domain", help="the rest of the group, such as example.com")
    group.add_argument("--out", type=Path, metavar="DIR", help="the folder to make (default: NAME)")
    kind = things.add_parser("kind", help="a kind in the folder of a group")
    kind.add_argument("kind", nargs="?", metavar="KIND", help="CamelCase, such as Widget")
    kind.add_argument("--group", help="such as shop.example.com")
    kind.add_argument("--version", help="such as v1alpha1")
    kind.add_argument("--plural", help="default: by the rules of English")
    kind.add_argument("--short-name", default="", help="what kubectl takes for it too")
    kind.add_argument("--scope", choices=["Namespaced", "Cluster"], default="Namespaced")
    kind.add_argument(
        "--out", type=Path, metavar="DIR", default=Path(), help="folder of the group (default: .)"
    )
    version = things.add_parser("version", help="a further version of a kind: a copy of the newest one")
    version.add_argument("version", nargs="?", metavar="VERSION", help="such as v1beta1")
    version.add_argument("--kind", help="kind of the CRD in DIR/crds")
    version.add_argument("--group", default="", help="where several groups have the kind")
    version.add_argument("--storage", action="store_true", help="make it the storage version")
    version.add_argument(
        "--out", type=Path, metavar="DIR", default=Path(), help="folder of the group (default: .)"
    )


def run(options: argparse.Namespace) -> int:
    """Writes the files and lists them; returns the exit code."""
    try:
        plan = {"group": _group, "kind": _kind, "version": _version}[options.thing](options)
        plan.write()
    except RefusedError as refusal:
        print(f"kubewright scaffold: {refusal}", file=sys.stderr)
        return refusal.code
    for path in plan.new:
        print(f"wrote {path}")
    for path in plan.edits:
        print(f"edited {path}")
    for note in plan.notes:
        print(note, file=sys.stderr)
    return 0


def _group(options: argparse.Namespace) -> Plan:
    name = _formed("NAME", _wanted(options.name, "NAME"))
    domain = _formed("--domain", _wanted(options.domain, "--domain"))
    if len(f"{name}.{domain}") > 200:
        raise RefusedError(f"the group {name}.{domain} is longer than 200 characters")
    return new_group(name, domain, options.out or Path(name))


def _kind(options: argparse.Namespace) -> Plan:
    kind = _formed("--kind", _wanted(options.kind, "KIND"))
    group = _formed("--group", _wanted(options.group, "--group"))
    version = _version_name(_wanted(options.version, "--version"))
    plural = _formed("--plural", options.plural or plural_of(kind))
    _formed("--plural", kind.lower())
    short_name = _formed("--short-name", options.short_name) if options.short_name else ""
    if plural == kind.lower():
        raise RefusedError(f"the plural {plural} is the kind itself", "give another one with --plural")
    if len(f"{plural}.{group}") > 200:
        raise RefusedError(f"the name {plural}.{group} is longer than 200 characters")
    return new_kind(Kind(kind, plural, group, version, options.scope, short_name), options.out)


def _version(options: argparse.Namespace) -> Plan:
    version = _version_name(_wanted(options.version, "VERSION"))
    kind = _formed("--kind", _wanted(options.kind, "--kind"))
    return new_version(version, kind, options.group, options.storage, options.out)


def plural_of(kind: str) -> str:
    """The plural of a kind, in lower case, by the rules that English mostly keeps to."""
    word = kind.lower()
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}s"


def _wanted(value: str | None, flag: str) -> str:
    """A required value: given, asked for on a terminal, else refused."""
    if value is None and sys.stdin.isatty():
        print(f"{flag}: ", end="", file=sys.stderr, flush=True)
        value = sys.stdin.readline().strip()
    if not value:
        raise RefusedError(f"{flag} is required", "there is no terminal to ask on" if value is None else "")
    return value


def _formed(flag: str, value: str) -> str:
    form, words = _FORMS[flag]
    if not re.fullmatch(form, value):
        raise RefusedError(f"{flag} {value!r} is not {words}")
    # Words that YAML 1.1 reads as booleans or null would need quotes wherever somebody writes the name.
    if value.lower() in ("y", "n") or yaml.safe_load(value) != value:
        raise RefusedError(f"{flag} {value!r} is no text to YAML", "take another name")
    return value


def _version_name(value: str) -> str:
    if not is_version(value) or len(value) > 63:
        raise RefusedError(f"{value!r} is not a version such as v1alpha1, v1beta2 or v1")
    return value
