"""What a cluster needs to know of webhooks: written together, and taken back together.

Conversion is set in the CustomResourceDefinitions that are there, by a merge patch: a manifest with a definition in it
would conflict with whoever applied the definition, and ``kubectl delete -f`` of it would delete the definition and all
objects. Conversion comes first, for admission at one version is asked about objects of all; if anything fails, what was
done is undone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError, NotFound
from apimachinery.client.objects import DEFINITIONS
from apimachinery.client.resource import DynamicResource
from apimachinery.meta.resources import Resource

Json: TypeAlias = dict[str, Any]
CONVERT: Final = "/convert"
KINDS: Final = {"mutating": "MutatingWebhookConfiguration", "validating": "ValidatingWebhookConfiguration"}
REVIEWS: Final = ["v1"]
_log = logging.getLogger("kubewright.webhook")


@dataclass(frozen=True, slots=True)
class Installation:
    """Webhooks (kind, fields without clientConfig, path) and definitions to convert, reached by ``client_config``."""

    name: str
    webhooks: Sequence[tuple[str, Json, str]]
    definitions: Sequence[str]
    client_config: Json

    def configurations(self) -> Iterator[Json]:
        """The webhook configurations, at most one of each kind: to be applied, or printed."""
        for kind, title in KINDS.items():
            hooks = [
                {**stated, "clientConfig": self.reached(path)}
                for each, stated, path in self.webhooks
                if each == kind
            ]
            if hooks:
                yield {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": title,
                    "metadata": {"name": self.name},
                    "webhooks": hooks,
                }

    def reached(self, path: str) -> Json:
        """The clientConfig of a path."""
        config = self.client_config
        if "url" in config:
            return {**config, "url": config["url"].rstrip("/") + path}
        return {**config, "service": {**config["service"], "path": path}}

    def install(self, client: Client) -> None:
        """Writes all of it, or nothing. Raises ``NotFound`` where a definition is not there, and ``ApiError``."""
        install(
            client, self.configurations(), self.definitions, self.reached(CONVERT), field_manager=self.name
        )

    def uninstall(self, client: Client) -> None:
        """Takes all of it back: the definitions and their objects stay. Raises ``ApiError``."""
        uninstall(client, [(kind, self.name) for kind in KINDS.values()], self.definitions)


def install(
    client: Client,
    configurations: Iterable[Json],
    definitions: Iterable[str],
    converter: Json,
    *,
    field_manager: str,
) -> None:
    """Has ``converter`` (a clientConfig) convert the definitions, and applies the configurations: all, or nothing.
    Raises ``ApiError``."""
    undo: list[Callable[[], object]] = []
    webhook = {"clientConfig": converter, "conversionReviewVersions": REVIEWS}
    conversion = {"strategy": "Webhook", "webhook": webhook}
    try:
        for name in definitions:
            found = DynamicResource(client, DEFINITIONS).get(name)
            before = found["spec"].get("conversion") or {"strategy": "None"}
            undo.append(lambda name=name, before=before: _set_conversion(client, name, before))  # type: ignore[misc]
            _set_conversion(client, name, conversion)
        for configuration in configurations:
            name, api = (
                configuration["metadata"]["name"],
                DynamicResource(client, _resource(configuration["kind"])),
            )
            try:
                api.get(name)
            except NotFound:
                undo.append(lambda api=api, name=name: api.delete(name))  # type: ignore[misc]
            api.apply(configuration, field_manager=field_manager, force=True)
    except ApiError:
        for step in reversed(undo):
            try:
                step()
            except NotFound:
                continue
            except ApiError as error:  # the first failure is what the caller has to hear of
                _log.warning("a part of the webhooks stays installed: %s", error)
        raise


def uninstall(client: Client, configurations: Iterable[tuple[str, str]], definitions: Iterable[str]) -> None:
    """Takes back configurations (kind and name), and conversion: the definitions and their objects stay. Raises
    ``ApiError``."""
    for kind, name in configurations:
        with suppress(NotFound):
            DynamicResource(client, _resource(kind)).delete(name)
    for name in definitions:
        with suppress(NotFound):
            _set_conversion(client, name, {"strategy": "None"})


def _set_conversion(client: Client, name: str, conversion: Json) -> None:
    # A merge patch takes away what it has null for: a strategy without a webhook may have none, a URL no service.
    made = {"webhook": None, **conversion}
    if webhook := made["webhook"]:
        config = {"url": None, "service": None, "caBundle": None, **(webhook.get("clientConfig") or {})}
        made["webhook"] = {**webhook, "clientConfig": config}
    body = {"spec": {"conversion": made}}
    DynamicResource(client, DEFINITIONS).patch(name, body)


def _resource(kind: str) -> Resource:
    plural = f"{kind.lower()}s"
    return Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=False,
        verbs=(),
    )
