"""L1 and L2: what names another object, and what should: secrets written out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.types import ListOf, Primitive, Ref, Struct
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import CONVENTIONS, LintedKind, place_rule

_REFERENCE_FIELDS: Final = frozenset(
    {
        "name",
        "namespace",
        "kind",
        "apiVersion",
        "apiGroup",
        "group",
        "uid",
        "resourceVersion",
        "fieldPath",
        "optional",
    }
    | {"key", "version"}
)
_REFERENCE_NAME: Final = re.compile(
    r"(Refs?|[rR]eferences?|[sS]electors?|KeyRef|[sS]ource)$|^(refs?|from|.*From)$"
)


def _is_reference(body: Struct | None) -> bool:
    """Whether a struct names one object of a kind, and says nothing else: where either may be left out, it selects."""
    names = {field.wire_name for field in body.fields} if body is not None else set()
    needed = {field.wire_name for field in body.fields if field.required} if body is not None else set()
    return names <= _REFERENCE_FIELDS and {"kind", "name"} <= needed


@place_rule(
    "L120 reference-struct",
    why="A struct that names another object is called fooRef; a reader then knows that the thing itself is elsewhere.",
    source=f"{CONVENTIONS}: Object references",
    hint="end the name with Ref (a list of them with Refs)",
)
def reference_struct(place: Place, kind: LintedKind) -> Iterator[str]:
    """A struct that refers to an object has a name that ends in Ref."""
    if not place.in_spec or not place.name or _REFERENCE_NAME.search(place.name):
        return
    node = place.target.type
    of = node.items if isinstance(node, ListOf) else place.target
    if _is_reference(struct_of(of)):
        what = "lists references to objects" if isinstance(node, ListOf) else "refers to an object"
        yield f'"{place.name}" {what}, but its name does not end in Ref'


@place_rule(
    "L121 reference-namespace",
    severity=Severity.NOTE,
    why="An object that reaches into another namespace passes over the borders that RBAC draws, unless that namespace "
    "agrees (as ReferenceGrants do).",
    source=f"{CONVENTIONS}: Object references (namespace)",
    hint="refer to objects of the same namespace alone, or ask the other namespace for its consent",
)
def reference_namespace(place: Place, kind: LintedKind) -> Iterator[str]:
    """References of namespaced objects stay in their namespace."""
    if place.name != "namespace" or not kind.resource.namespaced or not place.in_spec or place.parent is None:
        return
    around = place.parent if place.parent.name else place.parent.parent
    named = around is not None and re.search(r"(Refs?|[rR]eferences?)$", around.name)
    if named or _is_reference(struct_of(place.parent.target)):
        yield f'"{place.path}" lets a namespaced object refer to another namespace'


@place_rule(
    "L214 object-reference",
    why="core/v1 ObjectReference has fields that hardly any user of it honours.",
    source=f"{CONVENTIONS}: Object references",
    hint="declare a struct of your own with just the fields that are used",
)
def object_reference(place: Place, kind: LintedKind) -> Iterator[str]:
    """core/v1 ObjectReference is not reused."""
    node = place.value.type
    if isinstance(node, Ref) and node.name.endswith("core.v1.ObjectReference"):
        yield f'"{place.shown}" reuses core/v1 ObjectReference'
        return
    body = struct_of(place.value)
    if body is not None and {f.wire_name for f in body.fields} >= _OBJECT_REFERENCE:
        yield f'"{place.shown}" copies core/v1 ObjectReference whole'


_OBJECT_REFERENCE: Final = {"apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"}


@place_rule(
    "L225 plain-secret",
    why="Whoever may read the object may then read the secret; it lands in backups, logs and `kubectl get -o yaml`.",
    source=f"{CONVENTIONS}: Object references (secrets are referred to, never embedded)",
    hint="refer to a key of a Secret instead",
)
def plain_secret(place: Place, kind: LintedKind) -> Iterator[str]:
    """Secrets are referred to, never written into a spec."""
    named = place.in_spec and place.primitive is Primitive.STRING and _SECRET.match(place.name)
    if named and not _NO_SECRET.search(place.doc):
        yield f'"{place.name}" looks like a secret in plain text'


_SECRET: Final = re.compile(
    r"(password|passwd|passphrase|passcode|.*Pass(word|wd|phrase)|api[kK]ey|.*A(pi|PI)Key|privateKey|.*PrivateKey|accessToken|"
    r".*(Access|Auth|Bearer|Refresh|Api|API|Session|Security)Token|authToken|apiToken|bearerToken|refreshToken|sessionToken|"
    r"clientSecret|.*ClientSecret|sharedSecret|secretAccessKey|sasToken|.*SecretAccessKey|connectionString|"
    r"hmacKey|preSharedKey|psk)$"
)

# What is said of a field that holds no secret itself: a public key, or where the secret is.
_NO_SECRET: Final = re.compile(
    r"\bpublic key\b(?!.*\bprivate key\b)"
    r"|\b(name|key|path|location)\b (of|to|in|within) (a|an|the)\b.*\b(secret|file)\b",
    re.IGNORECASE | re.DOTALL,
)
