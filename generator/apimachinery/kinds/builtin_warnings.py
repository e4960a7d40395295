"""What is accepted of built-in kinds and told as a Warning all the same."""

from __future__ import annotations

import re
from base64 import b64decode
from ipaddress import IPv6Address

from apimachinery.kinds.core.pod_warnings import (
    SHOWN,
    VOLUMES,
    of_claim,
    of_node_affinity,
    of_pod,
    of_topologies,
)
from apimachinery.kinds.fields import lookup
from apimachinery.kinds.hooks import Json
from apimachinery.meta.names import dns1123_label_faults

ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)
_SURPRISE = "which can result in surprising behavior; a DNS label is recommended"


def pod_name(obj: Json, old: Json | None) -> list[str]:
    """A new Pod's name that is not a DNS label."""
    return _name(obj, old, "the Pod's hostname")


def workload_name(obj: Json, old: Json | None) -> list[str]:
    """The name of what makes Pods, where it is no DNS label."""
    return _name(obj, old, "Pod names and hostnames")


def pod(obj: Json, old: Json | None) -> list[str]:
    """What a new pod's name and spec let one expect, and do not keep."""
    spec = obj.get("spec")
    if old is not None or not isinstance(spec, dict):
        return []
    return pod_name(obj, old) + of_pod(spec, obj["metadata"], "spec", "metadata")


def workload(obj: Json, old: Json | None) -> list[str]:
    """The same of what makes pods from a template."""
    return workload_name(obj, old) + _template(obj, old, "spec", "template")


def replication_controller(obj: Json, old: Json | None) -> list[str]:
    """The same; kube-apiserver tells of a changed one what is to say of the template that it had."""
    if old is None:
        return workload(obj, None)
    return _template(old, obj, "spec", "template")


def daemon_set(obj: Json, old: Json | None) -> list[str]:
    """The same of a daemon set, whose name is not one of pods alone."""
    return _template(obj, old, "spec", "template")


def cron_job(obj: Json, old: Json | None) -> list[str]:
    """The same of jobs that are made from a template themselves."""
    return workload_name(obj, old) + _template(obj, old, "spec", "jobTemplate", "spec", "template")


def pod_template(obj: Json, old: Json | None) -> list[str]:
    """The same of a template alone."""
    return _template(obj, old, "template")


def stateful_set(obj: Json, old: Json | None) -> list[str]:
    """The same of a stateful set, and of its claims and history."""
    found = _template(obj, old, "spec", "template")
    spec = obj.get("spec") or {}
    if old is not None and spec == old.get("spec"):
        return []
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        found += of_claim(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].resources")
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        found.append(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )
    return found


def _template(obj: Json, old: Json | None, *keys: str) -> list[str]:
    template = lookup(obj, *keys)
    if not isinstance(template, dict) or (old is not None and obj.get(keys[0]) == old.get(keys[0])):
        return []
    place, spec = ".".join(keys), template.get("spec")
    if not isinstance(spec, dict):
        return []
    return of_pod(spec, template.get("metadata") or {}, f"{place}.spec", f"{place}.metadata")


def volume(obj: Json, old: Json | None) -> list[str]:
    """Kinds of persistent volumes that are gone, and a policy that goes."""
    del old
    spec, found = obj.get("spec") or {}, []
    if lookup(obj, "metadata", "annotations", _CLASS) is not None:
        found.append(_OLD_CLASS)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    found += of_node_affinity(spec.get("nodeAffinity"), "spec.nodeAffinity")
    return found + [
        f"spec.{SHOWN.get(kind, kind)}: {said}"
        for kind, said in VOLUMES.items()
        if spec.get(kind) is not None
    ]


def storage_class(obj: Json, old: Json | None) -> list[str]:
    """Old labels of nodes where volumes may be."""
    del old
    return list(of_topologies(obj.get("allowedTopologies"), "allowedTopologies"))


def claim(obj: Json, old: Json | None) -> list[str]:
    """An old annotation of a claim, and fractions of bytes."""
    del old
    found = [_OLD_CLASS] if lookup(obj, "metadata", "annotations", _CLASS) is not None else []
    return found + list(of_claim(obj.get("spec") or {}, "spec.resources"))


def endpoint_slice(obj: Json, old: Json | None) -> list[str]:
    """Addresses of a new slice that are names."""
    if old is not None or obj.get("addressType") != "FQDN":
        return []
    return ["spec.addressType: FQDN endpoints are deprecated"]


def _name(obj: Json, old: Json | None, used_in: str) -> list[str]:
    if old is not None:
        return []
    faults = dns1123_label_faults(obj["metadata"]["name"])
    return [f"metadata.name: this is used in {used_in}, {_SURPRISE}: [{' '.join(faults)}]"] if faults else []


