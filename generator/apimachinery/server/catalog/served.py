"""A served resource: one resource at one version, with everything that a request needs compiled once.

Theory. What the tables say (``Resource``) and what is compiled of it (schema, merge type, typed form, views) are
kept together, so a request looks one thing up and decides nothing twice. Compiling is lazy: a server starts
before it has compiled what nobody asks for.

Objects are stored at one version of their kind, the *storage version*; the others are converted when read and
before they are written. ``to_storage`` and ``from_storage`` are None where nothing is to be done. A record tells its
version by its first bytes, as every object is encoded with ``kind`` and ``apiVersion`` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from apimachinery.cel.schemas.crd import CompiledRules
from apimachinery.kinds.hooks import Hooks, Json
from apimachinery.kinds.metadata_checks import checks_of
from apimachinery.merge.apply import FieldOwnership, keeps_empty_in
from apimachinery.merge.patch_type import PatchType
from apimachinery.merge.typed import MergeType
from apimachinery.merge.updater import VersionConverter
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.names import NAME_RULES
from apimachinery.meta.object_meta import NameRule
from apimachinery.meta.release import RELEASE
from apimachinery.meta.resources import Resource, Subresource
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.custom import CustomSchema
from apimachinery.schema.interface import CompiledSchema
from apimachinery.schema.known_specs import KnownSpecs
from apimachinery.schema.typed_form import TypedForm
from apimachinery.server.catalog.family import Family
from apimachinery.storage.interface import Record
from apimachinery.wire.json import decode, encode, encode_as_go

CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""What every custom resource can do, in the order of discovery."""
Change = Callable[[Json], Json]
"""An object at another version; may change and return its argument."""


@dataclass(slots=True)
class Compiled:
    """What makes objects of one kind and version good: functions over plain JSON, made when first asked for.

    ``stated`` is what schemas say of values, for kinds whose values schemas describe; ``validator`` what they cannot,
    and ``subresource_validators`` what is asked instead where one of those subresources is written. ``printed`` puts a
    fault of those into the words of the kind's Go struct. ``in_struct_order`` gives an object
    with its fields as kube-apiserver orders them.
    """

    schema: CompiledSchema
    merge_type: MergeType
    to_form: TypedForm | None = None
    defaulter: Callable[[Json], None] | None = None
    validator: Callable[[Json, Json | None], list[FieldError]] | None = None
    subresource_validators: Mapping[str, Callable[[Json, Json], Iterable[FieldError]]] = field(
        default_factory=dict
    )
    printed: Callable[[FieldError], FieldError] | None = None
    rules: CompiledRules | None = None
    scale: Json | None = None
    stated: CustomSchema | None = None
    patch_type: Callable[[], PatchType] | None = None
    converter: VersionConverter | None = None
    in_struct_order: Callable[[Json], Json] | None = None
    status_ignored: Mapping[str, Any] = field(default_factory=dict)
    main_ignored: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How objects of a kind are treated: as built in or custom, by which declared strategy, with which hooks."""

    family: Family
    strategy: Strategy
    hooks: Hooks


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Where objects are kept and at which version.

    ``prefix`` begins their keys; empty for what is not stored. ``fresh_since`` is the revision from which on stored
    objects were written through this very schema; older ones are brought into form when read. ``all_from_storage`` is
    there where somebody else is asked to convert, many objects with one call.
    """

    prefix: str
    version: str
    to_storage: Change | None = None
    from_storage: Change | None = None
    fresh_since: int = 0
    all_from_storage: Callable[[list[Json]], list[Json]] | None = None


_numbers = count()
REVIEW_BYTES = 4 << 20
"""What a conversion webhook is shown at a time, or one object."""
KEPT_FORMS = 4
"""Of how many versions, and definitions of days before, a record keeps the bytes that they show."""


