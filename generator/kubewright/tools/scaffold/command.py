"""``kubewright scaffold``: the folder of an API group, a kind in it, a further version of a kind, its controller, the
group's webhook; and what becomes of a kind later: a field renamed or split, another version stored, a kind moved to
another group, a version or a kind deprecated and taken away.

What it writes passes ``validate --strict``, ``lint`` and ``lifecycle``, generates, and is served. Nothing is ever
overwritten: a file that exists already is an error before anything is written, and a fault on the way leaves nothing
behind. Files that a group or kind shares (kustomization, CRD, conversion rules, release plan, hooks) are edited with
comments and order kept. Only ``retire`` deletes files, and only what belongs to what it takes away.

Exit codes: 0 written, 1 something is there already, 2 the command line or a present file cannot be used, 3 the machine
refused. Where a required value is missing, a terminal is asked for all that are not given; elsewhere it is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import yaml

from kubewright.ir.versions import is_version
from kubewright.ir.words import plural_of
from kubewright.tools.arguments.scaffold import SCOPES
from kubewright.tools.scaffold.asking import Asking, asking
from kubewright.tools.scaffold.changes import KindFile, make_hub, rename_field, split_field, store_version
from kubewright.tools.scaffold.contents import KindNames, group_of, new_group, new_kind, new_version
from kubewright.tools.scaffold.controllers import new_controller
from kubewright.tools.scaffold.moving import NewHome, move_kind
from kubewright.tools.scaffold.release_plan import next_release
from kubewright.tools.scaffold.retiring import deprecate, retire_kind, retire_version
from kubewright.tools.scaffold.webhooks import new_webhook
from kubewright.tools.scaffold.writing import FilePlan, RefusedError

_ANSWERS = ("yes", "no")
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_WORD = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_FORMS = {
    "NAME": (_WORD, "a lower-case word such as shop"),
    "--domain": (rf"{_LABEL}(?:\.{_LABEL})+", "a DNS domain such as example.com"),
    "--group": (rf"{_WORD}(?:\.{_LABEL})+", "a DNS subdomain such as shop.example.com"),
    "--kind": (r"[A-Z][A-Za-z0-9]{0,62}", "a word in CamelCase such as Widget"),
    "--plural": (_WORD, "a lower-case word such as widgets"),
    "--short-name": (_WORD, "a lower-case word such as wd"),
    "--column": (
        r"[A-Z][A-Za-z0-9]{0,30}=(?:\.[a-zA-Z][a-zA-Z0-9]*)+",
        "a name and a path such as Mode=.spec.mode",
    ),
    "--release": (r"[0-9]{1,4}\.[0-9]{1,4}", "a release such as 1.4"),
}
"""Flag → form of its value, and in words. RFC 1123 labels; groups and resources begin with a letter."""


def run(options: argparse.Namespace) -> int:
    """Writes the files and lists them; returns the exit code."""
    try:
        plan = _PLANS[options.thing](options)
        plan.write()
    except RefusedError as refusal:
        print(f"kubewright scaffold: {refusal}", file=sys.stderr)
        return refusal.code
    for path in plan.new:
        print(f"wrote {path}")
    for path in plan.edits:
        print(f"edited {path}")
    for path in plan.gone:
        print(f"deleted {path}")
    for note in plan.notes:
        print(note, file=sys.stderr)
    return 0


def _group(options: argparse.Namespace) -> FilePlan:
    ask = asking(options.name, options.domain)
    name = ask.value("NAME", options.name, _form("NAME"))
    domain = ask.value("--domain", options.domain, _form("--domain"))
    if len(f"{name}.{domain}") > 200:
        raise RefusedError(f"the group {name}.{domain} is longer than 200 characters")
    out = ask.value("--output", str(options.output) if options.output else None, default=lambda: name)
    return new_group(name, domain, Path(out))


def _kind(options: argparse.Namespace) -> FilePlan:
    folder_group = group_of(options.output)
    ask = asking(options.kind, options.group or folder_group, options.version)
    kind = ask.value("KIND", options.kind, _form("--kind"))
    group = ask.value(
        "--group", options.group, _form("--group"), (lambda: folder_group) if folder_group else None
    )
    version = ask.value(
        "--version", options.version, _version_name, _first_version if ask.interactive else None
    )
    plural = ask.value("--plural", options.plural, lambda text: _plural(text, kind), lambda: plural_of(kind))
    short_name = ask.value("--short-name", options.short_name or None, _form("--short-name"), lambda: "")
    scope = ask.value("--scope", options.scope, _scope, lambda: SCOPES[0])
    columns = _columns(options, ask)
    release = ask.value(
        "--release", options.release, _form("--release"), lambda: next_release(options.output)
    )
    if len(f"{plural}.{group}") > 200:
        raise RefusedError(f"the name {plural}.{group} is longer than 200 characters")
    return new_kind(
        KindNames(kind, plural, group, version, scope, short_name, release, columns), options.output
    )


def _version(options: argparse.Namespace) -> FilePlan:
    ask = asking(options.version, options.kind)
    kind = ask.value("--kind", options.kind, _form("--kind"))
    file = KindFile.of(kind, options.group, options.output)
    version = ask.value("VERSION", options.version, _version_name)
    if options.hub:
        if options.storage is not None:
            raise RefusedError("--hub and --storage are two steps", "run the command once for each")
        return make_hub(file, version)
    if version in file.versions and options.storage:
        return store_version(file, version, _release(options, ask, file, version))
    given = None if options.storage is None else _ANSWERS[not options.storage]
    storage = ask.value("--storage", given, _yes_or_no, lambda: "no") == "yes"

    def release(copied: str) -> str:
        return ask.value(
            "--release",
            options.release,
            _form("--release"),
            lambda: next_release(options.output, copied, kind),
        )

    return new_version(version, kind, options.group, storage, options.output, release)


def _rename(options: argparse.Namespace) -> FilePlan:
    file, version = _chosen(options)
    return rename_field(file, version, options.field, options.name)


def _split(options: argparse.Namespace) -> FilePlan:
    file, version = _chosen(options)
    return split_field(file, version, options.field, options.part, options.separator or "")


def _move(options: argparse.Namespace) -> FilePlan:
    ask = asking(options.kind, options.to_group)
    file = KindFile.of(ask.value("KIND", options.kind, _form("--kind")), options.group, options.output)
    group = ask.value("--to-group", options.to_group, _form("--group"))
    kind = ask.value("--to-kind", options.to_kind, _form("--kind"), lambda: file.kind)
    same = kind == file.kind
    plural = ask.value(
        "--to-plural",
        options.to_plural,
        lambda text: _plural(text, kind),
        lambda: file.crd["spec"]["names"]["plural"] if same else plural_of(kind),
    )
    release = _release(options, ask, file, file.versions[-1])
    return move_kind(file, NewHome(group, kind, plural, release))


def _retire(options: argparse.Namespace) -> FilePlan:
    ask = asking(options.kind)
    file = KindFile.of(ask.value("--kind", options.kind, _form("--kind")), options.group, options.output)
    version = _version_name(options.version) if options.version else ""
    if version:
        file.entry(version)
    release = _release(options, ask, file, version)
    if options.deprecate:
        return deprecate(file, [version] if version else file.versions, release)
    return retire_version(file, version, release) if version else retire_kind(file, release)


def _chosen(options: argparse.Namespace) -> tuple[KindFile, str]:
    """The kind, and the version that is to change: the newest one unless said."""
    ask = asking(options.kind)
    file = KindFile.of(ask.value("--kind", options.kind, _form("--kind")), options.group, options.output)
    return file, _version_name(options.version) if options.version else file.versions[-1]


def _release(options: argparse.Namespace, ask: Asking, file: KindFile, version: str) -> str:
    """The release in which something happens to a version that is there."""
    return ask.value(
        "--release",
        options.release,
        _form("--release"),
        lambda: next_release(
            file.folder, file.api_version(version) if options.thing == "version" else "", file.kind
        ),
    )


def _controller(options: argparse.Namespace) -> FilePlan:
    ask = asking(options.kind)
    kind = ask.value("KIND", options.kind, _form("--kind"))
    version = _version_name(options.version) if options.version else ""
    return new_controller(kind, options.group, version, options.output)


def _webhook(options: argparse.Namespace) -> FilePlan:
    return new_webhook(options.output)


_PLANS = {
    "group": _group,
    "kind": _kind,
    "version": _version,
    "controller": _controller,
    "webhook": _webhook,
    "rename": _rename,
    "split": _split,
    "move": _move,
    "retire": _retire,
}


def _columns(options: argparse.Namespace, ask: Asking) -> tuple[tuple[str, str], ...]:
    given = options.column
    if given is None and ask.interactive:
        answer = ask.value(
            "--column", None, lambda text: " ".join(map(_form("--column"), text.split())), lambda: ""
        )
        given = answer.split()
    columns = [_form("--column")(text).partition("=") for text in given or ()]
    names = [name for name, _, _ in columns]
    if len({*names, "Ready", "Age"}) != len(names) + 2:
        raise RefusedError("--column: column names must be unique, and Ready and Age are always there")
    return tuple((name, path) for name, _, path in columns)


def _first_version() -> str:
    return "v1alpha1"


def _plural(text: str, kind: str) -> str:
    plural = _formed("--plural", text)
    _formed("--plural", kind.lower())
    if plural == kind.lower():
        raise RefusedError(f"the plural {plural} is the same as the kind", "pass another one with --plural")
    return plural


def _scope(text: str) -> str:
    if text not in SCOPES:
        raise RefusedError(f"--scope {text!r}: must be {' or '.join(SCOPES)}")
    return text


def _yes_or_no(text: str) -> str:
    if text.lower() not in ("y", "n", *_ANSWERS):
        raise RefusedError(f"{text!r}: answer yes or no")
    return _ANSWERS[text.lower().startswith("n")]


def _form(flag: str) -> Callable[[str], str]:
    """Checks a value of a flag."""
    return lambda value: _formed(flag, value)


def _formed(flag: str, value: str) -> str:
    form, words = _FORMS[flag]
    if not re.fullmatch(form, value):
        raise RefusedError(f"{flag} {value!r}: must be {words}")
    # Words that YAML 1.1 reads as booleans or null would need quotes wherever somebody writes the name.
    if flag != "--release" and (value.lower() in ("y", "n") or yaml.safe_load(value) != value):
        raise RefusedError(f"{flag} {value!r}: YAML would not read this as text", "choose another name")
    return value


def _version_name(value: str) -> str:
    if not is_version(value) or len(value) > 63:
        raise RefusedError(f"{value!r}: must be a version such as v1alpha1, v1beta2 or v1")
    return value
