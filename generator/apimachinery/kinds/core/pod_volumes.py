"""Volumes of pods: their names, their sources, and what projected and downward volumes are made of."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.certificates import signers
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core import claims, pods
from apimachinery.kinds.core.volume_sources import key_to_path, source
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    too_long,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder
from apimachinery.meta.quantity import parse_quantity

# The order in which Kubernetes looks for a volume's source; the first that is there counts.
_SOURCES = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
_ORDER = {key: place for place, key in enumerate(_SOURCES)}
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FIELDS = frozenset(
    {*_ENV_FIELDS, *_VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SIZES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_CONFLICT = "conflicting duplicate paths"


def volumes(value: Any, path: str) -> Errors:
    """Volumes have names, no two the same, and one source each."""
    seen: set[Any] = set()
    for index, volume in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(volume, dict):
            continue
        faults = _faults(volume, f"{path}[{index}]", seen)
        if not faults:
            seen.add(volume.get("name"))
        yield from faults


def _faults(volume: Json, place: str, seen: Container[Any]) -> list[FieldError]:
    name = volume.get("name")
    faults = [*_sources(volume, place), *checks.name(name, f"{place}.name")]
    if name in seen:
        faults.append(duplicate(f"{place}.name", name))
    return faults


def sound(spec: Json) -> Json:
    """The volumes of a pod by name that have no fault: only those can be mounted."""
    found: Json = {}
    for volume in items(spec, "volumes"):
        if not _faults(volume, "", found):
            found[volume["name"]] = volume
    return found


def _sources(volume: Json, path: str) -> Errors:
    chosen = [key for key in volume if key in _ORDER and volume[key] is not None]
    if len(chosen) > 1:
        chosen.sort(key=_ORDER.__getitem__)
    if not chosen:
        yield required_error(path, "must specify a volume type")
        return
    kind, value = chosen[0], volume[chosen[0]]
    if isinstance(value, dict):
        place = f"{path}.{kind}"
        if kind == "projected":
            yield from _projected(value, place)
        elif kind == "downwardAPI":
            yield from pods.file_mode(value.get("defaultMode"), f"{place}.defaultMode")
            for _, file in numbered(value, "items"):
                yield from _downward_file(file, place)
        elif kind == "ephemeral":
            yield from _ephemeral(value, place)
        elif kind == "image":
            policies = ("Always", "IfNotPresent", "Never")
            yield from checks.must_be_one_of(value.get("pullPolicy"), f"{place}.pullPolicy", policies)
        else:
            yield from source(kind, value, place)
    for extra in chosen[1:]:
        shown = "cephFS" if extra == "cephfs" else extra  # the one name that is not the field's
        yield forbidden(f"{path}.{shown}", "may not specify more than 1 volume type")


def _ephemeral(value: Json, path: str) -> Errors:
    template, place = struct(value, "volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        yield required_error(place)
        return
    yield from template_metadata(template.get("metadata"), f"{place}.metadata")
    yield from claims.claim_spec(struct(template, "spec") or {}, f"{place}.spec")


def template_metadata(value: Any, path: str) -> Errors:
    """The metadata of what is made from a template: labels and annotations, and nothing else."""
    if not isinstance(value, dict):
        return
    yield from checks.annotation_map(value.get("annotations"), f"{path}.annotations")
    yield from checks.labels(value.get("labels"), f"{path}.labels")
    for key in sorted(value):
        # What is there is set, be it an empty list or a number that may be missing.
        if key not in ("annotations", "labels") and value[key] not in (None, ""):
            yield forbidden(f"{path}.{'uID' if key == 'uid' else key}", "cannot be set")


def of_pod(pod: Json, path: str) -> Errors:
    """Volumes of a pod that has a name: the claims made for it, and what only a pod must say."""
    del path
    spec, name = struct(pod, "spec") or {}, lookup(pod, "metadata", "name")
    if not spec.get("volumes"):
        return
    made = set()
    for index, volume in numbered(spec, "volumes"):
        place = f"spec.volumes[{index}]"
        if volume.get("ephemeral") is not None and name and volume.get("name"):
            claim = f"{name}-{volume['name']}"
            made.add(claim)
            for detail in names.dns1123_subdomain_faults(claim):
                yield invalid_value(f"{place}.name", volume["name"], f'PVC name "{claim}": {detail}')
        image = struct(volume, "image")
        if image is not None and not image.get("reference"):
            yield required_error(f"{place}.image.reference")
    for index, volume in numbered(spec, "volumes"):
        claim = lookup(volume, "persistentVolumeClaim", "claimName")
        if claim in made:
            yield invalid_value(
                f"spec.volumes[{index}].persistentVolumeClaim.claimName",
                claim,
                "must not reference a PVC that gets created for an ephemeral volume",
            )


class _Paths:
    """The paths in a projected volume, which no two files share."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: set[str] = set()

    def add(self, path: str, shown: str) -> Errors:
        if path in self._seen:
            yield invalid_value(self._path, shown, _CONFLICT)
        self._seen.add(path)


