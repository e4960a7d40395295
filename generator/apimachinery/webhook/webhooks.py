"""Webhooks as decorated functions: admission of any kind, conversion between versions, one program for all.

A function gets the review and the object, as the class or the resource that the decorator names says: a model, or JSON.
A mutating one changes the object, or returns another; a validating one returns the errors it found, by field. Either
may return a text, or raise ``Denied``, to refuse. They run on threads, several at a time.

A check of a class holds for all versions of the kind: the server converts what is sent at another one
(``matchPolicy: Equivalent``).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

import msgspec

from apimachinery.client.calls import Codec, typed_codec
from apimachinery.client.kinds import resource_of
from apimachinery.meta.field_errors import FieldError
from apimachinery.typed.object import Object
from apimachinery.webhook.installing import CONVERT, Installation
from apimachinery.webhook.reviews import JSON_CODEC, Denied, Json, Operation, Review, denial, respond, subject

if TYPE_CHECKING:
    from apimachinery.client.connection import Client
    from apimachinery.webhook.running import WebhookServer

T = TypeVar("T")
O = TypeVar("O", bound=Object)  # noqa: E741 - an object
A = TypeVar("A", bound=Object)
B = TypeVar("B", bound=Object)
Mutate: TypeAlias = Callable[[Review[T], T], "T | str | None"]
Validate: TypeAlias = Callable[[Review[T], T], "Iterable[FieldError] | str | None"]
WRITES: tuple[Operation, ...] = ("CREATE", "UPDATE")

_log = logging.getLogger("kubewright.webhook")


@dataclass(frozen=True, slots=True)
class HookFunction(Generic[T]):
    """One function in force: what it is asked about, and how."""

    kind: str
    name: str
    function: Callable[[Review[T], T], Any]
    codec: Codec[T]
    rule: Json
    fields: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Where it is asked."""
        return f"/{self.kind}/{self.name}"

    def answer(self, request: Json, client: Any) -> Json:
        """The response to an AdmissionRequest."""
        review: Review[T] | None = None
        try:
            review = Review(request, self.codec, client)
            obj = subject(request, self.codec)
            verdict = self.function(review, obj)
            return respond(review, obj, self.codec, verdict, mutating=self.kind == "mutating")
        except Denied as refusal:
            response = denial(refusal)
            return response | {"warnings": review.warnings} if review and review.warnings else response


@dataclass(frozen=True, slots=True)
class VersionStep:
    """A function from one version of a kind to another."""

    source: tuple[str, str]
    target: tuple[str, str]
    function: Callable[[Json], Json]