class Served:
    """One resource at one version.

    ``registry`` is what messages call the place where its objects are kept, ``described`` a custom resource's schema.
    """

    def __init__(
        self,
        resource: Resource,
        behaviour: Behaviour,
        stored: StoredAs,
        compile: Callable[[], Compiled],
        *,
        warnings: tuple[str, ...] = (),
        terminating: bool = False,
        described: Json | None = None,
    ) -> None:
        self.resource = resource
        self.group, self.version, self.kind = resource.group, resource.version, resource.kind
        self.plural = resource.plural
        # What requests are counted under, by verb, subresource and scope: looked up with each of them.
        self.counted: dict[tuple[str, str, bool, bool], Any] = {}
        self.named = (resource.group, resource.version, resource.plural)
        self.api_version = resource.api_version
        self.list_kind = resource.list_kind or f"{resource.kind}List"
        self.namespaced = resource.namespaced
        self.verbs = frozenset(resource.verbs)
        self.only_created = self.verbs <= {"create"}
        self.listed = "list" in self.verbs
        self.subresources: dict[str, Subresource] = {sub.name: sub for sub in resource.subresources}
        self.has_status = "status" in self.subresources
        self.family, self.strategy, self.hooks = behaviour.family, behaviour.strategy, behaviour.hooks
        self.builtin = self.family.builtin
        self.name_rule: NameRule = self.hooks.name_rule or NAME_RULES[self.strategy.name]
        self.metadata_checks, self.status_metadata_checks = checks_of(
            self.group, self.kind, builtin=self.builtin
        )
        self.prefix = stored.prefix
        self.registry = self.family.registry(resource.group, resource.plural)
        self.storage_version = stored.version
        self.to_storage = stored.to_storage
        self.from_storage = stored.from_storage
        self.fresh_since = stored.fresh_since
        self._all_from_storage = stored.all_from_storage
        # Whether to read and write objects may mean to wait for a webhook, so it is done on threads for that.
        self.asks = stored.all_from_storage is not None
        self.warnings = warnings
        self.terminating = terminating
        self.described = described
        # Kinds that two groups share are spoken of as of the group that stores them.
        self.said_group = "" if self.builtin and self.prefix.startswith("/core/") else resource.group
        self.opening = encode(self.family.type_meta(self.kind, self.api_version))[:-1]
        # Stands for this resource in the keys of caches, which then do not keep its schemas alive.
        self.number = next(_numbers)
        self.views: dict[str, Any] = {}
        self.known_specs, self._formed_specs = KnownSpecs(), KnownSpecs()
        self.release = RELEASE  # of the catalog that holds the resource
        self.ttl = 0  # seconds after which storage ends an object; 0 for never
        # Whether it takes long to compile, which is then done apart from the loop before the first request. Built-in
        # kinds import their modules, which takes longest where Python keeps no compiled ones.
        self.heavy = self.builtin
        # Whether its definition names certificates for conversion that cannot be read: every request is refused. Where
        # it is not established for that, documents do not show it.
        self.unresolved = self.hidden = False
        self._compile = compile
        self._ownership: dict[str, FieldOwnership] = {}

    @cached_property
    def compiled(self) -> Compiled:
        """The functions of the kind."""
        return self._compile()

    def warm(self) -> None:
        """Compiles before the functions are asked for; for another thread than the loop's, which must not wait for
        the lock of ``cached_property`` meanwhile."""
        if "compiled" not in self.__dict__:
            self.__dict__["compiled"] = self._compile()
        self.heavy = False

    def form(self, obj: Json) -> None:
        """Brings an object that was read, and changed since, into typed form."""
        to_form = self.compiled.to_form
        if to_form is None:
            return
        aside = self._formed_specs.set_aside(obj)
        to_form(obj)
        if aside is not None:
            aside.put_back(obj)
            aside.learn(obj)

    @cached_property
    def first_status(self) -> Any:
        """The default of a custom resource's status, which its creator cannot write; None where there is none."""
        if self.builtin or not self.has_status:
            return None
        empty: Json = {}
        self.compiled.schema.default(empty)
        return empty.get("status")

    @cached_property
    def binary_fields(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the kind's fields that hold bytes; ``*`` is any key and any index."""
        return self.compiled.schema.binary_fields()

    def key(self, namespace: str, name: str) -> str:
        """The storage key of an object."""
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name

    def scope(self, namespace: str) -> str:
        """The storage scope of a list."""
        return f"{self.prefix}{namespace}/" if namespace else self.prefix

    def registry_key(self, namespace: str, name: str) -> str:
        """Where messages say that an object is kept."""
        return f"{self.registry}/{namespace}/{name}" if namespace else f"{self.registry}/{name}"

    def ownership(self, subresource: str) -> FieldOwnership:
        """Who owns which field, for writes of the object itself or through a subresource."""
        found = self._ownership.get(subresource)
        if found is None:
            compiled = self.compiled
            ignored: Mapping[str, Any] = {}
            if subresource == "status" or subresource in self.hooks.of_status:
                ignored = compiled.status_ignored
            elif self.has_status:
                ignored = compiled.main_ignored
            found = self._ownership[subresource] = FieldOwnership(
                api_version=self.api_version,
                kind=self.kind,
                type=compiled.merge_type,
                subresource=subresource,
                converter=compiled.converter,
                ignored=ignored,
                empty=self._empty(),
                keeps_empty=keeps_empty_in(self.release),
            )
        return found

    def every_version(self) -> set[str]:
        """The apiVersions under which managedFields of the kind may stand."""
        return {self.api_version, self.storage_version}

    def _empty(self) -> Json:
        """What an object of the kind has that nobody set."""
        empty: Json = {"metadata": {}}
        if self.compiled.to_form is not None:
            self.compiled.to_form(empty)
        return {key: value for key, value in empty.items() if key not in ("apiVersion", "kind", "metadata")}

    @property
    def has_namespace_label(self) -> bool:
        """Whether objects are selected by their namespace: not those of cluster-wide kinds that are custom, or have
        labels of their own."""
        return self.namespaced or (self.builtin and not self.hooks.selectable)

    def blank(self) -> Json:
        """What an empty object of a typed kind shows besides its metadata."""
        if not self.builtin:
            return {}
        shown = self._empty()
        for name, held in self.hooks.blank.items():
            shown[name] = {**shown.get(name, {}), **held} if isinstance(held, dict) else held
        return shown

    def is_plain(self, record: Record) -> bool:
        """Whether a record's bytes are what this version shows."""
        return (self.from_storage is None and not self.family.changes_when_read) or (
            record.revision > self.fresh_since and record.value.startswith(self.opening)
        )

    def read(self, record: Record) -> Json:
        """A record's object at this version, the caller's own."""
        if self.asks:
            shown: Json = decode(self.shown(record))
            return shown
        obj: Json = decode(record.value)
        return obj if self.is_plain(record) else self.in_form(obj)

    def in_form(self, obj: Json) -> Json:
        """A stored object at this version: converted, pruned and defaulted where that is due."""
        if self.from_storage is not None:
            return self.from_storage(obj)
        self.family.refresh(self.compiled.schema, obj)
        return obj

    def shown(self, record: Record) -> bytes:
        """A record's bytes at this version; what had to be made is kept with the record."""
        if self.is_plain(record):
            return record.value
        found: bytes | None = record.memo.get(self.number) if record.memo is not None else None
        if found is None:
            found = self._keep(record, encode_as_go(self.in_form(decode(record.value))))
        return found

    def _keep(self, record: Record, shown: bytes) -> bytes:
        memo = record.memo
        if memo is None:
            memo = record.memo = {}
        made = [key for key in memo if isinstance(key, int)]
        if len(made) >= KEPT_FORMS:
            del memo[made[0]]
        memo[self.number] = shown
        return shown

    def prepare(self, records: Iterable[Record]) -> None:
        """Converts what ``shown`` will have to, all of it at once. Raises ApiError 500."""
        if self._all_from_storage is None:
            return
        due = [
            record
            for record in records
            if not self.is_plain(record) and (record.memo is None or self.number not in record.memo)
        ]
        for batch in _batches(due):
            changed = self._all_from_storage([decode(record.value) for record in batch])
            for record, obj in zip(batch, changed, strict=True):
                self._keep(record, encode_as_go(obj))


def _batches(records: list[Record]) -> Iterator[list[Record]]:
    """Records in their order, so many at a time as one review should carry."""
    batch: list[Record] = []
    size = 0
    for record in records:
        if batch and size + len(record.value) > REVIEW_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.value)
    if batch:
        yield batch


def name_of(key: str, served: Served) -> tuple[str, str]:
    """Namespace and name of a storage key."""
    rest = key[len(served.prefix) :]
    namespace, _, name = rest.rpartition("/")
    return namespace, name