def _projected(value: Json, path: str) -> Errors:
    yield from pods.file_mode(value.get("defaultMode"), f"{path}.defaultMode")
    paths = _Paths(path)
    for index, each in numbered(value, "sources"):
        place = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            held = struct(each, kind)
            if held is None:
                continue
            if not held.get("name"):
                yield required_error(f"{place}.{kind}.name")
            for number, item in numbered(held, "items"):
                yield from key_to_path(item, f"{place}.{kind}.items[{number}]")
                if item.get("path"):
                    yield from paths.add(item["path"], held.get("name") or "")
        downward = struct(each, "downwardAPI")
        for _, file in numbered(downward or {}, "items"):
            yield from _downward_file(file, f"{place}.downwardAPI")
            if file.get("path"):
                yield from paths.add(file["path"], file["path"])
        if (token := struct(each, "serviceAccountToken")) is not None:
            yield from _token(token, f"{place}.serviceAccountToken", path)
        if (bundle := struct(each, "clusterTrustBundle")) is not None:
            yield from _trust_bundle(bundle, f"{place}.clusterTrustBundle")
            yield from paths.add(bundle.get("path") or "", bundle.get("path") or "")
        if (certificate := struct(each, "podCertificate")) is not None:
            yield from _certificate(certificate, f"{place}.podCertificate", paths)
        if sum(item is not None for item in each.values()) > 1:
            yield forbidden(place, "may not specify more than 1 volume type per source")


def _token(token: Json, path: str, volume: str) -> Errors:
    seconds = token.get("expirationSeconds") or 0
    if seconds < 600:
        yield invalid_value(
            f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"
        )
    if seconds > 2**32:
        yield invalid_value(
            f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"
        )
    if not token.get("path"):
        yield required_error(f"{volume}.path")
    else:
        yield from pods.local_path(token["path"], f"{volume}.path")


