"""The authorizer of admission policies: builders of a question, and one ``check`` that asks it.

The caller binds ``authorizer`` to ``Authorizer(ask)``; ``ask`` gets a ``Question`` and returns a ``Decision``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import Opaque


@dataclass(frozen=True)
class Question:
    """What is to be authorized: a path or a resource, for the request's user or a service account."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None


@dataclass(frozen=True)
class _Answer(Opaque):
    allowed: bool
    reason: str = ""
    error: str = ""

    def equals(self, other: Any) -> bool:
        """By value."""
        return bool(self == other)


class Decision(_Answer):
    """``kubernetes.authorization.Decision``; ``error`` is the failure of the authorizer, if any."""

    type_name: ClassVar[str] = "kubernetes.authorization.Decision"


Ask = Callable[[Question], Decision]


@dataclass(frozen=True)
class _Builder(Opaque):
    ask: Ask
    question: Question

    def equals(self, other: Any) -> bool:
        """By what is asked."""
        return bool(self.question == other.question)

    def with_(self, kind: type[_Builder], **parts: Any) -> _Builder:
        return kind(self.ask, replace(self.question, **parts))


class Authorizer(_Builder):
    """``kubernetes.authorization.Authorizer``."""

    type_name: ClassVar[str] = "kubernetes.authorization.Authorizer"

    def __init__(self, ask: Ask, question: Question = Question()):
        super().__init__(ask, question)


class PathCheck(_Builder):
    """A question about a path."""

    type_name: ClassVar[str] = "kubernetes.authorization.PathCheck"


class GroupCheck(_Builder):
    """A group, waiting for its resource."""

    type_name: ClassVar[str] = "kubernetes.authorization.GroupCheck"


class ResourceCheck(_Builder):
    """A question about a resource."""

    type_name: ClassVar[str] = "kubernetes.authorization.ResourceCheck"


AUTHORIZER = t.object_type(Authorizer.type_name)


def _path(held: Authorizer, path: str) -> _Builder:
    if not path:
        raise EvalError("path must not be empty")
    return held.with_(PathCheck, path=path)


def _service_account(held: Authorizer, namespace: str, name: str) -> _Builder:
    from .formats import label, subdomain

    if label(namespace):
        raise EvalError(f"invalid namespace: {namespace}")
    if subdomain(name):
        raise EvalError(f"invalid service account name: {name}")
    return held.with_(Authorizer, service_account=(namespace, name))


def _check(held: _Builder, verb: str) -> Decision:
    if isinstance(held, PathCheck) and not verb:
        raise EvalError("verb must not be empty")
    return held.ask(replace(held.question, verb=verb))


def _setter(part: str) -> Callable[[_Builder, str], _Builder]:
    return lambda held, value: held.with_(ResourceCheck, **{part: value})


def _types(lib: Library) -> None:
    lib.declare_type("authorizer", AUTHORIZER, Authorizer)
    lib.declare_type("pathcheck", t.object_type(PathCheck.type_name), PathCheck)
    lib.declare_type("groupcheck", t.object_type(GroupCheck.type_name), GroupCheck)
    lib.declare_type("resourcecheck", t.object_type(ResourceCheck.type_name), ResourceCheck)
    lib.declare_type("decision", t.object_type(Decision.type_name), Decision)


def authorizer() -> Library:
    """Kubernetes' authorizer library."""
    lib = Library("authorizer")
    _types(lib)
    lib.overload("path", "authorizer_path", "authorizer.(string) pathcheck", _path)
    lib.overload("check", "pathcheck_check", "pathcheck.(string) decision", _check)
    lib.overload(
        "group",
        "authorizer_group",
        "authorizer.(string) groupcheck",
        lambda a, g: a.with_(GroupCheck, group=g),
    )
    lib.overload(
        "serviceAccount",
        "authorizer_serviceaccount",
        "authorizer.(string, string) authorizer",
        _service_account,
    )
    lib.overload(
        "resource",
        "groupcheck_resource",
        "groupcheck.(string) resourcecheck",
        _setter("resource"),
    )
    for part in ("subresource", "namespace", "name"):
        lib.overload(part, f"resourcecheck_{part}", "resourcecheck.(string) resourcecheck", _setter(part))
    lib.overload("check", "resourcecheck_check", "resourcecheck.(string) decision", _check)
    lib.overload("errored", "decision_errored", "decision.() bool", lambda d: bool(d.error))
    lib.overload("error", "decision_error", "decision.() string", lambda d: d.error)
    lib.overload("allowed", "decision_allowed", "decision.() bool", lambda d: d.allowed)
    lib.overload("reason", "decision_reason", "decision.() string", lambda d: d.reason)
    return lib


def authorizer_selectors() -> Library:
    """Selectors in the authorizer's questions."""
    lib = Library("authorizer selectors")
    _types(lib)
    lib.overload(
        "fieldSelector",
        "authorizer_fieldselector",
        "resourcecheck.(string) resourcecheck",
        _setter("field_selector"),
    )
    lib.overload(
        "labelSelector",
        "authorizer_labelselector",
        "resourcecheck.(string) resourcecheck",
        _setter("label_selector"),
    )
    return lib
