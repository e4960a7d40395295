"""Declared rules: what a schema cannot say about an API, as data.

Rule files live in the facts folder of a spec, in ``defaults/``, ``validation/``, ``conversions/`` and
``strategies/``; ``source/rules.py`` reads them, the emitters of the same names write code from them.
docs/rules.md describes the language.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubewright.ir.paths import Path
from kubewright.ir.types import ABSENT, Absent, Json
from kubewright.location import Location


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of the value at ``path``: ``test`` is one of ``TESTS``, ``argument`` its parameter. One of a
    ``given`` value is about what the line that goes into the type says, by the name that is its path."""

    path: Path
    test: str
    argument: Json
    given: bool = False


TESTS: dict[str, str] = {
    "above": "the value is a number greater than this one",
    "equals": "the value is this one",
    "not": "the value is not this one",
    "in": "the value is one of a list",
    "not-in": "the value is none of a list",
    "set": "the value is there (true) or not (false); null and the empty string count as missing",
    "empty": "the value is missing, null, 0, false or empty (true), or is none of these (false)",
    "longer": "the value is a list or a map of more items than this",
    "matches": "the value is a string and the RE2 pattern is found in it",
    "only": "the object has no fields but these",
    "any-of": "the object has at least one of these fields",
    "latest-tag": "the value names an image by the tag latest, or by neither tag nor digest",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRule:
    """One line of a defaults file.

    ``action`` is ``default`` (only where the target is missing), ``set`` (always), ``default-entries`` (the
    missing entries of a map), ``remove`` or ``call`` (a function of ``apimachinery.kinds.defaulters`` gets the
    object at the target). The value is ``value``, a copy of what is at ``copy``, ``text`` with ``{path}`` filled
    in, or the list of all values at ``collect``. ``create`` makes missing objects on the way; ``zero`` lets 0,
    false and empty values count as missing.
    """

    action: str
    target: Path
    location: Location = field(compare=False)
    value: Json | Absent = ABSENT
    copy: Path | None = None
    text: str = ""
    lower: bool = False
    collect: Path | None = None
    function: str = ""
    create: bool = False
    zero: bool = False
    when: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRules:
    """The default rules of one type of one group-version, in the order in which they apply."""

    group: str
    version: str
    type_name: str
    rules: tuple[DefaultRule, ...]
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRules:
    """How the objects of one kind of one group-version are written: ``facts`` are arguments of
    ``apimachinery.meta.strategies.Strategy`` by their names, ``phases`` the rules of each function of it
    (``admit``, ``create``, ``update``)."""

    group: str
    version: str
    kind: str
    facts: tuple[tuple[str, Json], ...]
    phases: tuple[tuple[str, tuple[DefaultRule, ...]], ...]
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroValues:
    """How a typed struct of a built-in kind is written: ``written`` fields are there always, with this value
    where nothing else was said; ``kept`` scalars are written although they are zero. ``keyed`` fields are left
    out when zero, yet a list keyed by one takes this value for an item that says nothing."""

    definition: str
    written: tuple[tuple[str, Json], ...]
    kept: tuple[str, ...]
    keyed: tuple[tuple[str, Json], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedField:
    """What OpenAPI documents say of a field besides what its definition and its checks do: the words that it takes,
    or its items do (empty for none, though a check knows some; None where the checks say it), and the value that it
    has by default (one, or none)."""

    definition: str
    name: str
    words: tuple[str, ...] | None
    default: tuple[Json, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldNumber:
    """The number of a field in the protobuf form. ``inline`` holds the fields that are next to the others in
    JSON and in a message of their own in protobuf; ``name`` is then that message's, and no field has it."""

    name: str
    number: int
    inline: tuple[FieldNumber, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldNumbers:
    """All numbers of one definition."""

    definition: str
    fields: tuple[FieldNumber, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoTypes:
    """How Go prints a kind's values: the fields of a struct as text, or the types of a definition's fields that have
    names of their own, or its fields that are elsewhere than their protobuf numbers say, and what each follows. Only
    one of the three is not empty."""

    name: str
    struct: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRule:
    """One line of a validation file: ``check`` names a function of ``apimachinery.kinds.checks`` (or
    ``module.function`` of another module next to it), which gets the value at ``target``, its path and
    ``arguments``; the check ``into`` goes on to the rules of the type that is there, whose conditions may ask for
    ``arguments``, with what the function ``made_by`` makes of the object. ``beside`` hands the
    value at another path to the check as well, ``takes_old`` the stored value; with ``versions`` the line is of those
    alone. Only one that is ``of_missing`` has something to say where there is no value, or goes into an empty object
    there. ``unless`` are conditions of which one at least must not hold."""

    check: str
    target: Path
    location: Location = field(compare=False)
    arguments: tuple[tuple[str, Json], ...] = ()
    made_by: str = ""
    beside: Path | None = None
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()
    versions: tuple[str, ...] = ()
    takes_old: bool = False
    of_missing: bool = False

    @property
    def is_into(self) -> bool:
        """Whether the line goes on to the rules of a field's type."""
        return self.check == "into"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChecks:
    """The checks of one type. Those ``on_create`` are of new objects alone, those ``on_update`` compare with the
    stored object, those ``on_subresource`` are everything asked of a write of that subresource, and only kinds have
    either; ``skipped`` fields are not gone into. Where it is ``remembered``, a value in which nothing is wrong is
    looked through once."""

    group: str
    version: str
    type_name: str
    checks: tuple[CheckRule, ...]
    on_create: tuple[CheckRule, ...] = ()
    on_update: tuple[CheckRule, ...] = ()
    on_subresource: tuple[tuple[str, tuple[CheckRule, ...]], ...] = ()
    skipped: tuple[str, ...] = ()
    remembered: bool = False
    location: Location = field(compare=False)

    @property
    def of_objects(self) -> tuple[CheckRule, ...]:
        """The lines about whole objects, not those about writes of a subresource."""
        return (*self.checks, *self.on_create, *self.on_update)

    @property
    def given(self) -> tuple[str, ...]:
        """The names of what lines that go into the type have to say, as its conditions ask for it."""
        return tuple(
            sorted({c.path.text for rule in self.checks for c in (*rule.when, *rule.unless) if c.given})
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionRule:
    """One line of a conversions file, seen from the spoke.

    ``action`` is ``move`` (with ``values`` words are mapped too), ``wrap`` (a value becomes the first item of a
    list), ``split`` and ``join`` (one string, several), ``default`` (missing means ``spoke_value`` in the spoke,
    ``hub_value`` in the hub), ``constant`` (the hub has a field that is always so), ``keep`` (no place in the other
    version: the value waits in an annotation), ``lose`` (no place, and gone for the reason given), ``seconds`` (a
    duration such as ``1m30s`` on ``side``, its whole seconds on the other), ``group`` (an apiVersion in the spoke, its
    group in the hub; the way back gives it ``version``), ``keyed`` (a map on ``side``, on the other a list whose items
    have the map's keys under ``key`` and, if named, its values under ``field``) or ``call`` (a function of
    ``apimachinery.conversion.converters``, or ``module.function`` of another module next to it, or
    ``package.module.function`` of the user's own, decides, and answers for the paths given).
    """

    action: str
    spoke: tuple[Path, ...]
    hub: tuple[Path, ...]
    location: Location = field(compare=False)
    separator: str = ""
    values: tuple[tuple[str, str], ...] = ()
    spoke_value: Json | Absent = ABSENT
    hub_value: Json | Absent = ABSENT
    function: str = ""
    reason: str = ""
    side: str = "spoke"
    version: str = ""
    key: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """How one kind of a spoke version becomes that of the hub and back. ``annotate`` false: as Kubernetes itself
    converts its built-in kinds, nothing is kept besides what the rules keep. ``notes`` tell what a person who
    moves manifests must know. Where some rule could not be read it is not ``complete``."""

    hub_kind: str
    hub: str
    spoke_kind: str
    spoke: str
    rules: tuple[ConversionRule, ...]
    location: Location = field(compare=False)
    hub_location: Location = field(compare=False)
    annotate: bool = True
    notes: tuple[str, ...] = ()
    removed_in: str = ""
    complete: bool = True