@dataclass(slots=True)
class Webhooks:
    """The webhooks of a program, whose configurations are called ``name`` (a domain: ``sidecar.example.com``)."""

    name: str
    hooks: list[HookFunction[Any]] = field(default_factory=list)
    converters: list[VersionStep] = field(default_factory=list)
    plurals: dict[tuple[str, str], str] = field(default_factory=dict)

    @overload
    def mutating(
        self, kind: type[O], *, operations: Iterable[Operation] = WRITES, **fields: Any
    ) -> Callable[[Mutate[O]], Mutate[O]]: ...

    @overload
    def mutating(
        self, kind: str, *, operations: Iterable[Operation] = WRITES, **fields: Any
    ) -> Callable[[Mutate[Json]], Mutate[Json]]: ...

    def mutating(self, kind: Any, *, operations: Iterable[Operation] = WRITES, **fields: Any) -> Any:
        """A decorator of a function that changes objects of a kind: a class, or ``PLURAL[.GROUP][/SUBRESOURCE]``.
        ``fields`` are those of the webhook's configuration (``failurePolicy``, ``objectSelector``, …). Raises
        ``ValueError`` for a second function of the same name."""
        return lambda function: self._add("mutating", kind, operations, fields, function)

    @overload
    def validating(
        self, kind: type[O], *, operations: Iterable[Operation] = WRITES, **fields: Any
    ) -> Callable[[Validate[O]], Validate[O]]: ...

    @overload
    def validating(
        self, kind: str, *, operations: Iterable[Operation] = WRITES, **fields: Any
    ) -> Callable[[Validate[Json]], Validate[Json]]: ...

    def validating(self, kind: Any, *, operations: Iterable[Operation] = WRITES, **fields: Any) -> Any:
        """A decorator of a function that checks objects of a kind, as ``mutating``."""
        return lambda function: self._add("validating", kind, operations, fields, function)

    def converting(self, source: type[A], target: type[B]) -> Callable[[Callable[[A], B]], Callable[[A], B]]:
        """A decorator of a function from one version of a kind to another. Metadata and what else it leaves out at the
        top (the status) stay; between versions without a function of their own it goes by those that there are."""
        old, new = typed_codec(source), typed_codec(target)

        def convert(function: Callable[[A], B], obj: Json) -> Json:
            made = function(old.decode(msgspec.json.encode(obj)))
            return cast("Json", msgspec.json.decode(new.encode(made)))

        def decorate(function: Callable[[A], B]) -> Callable[[A], B]:
            pair = ((source.API_VERSION, source.KIND), (target.API_VERSION, target.KIND))
            self.converters.append(VersionStep(*pair, lambda obj: convert(function, obj)))
            resource = resource_of(target)
            self.plurals[resource.group, resource.kind] = resource.plural
            return function

        return decorate

    def answers(self, client: Any = None) -> dict[str, Callable[[Json], Json]]:
        """What is asked by path: responses to the requests of reviews."""
        found: dict[str, Callable[[Json], Json]] = {}
        for hook in self.hooks:
            found[hook.path] = lambda request, hook=hook: hook.answer(request, client)  # type: ignore[misc]
        if self.converters:
            found[CONVERT] = self.convert
        return found

    def convert(self, request: Json) -> Json:
        """The response to a ConversionRequest: all objects, or why one cannot be converted."""
        wanted, made = str(request.get("desiredAPIVersion") or ""), []
        for number, obj in enumerate(request.get("objects") or ()):
            try:
                made.append(self._converted(obj, wanted))
            except (
                Exception
            ) as error:  # somebody's function: the server reads why the object has no other form
                _log.warning("object %d cannot be converted to %s", number, wanted, exc_info=error)
                text = f"object {number}: {type(error).__name__}: {error}"
                return {"result": {"status": "Failure", "message": text}}
        return {"convertedObjects": made, "result": {"status": "Success"}}

    def installation(self, client_config: Json) -> Installation:
        """What a cluster needs to know of the webhooks, which are reached as ``client_config`` says."""
        definitions = sorted({f"{plural}.{group}" for (group, _), plural in self.plurals.items()})
        return Installation(self.name, [*self._configurations()], definitions, client_config)

    def serve(
        self,
        client: Client,
        *,
        service: str = "",
        url: str = "",
        host: str = "0.0.0.0",
        port: int = 9443,
    ) -> WebhookServer:
        """Serves while a ``with`` block runs; its ``run`` does until SIGTERM. The cluster reaches it by ``service``
        (``NAMESPACE/NAME[:PORT]``), or by ``url``, ``PORT`` in which is the one that is listened at.

        A certificate is made and renewed; replicas share it in the Secret ``NAME-tls`` next to the service (of a
        ``url``: in the client's namespace). What the cluster needs to know is written as soon as the webhooks are
        served, and whenever the certificate changes. Raises ``ValueError`` without a service or a URL."""
        from apimachinery.webhook.running import WebhookServer

        return WebhookServer(self, client, service=service, url=url, host=host, port=port)

    def _add(
        self, kind: str, what: Any, operations: Iterable[Operation], fields: Mapping[str, Any], function: Any
    ) -> Any:
        if isinstance(what, str):
            codec: Codec[Any] = JSON_CODEC
            resource, _, subresource = what.partition("/")
            plural, _, group = resource.partition(".")
            versions = ["*"]
        else:
            served = resource_of(what)
            codec, plural, group, subresource = typed_codec(what), served.plural, served.group, ""
            versions = [served.version]
        rule = {
            "apiGroups": [group],
            "apiVersions": versions,
            "operations": list(operations),
            "resources": [f"{plural}/{subresource}" if subresource else plural],
        }
        name = function.__name__.replace("_", "-").strip("-").lower()
        if any((hook.kind, hook.name) == (kind, name) for hook in self.hooks):
            raise ValueError(
                f"{self.name} has a {kind} webhook {name} already: functions need names of their own"
            )
        self.hooks.append(HookFunction(kind, name, function, codec, rule, fields))
        return function

    def _configurations(self) -> Iterator[tuple[str, Json, str]]:
        for hook in self.hooks:
            stated = {
                "name": f"{hook.name}.{self.name}",
                "rules": [hook.rule],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "matchPolicy": "Equivalent",
                "timeoutSeconds": 10,
                "failurePolicy": "Fail",
                **hook.fields,
            }
            yield hook.kind, stated, hook.path

    def _converted(self, obj: Json, wanted: str) -> Json:
        here, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
        made = obj
        for step in self._way((here, kind), (wanted, kind)):
            made = step.function({**made, "apiVersion": step.source[0], "kind": kind})
        made = {**made, "apiVersion": wanted, "kind": kind}
        labelled = made.get("metadata") or {}
        kept = {name: labelled[name] for name in ("labels", "annotations") if name in labelled}
        return {**obj, **made, "metadata": {**(obj.get("metadata") or {}), **kept}}

    def _way(self, source: tuple[str, str], target: tuple[str, str]) -> list[VersionStep]:
        """The functions from one version to another, the fewest. Raises ``ValueError`` where there are none."""
        ways: deque[tuple[tuple[str, str], list[VersionStep]]] = deque([(source, [])])
        seen = {source}
        while ways:
            place, way = ways.popleft()
            if place == target:
                return way
            for converter in self.converters:
                if converter.source == place and converter.target not in seen:
                    seen.add(converter.target)
                    ways.append((converter.target, [*way, converter]))
        raise ValueError(f"{source[1]} cannot be converted from {source[0]} to {target[0]}")
