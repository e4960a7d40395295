"""The variables of a container whose values other objects have: ConfigMaps, Secrets, Services, the node.

A kubelet reads them when a container begins, so a change is seen by the next run.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from apimachinery.kinds.amounts import parsed
from apimachinery.kinds.hooks import Json
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

_SOURCES: Final = (("configmaps", "configMapRef"), ("secrets", "secretRef"))
_KEYS: Final = (("configmaps", "configMapKeyRef"), ("secrets", "secretKeyRef"))
_KINDS: Final = {"configmaps": "ConfigMap", "secrets": "Secret"}
MASTER: Final = ("default", "kubernetes")
"""The Service that the containers of all namespaces are told of."""


class ContainerConfigError(Exception):
    """A container cannot be made as its pod describes it; the text is the message of its status."""


class ContainerVariables:
    """Finds them among the objects of a server."""

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    def of(self, pod: Json, capacity: Mapping[str, str], container: Json) -> dict[str, str]:
        """Those of a container on a node of a capacity; references to what is not there are left out."""
        namespace, found = pod["metadata"]["namespace"], dict[str, str]()
        if pod["spec"].get("enableServiceLinks") is not False:
            for service in self._objects("services", namespace):
                found.update(_of_service(service))
        if (master := self._object("services", *MASTER)) is not None:
            found.update(_of_service(master))
        for each in container.get("envFrom") or ():
            for plural, key in _SOURCES:
                data = self._data(plural, namespace, (each.get(key) or {}).get("name", ""))
                found |= {f"{each.get('prefix') or ''}{name}": value for name, value in data.items()}
        for each in container.get("env") or ():
            source = each.get("valueFrom") or {}
            for plural, key in _KEYS:
                ref = source.get(key) or {}
                value = self._data(plural, namespace, ref.get("name", "")).get(ref.get("key", ""))
                if value is not None:
                    found[each["name"]] = value
            if (wanted := source.get("resourceFieldRef")) and (
                amount := _amount(pod, capacity, container, wanted)
            ):
                found[each["name"]] = amount
        return found

    def require(self, pod: Json, container: Json) -> None:
        """Looks for all that the variables of a container refer to. Raises ContainerConfigError."""
        namespace = pod["metadata"]["namespace"]
        sources = [(each, _SOURCES) for each in container.get("envFrom") or ()]
        sources += [(each.get("valueFrom") or {}, _KEYS) for each in container.get("env") or ()]
        for source, kinds in sources:
            for plural, name_of in kinds:
                ref = source.get(name_of)
                if not ref or ref.get("optional"):
                    continue
                name, kind = ref.get("name", ""), _KINDS[plural]
                if self._object(plural, namespace, name) is None:
                    raise ContainerConfigError(f'{kind.lower()} "{name}" not found')
                if "key" in ref and ref["key"] not in self._data(plural, namespace, name):
                    place = f"{kind} {namespace}/{name}"
                    raise ContainerConfigError(f"couldn't find key {ref['key']} in {place}")

    def _object(self, path: str, namespace: str, name: str) -> Json | None:
        record = self._cache.resource(f"/core/{path}/").get(f"/core/{path}/{namespace}/{name}")
        return None if record is None else decode(record.value)

    def _objects(self, path: str, namespace: str) -> Iterator[Json]:
        scope = f"/core/{path}/{namespace}/"
        for record in self._cache.resource(f"/core/{path}/").snapshot(scope).records:
            yield decode(record.value)

    def _data(self, plural: str, namespace: str, name: str) -> Mapping[str, str]:
        """The texts of a ConfigMap or Secret; empty where there is none."""
        found = (self._object(plural, namespace, name) if name else None) or {}
        data: Mapping[str, str] = found.get("data") or {}
        if plural == "configmaps":
            return data
        return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in data.items()}


def _of_service(service: Json) -> Iterator[tuple[str, str]]:
    """The variables of a Service, as Docker's links had them."""
    spec = service["spec"]
    address, ports = spec.get("clusterIP"), spec.get("ports") or []
    if address in (None, "", "None") or not ports:
        return
    name = service["metadata"]["name"].upper().replace("-", "_")
    yield f"{name}_SERVICE_HOST", address
    yield f"{name}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{name}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}", str(port["port"])
    for number, port in enumerate(ports):
        protocol = port.get("protocol") or "TCP"
        url = f"{protocol.lower()}://{address}:{port['port']}"
        if number == 0:
            yield f"{name}_PORT", url
        link = f"{name}_PORT_{port['port']}_{protocol}"
        yield link, url
        yield f"{link}_PROTO", protocol.lower()
        yield f"{link}_PORT", str(port["port"])
        yield f"{link}_ADDR", address


def _amount(pod: Json, capacity: Mapping[str, str], container: Json, wanted: Json) -> str:
    """A request or limit in units of the divisor, rounded up; a limit that is not set is what the node has. Empty for
    one that cannot be read."""
    named = wanted.get("containerName") or container["name"]
    every = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
    of = next((each for each in every if each["name"] == named), container)
    sort, _, resource = wanted.get("resource", "").partition(".")
    text = ((of.get("resources") or {}).get(sort) or {}).get(resource)
    if text is None:
        text = capacity.get(resource, "0") if sort == "limits" else "0"
    amount, divisor = parsed(text), parsed(wanted.get("divisor") or "1")
    if amount is None:
        return ""
    unit = divisor.value if divisor is not None and divisor.value > 0 else Fraction(1)
    return str(math.ceil(amount.value / unit))
