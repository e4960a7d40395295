"""What a request asks for, as authorization sees it: verb, resource and scope, read from method, path and query alone.

It is read before anything is known of what is served, so that who may not ask learns nothing; hence a path of a
resource that does not exist is judged like any other. And it is read for everybody, so it must cost nearly nothing:
of the query only what is asked here is searched for, and a selector counts only where it is short. A longer one is
authorized as none at all would be, which allows less, never more (kube-apiserver reads it whatever its length).

How a path is read, and what routing reads in it, is in ``meta.asked``.
"""

from __future__ import annotations

from functools import lru_cache

from apimachinery.access.authorization import Attributes, Requirement
from apimachinery.http.messages import Request, User
from apimachinery.meta.asked import asked_of
from apimachinery.meta.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)

SELECTOR_CHARACTERS = 2_048
SELECTOR_COMMAS = 100
"""What authorizers are shown of a selector is at most this; those that name an object or a node are far shorter."""
_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist", ">": "Gt", "<": "Lt"}


def attributes_of(request: Request, user: User) -> Attributes:
    """What ``user`` asks with ``request``; kept with the request, for whoever wants to know it next."""
    asked = asked_of(request)
    # Impersonation replaces the user; what was read for the one before does not count.
    kept: Attributes | None = asked.attributes
    if kept is not None and kept.user is user:
        return kept
    scope = asked.scope
    if scope is None:
        # The method counts as the verb of other paths.
        attributes = Attributes(user, request.method.lower(), path=request.path, is_resource=False)
    else:
        attributes = Attributes(user, *scope, request.path)
        if not scope.name:
            _of_collection(request, attributes)
    asked.attributes = attributes
    return attributes


def _of_collection(request: Request, attributes: Attributes) -> None:
    """Makes it a request of a collection, which names no object: get becomes list or watch, delete deletecollection."""
    reads = attributes.verb == "get"
    if reads:
        attributes.verb = "list"
    elif attributes.verb == "delete":
        attributes.verb = "deletecollection"
    if request.query_string and attributes.verb in ("list", "watch", "deletecollection"):
        # Only these verbs carry selectors to authorizers (KEP-4601).
        fields = _selector(request, "fieldSelector")
        if reads:
            _read_query(request, attributes, fields)
        attributes.field_selector = _fields(fields)
        attributes.label_selector = _labels(_selector(request, "labelSelector"))


def _read_query(request: Request, attributes: Attributes, text: str) -> None:
    """Sets the verb watch if the query asks for one, and the name if the field selector ``text`` names one object."""
    watch = request.sought_first("watch", SELECTOR_CHARACTERS)
    # Like kube-apiserver's conversion of booleans: any value but these is true, the empty one too.
    if watch is not None and watch.lower() not in ("false", "0"):
        attributes.verb = "watch"
    name = _exact_name(text) if "metadata.name" in text else None
    # A name that could not be the last segment of a path is no name of an object.
    if name and name not in (".", "..") and "/" not in name and "%" not in name:
        attributes.name = name


def _selector(request: Request, name: str) -> str:
    """A selector of the query, empty where there is none, and where it is too long to be read for everybody."""
    text = request.sought_first(name, SELECTOR_CHARACTERS) or ""
    return text if text.count(",") <= SELECTOR_COMMAS else ""


@lru_cache(maxsize=128)
def _exact_name(text: str) -> str | None:
    try:
        return parse_field_selector(text).exact("metadata.name")
    # An unreadable selector is refused later, with its message; authorization judges without it.
    except SelectorError:
        return None


@lru_cache(maxsize=128)
def _fields(text: str) -> tuple[Requirement, ...] | None:
    if not text:
        return None
    try:
        return tuple(field_requirements(parse_field_selector(text)))
    except SelectorError:
        return None


@lru_cache(maxsize=128)
def _labels(text: str) -> tuple[Requirement, ...] | None:
    if not text:
        return None
    try:
        return tuple(label_requirements(parse_label_selector(text)))
    except SelectorError:
        return None


def field_requirements(selector: FieldSelector) -> list[Requirement]:
    """A field selector in the words of an access review."""
    return [(term.field, "NotIn" if term.negated else "In", (term.value,)) for term in selector.terms]


def label_requirements(selector: LabelSelector) -> list[Requirement]:
    """A label selector in the words of an access review; ``<`` and ``>`` have none there and are left out."""
    return [
        (requirement.key, _OPERATORS[requirement.operator], requirement.values)
        for requirement in selector.requirements
        if requirement.operator not in "<>"
    ]