def node_fields(obj: Json, old: Json | None) -> list[str]:
    """Fields of a Node that nothing looks at."""
    if (obj.get("spec") or {}).get("externalID"):
        return ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]
    return []


_TEXT_FORMATS = (
    "bsonobjectid byte cidr creditcard date date-time datetime duration email hexcolor hostname ipv4 ipv6 isbn isbn10 "
    "isbn13 k8s-long-name k8s-short-name mac password rgbcolor ssn uri uuid uuid3 uuid4 uuid5"
)
_FORMATS = {
    "string": frozenset(_TEXT_FORMATS.split()),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}


_FORMATS[""] = frozenset().union(*_FORMATS.values())
_NO_FORMATS: frozenset[str] = frozenset()


def definition_formats(obj: Json, old: Json | None) -> list[str]:
    """Formats in a CRD's schemas that their types do not have, and that were not there before."""
    known = _odd_formats(old) if old is not None else {}
    return [f'unrecognized format "{name}"' for name in _odd_formats(obj) if name not in known]


def _odd_formats(definition: Json) -> dict[str, None]:
    found: dict[str, None] = {}
    for version in (definition.get("spec") or {}).get("versions") or ():
        _find_formats((version.get("schema") or {}).get("openAPIV3Schema"), found)
    return found


def _find_formats(schema: object, found: dict[str, None]) -> None:
    if isinstance(schema, list):
        for each in schema:
            _find_formats(each, found)
    if not isinstance(schema, dict):
        return
    name = schema.get("format")
    if name and name not in _FORMATS.get(schema.get("type") or "", _NO_FORMATS):
        found[name] = None
    for key in ("items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"):
        _find_formats(schema.get(key), found)
    for each in (schema.get("properties") or {}).values():
        _find_formats(each, found)


def csi_driver(obj: Json, old: Json | None) -> list[str]:
    """A driver that gets tokens should not have them among attributes, which are logged."""
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    asked = spec.get("tokenRequests")
    if (
        not asked
        or asked == before.get("tokenRequests")
        or spec.get("serviceAccountTokenInSecrets") is not None
    ):
        return []
    return [
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
        "logging of tokens in volume attributes"
    ]


def service(obj: Json, old: Json | None) -> list[str]:
    """Fields of a Service that nothing will look at, or soon nothing."""
    del old
    spec = obj.get("spec") or {}
    found = []
    if lookup(obj, "metadata", "annotations", _HINTS) is not None:
        found.append(
            f"annotation {_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        )
    if spec.get("clusterIP") == "None":
        if spec.get("loadBalancerIP"):
            found.append("spec.loadBalancerIP is ignored for headless services")
        if spec.get("externalIPs"):
            found.append("spec.externalIPs is ignored for headless services")
        if (spec.get("sessionAffinity") or "None") != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("clusterIP") != "None" and spec.get("externalIPs"):
        if spec.get("type") == "ExternalName":
            found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
        else:
            found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found + _odd_address(spec.get("loadBalancerIP"), "spec.loadBalancerIP")


_HINTS = "service.kubernetes.io/topology-aware-hints"


def _odd_address(text: str | None, path: str) -> list[str]:
    """An address that Go's older parser takes and its newer one does not: an IPv4 one in IPv6."""
    if not text or ":" not in text:
        return []
    try:
        mapped = IPv6Address(text).ipv4_mapped
    except ValueError:
        return []
    return [f'{path}: non-standard IP address "{text}" is invalid: use "{mapped}"'] if mapped else []


def secret(obj: Json, old: Json | None) -> list[str]:
    """A pair of certificate and key that TLS finds none in; whether they fit together is not looked at."""
    del old
    if obj.get("type") != "kubernetes.io/tls":
        return []
    data = obj.get("data") or {}
    for name, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            text = b64decode(data.get(name) or "")
        except ValueError:
            return []
        if not _PEM.search(text):
            return [f"tls: failed to find any PEM data in {what} input"]
    return []


_PEM = re.compile(rb"^-----BEGIN [^\n]*-----[ \t\r]*\n.*?^-----END ", re.DOTALL | re.MULTILINE)


_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS = (
    f'metadata.annotations[{_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
)
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


def service_account(obj: Json, old: Json | None) -> list[str]:
    """What an account should no longer say."""
    present = lookup(obj, "metadata", "annotations", _MOUNTABLE)
    if present is None or present == lookup(old, "metadata", "annotations", _MOUNTABLE):
        return []
    return [
        f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]
