"""What a rule is.

A rule is a function from a ``Subject`` (the whole API, a resource, or a place in one) to messages, and the facts
that explain it: code, severity, profiles, why, where the rule comes from, and what to do. Codes are stable and
never reused: L0 the linting itself, L1 names, L2 types, L3 shape, L4 documentation, L5 versions, L6 rules of the
house (settings say what they forbid). ``RULES`` fills as the rule modules are
imported; ``run.load_rules`` imports them all.

Profiles: ``crd`` for custom resources, ``native`` for API groups in the manner of Kubernetes' own. They differ where
the ecosystems do: an API machinery of your own has Go types and hand-written validation behind it, a CRD has only
what its schema says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from kubewright.diagnostics import Severity
from kubewright.ir.api import Api, Resource
from kubewright.ir.types import Definition
from kubewright.location import Location
from kubewright.tools.lint.places import Place

Profile: TypeAlias = Literal["crd", "native"]
BOTH: Final[frozenset[Profile]] = frozenset({"crd", "native"})
CRD: Final[frozenset[Profile]] = frozenset({"crd"})
NATIVE: Final[frozenset[Profile]] = frozenset({"native"})


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What a project forbids next to the conventions. ``names``: pattern of field names → what to say. ``forbidden``:
    keywords of schemas. ``needed``: keyword → those that must be next to it. ``apart``: groups of which a place
    may have keywords of one only."""

    names: Mapping[re.Pattern[str], str] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apart: tuple[tuple[str, ...], ...] = ()


NO_HOUSE: Final = House()


@dataclass(frozen=True, slots=True)
class LintedKind:
    """One served kind: its resource, its definition, and every place inside it."""

    api: Api
    resource: Resource
    definition: Definition
    places: tuple[Place, ...]
    house: House = NO_HOUSE

    @property
    def is_stored(self) -> bool:
        """Whether objects of the kind can be read back: reviews (create only) answer and are gone."""
        return "get" in self.resource.verbs

    def find(self, path: str) -> Place | None:
        """The place at ``path`` (``spec.replicas``, ``status.conditions[]``), or None."""
        for place in self.places:
            if place.path == path:
                return place
        return None


Finding: TypeAlias = tuple[Location, str, str]
"""Where, the path shown (``widgets.example.com/v1: spec.size``), and what is wrong there."""

KindCheck: TypeAlias = Callable[[LintedKind], Iterator[tuple[Place | None, str]]]
PlaceCheck: TypeAlias = Callable[[Place, LintedKind], Iterator[str]]
ApiCheck: TypeAlias = Callable[[Api], Iterator[tuple[Resource, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRule:
    """One rule and everything ``--explain`` says about it."""

    code: str
    name: str
    severity: Severity
    profiles: frozenset[Profile]
    rationale: str
    source: str
    hint: str
    opt_in: bool = False
    """Whether the rule waits to be named: by its whole code in ``select``, or by a severity of its own."""
    of_place: PlaceCheck | None = None
    of_kind: KindCheck | None = None
    of_api: ApiCheck | None = None


RULES: Final[dict[str, LintRule]] = {}

CONVENTIONS: Final = "API conventions"
DEPRECATION: Final = "Deprecation policy"
CRD_DOCS: Final = "CustomResourceDefinition documentation"


def _add(rule: LintRule) -> None:
    if rule.code in RULES:
        raise ValueError(f"two lint rules have the code {rule.code}")
    RULES[rule.code] = rule


def nothing(api: Api) -> Iterator[tuple[Resource, str]]:
    """Every suppression comment suppresses a finding."""
    yield from ()


_Check = TypeVar("_Check")


class _Register(Generic[_Check]):
    """A decorator that registers a check as a rule; ``field`` is that of LintRule which holds the check."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __call__(
        self,
        code_and_name: str,
        *,
        why: str,
        source: str,
        hint: str,
        severity: Severity = Severity.WARNING,
        profiles: frozenset[Profile] = BOTH,
        opt_in: bool = False,
    ) -> Callable[[_Check], _Check]:
        code, name = code_and_name.split()

        def register(check: _Check) -> _Check:
            held: dict[str, Any] = {self._field: check}
            _add(
                LintRule(
                    code=code,
                    name=name,
                    severity=severity,
                    profiles=profiles,
                    rationale=why,
                    source=source,
                    hint=hint,
                    opt_in=opt_in,
                    **held,
                )
            )
            return check

        return register


place_rule: Final = _Register[PlaceCheck]("of_place")
"""Registers a rule that looks at one place."""
kind_rule: Final = _Register[KindCheck]("of_kind")
"""Registers a rule that looks at one kind as a whole."""
api_rule: Final = _Register[ApiCheck]("of_api")
"""Registers a rule that looks at all resources together."""


UNUSED: Final = LintRule(
    code="L001",
    name="idle-comment",
    severity=Severity.WARNING,
    profiles=BOTH,
    rationale="A comment that passes over nothing hides the next fault of its kind.",
    source="this tool",
    hint="take the comment out",
    of_api=nothing,
)
"""What ``suppress`` finds itself. It is in the registry, so that it is listed and can be explained."""
_add(UNUSED)