def _trust_bundle(bundle: Json, path: str) -> Errors:
    name, signer, selector = bundle.get("name"), bundle.get("signerName"), bundle.get("labelSelector")
    if name is not None and signer is not None:
        shown = InOrder(
            {
                "Name": name,
                "SignerName": signer,
                "LabelSelector": selector,
                "Optional": bundle.get("optional"),
                "Path": bundle.get("path") or "",
            }
        )
        yield invalid_value(path, shown, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required_error(f"{path}.name", "must be a valid object name")
        for detail in signers.trust_bundle_name_faults(name):
            yield invalid_value(f"{path}.name", name, f"not a valid clustertrustbundlename: {detail}")
        if selector is not None:
            yield invalid_value(
                f"{path}.labelSelector", selector, "labelSelector must be unset if name is specified"
            )
    elif signer is not None:
        if not signer:
            yield required_error(f"{path}.signerName", "must be a valid signer name")
        yield from signers.signer_name(signer, f"{path}.signerName")
        yield from checks.label_selector(selector, f"{path}.labelSelector")
    else:
        yield required_error(path, "either name or signerName must be specified")
    if not bundle.get("path"):
        yield required_error(f"{path}.path")
    yield from pods.local_path(bundle.get("path"), f"{path}.path")


def _certificate(certificate: Json, path: str, paths: _Paths) -> Errors:
    signer = certificate.get("signerName") or ""
    yield from signers.signer_name(signer, f"{path}.signerName")
    yield from _user_annotations(certificate.get("userAnnotations"), f"{path}.userAnnotations")
    if (certificate.get("keyType") or "") not in _KEY_TYPES:
        yield not_supported(f"{path}.keyType", certificate.get("keyType") or "", _KEY_TYPES)
    seconds, place = certificate.get("maxExpirationSeconds"), f"{path}.maxExpirationSeconds"
    if seconds is not None:
        if seconds < 3600:
            yield invalid_value(place, seconds, "if provided, maxExpirationSeconds must be >= 3600")
        most = 86400 if signers.is_kubernetes(signer) else 91 * 86400
        if seconds > most:
            yield invalid_value(place, seconds, f"if provided, maxExpirationSeconds must be <= {most}")
    given = [
        key for key in ("credentialBundlePath", "keyPath", "certificateChainPath") if certificate.get(key)
    ]
    for key in given:
        yield from pods.local_path(certificate[key], f"{path}.{key}")
        yield from paths.add(certificate[key], certificate[key])
    if not given:
        yield required_error(
            path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        )


def _user_annotations(value: Any, path: str) -> Errors:
    """Annotations whose keys name a domain, 256 KiB in all."""
    if not isinstance(value, dict):
        return
    for key in sorted(value):
        faults = names.qualified_name_faults(key.lower())
        for detail in faults:
            yield invalid_value(path, key.lower(), detail)
        if not faults and "/" not in key:
            yield invalid_value(path, key.lower(), 'must be a domain-prefixed key (such as "acme.io/foo")')
    if sum(len(key.encode()) + len(str(text).encode()) for key, text in value.items()) > 256 * 1024:
        yield too_long(path, 256 * 1024)


def _downward_file(file: Json, path: str) -> Errors:
    if not file.get("path"):
        yield required_error(f"{path}.path")
    yield from pods.local_path(file.get("path"), f"{path}.path")
    field, resource = struct(file, "fieldRef"), struct(file, "resourceFieldRef")
    if field is not None:
        yield from field_reference(field, f"{path}.fieldRef", _VOLUME_FIELDS)
        if resource is not None:
            yield invalid_value(
                path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"
            )
    elif resource is not None:
        yield from resource_reference(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        yield required_error(path, "one of fieldRef and resourceFieldRef is required")
    yield from pods.file_mode(file.get("mode"), f"{path}.mode")


def field_reference(value: Any, path: str, allowed: tuple[str, ...] = _ENV_FIELDS) -> Errors:
    """A field of the pod, one that a variable or a file may hold."""
    if not isinstance(value, dict):
        return
    version, field = value.get("apiVersion") or "", value.get("fieldPath") or ""
    if not version:
        yield required_error(f"{path}.apiVersion")
        return
    if not field:
        yield required_error(f"{path}.fieldPath")
        return
    base, bracket, key = field.partition("['")
    subscript = bool(bracket) and key.endswith("']")
    place = f"{path}.fieldPath"
    if version != "v1":
        detail = f"error converting fieldPath: unsupported pod version: {version}"
        yield invalid_value(place, field, detail)
    elif subscript and base in ("metadata.annotations", "metadata.labels"):
        key = key[:-2]
        for detail in names.qualified_name_faults(key.lower() if base.endswith("annotations") else key):
            yield invalid_value(path, key.lower() if base.endswith("annotations") else key, detail)
    elif subscript and base in _FIELDS:
        detail = f"error converting fieldPath: field label does not support subscript: {field}"
        yield invalid_value(place, field, detail)
    elif field not in _FIELDS and field != "spec.host":
        yield invalid_value(place, field, f"error converting fieldPath: field label not supported: {field}")
    elif field not in allowed and not (field == "spec.host" and "spec.nodeName" in allowed):
        yield not_supported(place, field, sorted(allowed))


def resource_reference(value: Any, path: str, volume: bool = False) -> Errors:
    """A request or limit of a container, and what it is divided by."""
    if not isinstance(value, dict):
        return
    resource = value.get("resource") or ""
    if volume and not value.get("containerName"):
        yield required_error(f"{path}.containerName")
    elif not resource:
        yield required_error(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported(f"{path}.resource", resource, _RESOURCES)
    try:
        divisor = parse_quantity(str(value.get("divisor") or "0"))
    except ValueError:
        return
    if not divisor.value:
        return
    of = resource.partition(".")[2]
    allowed, said = {
        "cpu": (("1m", "1"), "divisor's values 1m and 1 are supported with the cpu resource"),
        "memory": (_SIZES.split(", "), f"divisor's values {_SIZES} are supported with the memory resource"),
        "ephemeral-storage": (
            _SIZES.split(", "),
            f"divisor's values {_SIZES} are supported with the local ephemeral storage resource",
        ),
    }.get(of, ((), ""))
    if resource.startswith(_HUGE_PAGES):
        allowed = _SIZES.split(", ")
        said = f"divisor's values {_SIZES} are supported with the hugepages resource"
    if allowed and str(divisor) not in allowed:
        yield invalid_value(f"{path}.divisor", resource, f"only {said}")
