"""Families of a service's addresses in the cluster: IPv4, IPv6 or both, by what its user says and the cluster has."""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.kinds.core.services import cluster_addresses
from apimachinery.kinds.fields import Json
from apimachinery.meta import addresses
from apimachinery.meta.field_errors import FieldError, invalid_value

_POLICY = "spec.ipFamilyPolicy"
_SEVERAL = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"


def is_headless(spec: Json) -> bool:
    """Whether a service has names, but no address of its own."""
    return spec.get("clusterIP") == "None" or (spec.get("clusterIPs") or [None])[0] == "None"


def family_of(address: str) -> str:
    """``IPv4`` or ``IPv6``."""
    return "IPv6" if addresses.is_ipv6(address) else "IPv4"


def settle_families(spec: Json, before: Json, cluster: Sequence[str]) -> list[FieldError]:
    """Gives a service its policy and families, in place, in a cluster that has the families ``cluster``, first choice
    first; the faults where it cannot have what it asks for. ``before`` is the stored spec, empty for a new service."""
    if spec.get("type") == "ExternalName":
        return []
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if faults := list(cluster_addresses(spec, before)):
        return faults
    if is_headless(spec) and not spec.get("selector"):
        # Its endpoints are made by somebody who knows what families they have.
        spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "RequireDualStack"
        families = spec.get("ipFamilies") or list(cluster[:1])
        if spec["ipFamilyPolicy"] != "SingleStack":
            families = [*families, *(each for each in ("IPv4", "IPv6") if each not in families)]
        spec["ipFamilies"] = families
        return []
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    _release_second(spec, before)
    faults = _faults(spec, cluster)
    if faults:
        return faults
    given = [] if is_headless(spec) else spec.get("clusterIPs") or []
    families = list(spec.get("ipFamilies") or ())
    families += [family_of(address) for address in given[len(families) :]]
    families = families or list(cluster[:1])
    if spec["ipFamilyPolicy"] != "SingleStack" and len(families) < 2:
        families += [each for each in cluster if each not in families][:1]
    spec["ipFamilies"] = families
    return []


def _release_second(spec: Json, before: Json) -> None:
    """Drops the second address of a service that is to have one family and left both as they were."""
    if spec["ipFamilyPolicy"] != "SingleStack" or before.get("ipFamilyPolicy") in (None, "SingleStack"):
        return
    for key in ("clusterIPs", "ipFamilies"):
        if len(spec.get(key) or ()) == 2 and spec[key] == before.get(key):
            spec[key] = spec[key][:1]


def _faults(spec: Json, cluster: Sequence[str]) -> list[FieldError]:
    policy, given = spec["ipFamilyPolicy"], spec.get("clusterIPs") or []
    families, faults = spec.get("ipFamilies") or [], []
    if policy == "SingleStack":
        if len(given) == 2:
            faults.append(invalid_value(_POLICY, policy, _SEVERAL.format("cluster IPs")))
        if len(families) == 2:
            faults.append(invalid_value(_POLICY, policy, _SEVERAL.format("IP families")))
    if not is_headless(spec):
        # An address whose family is named is not looked at: its family is, below.
        for index, address in enumerate(given):
            if index >= len(families) and (family := family_of(address)) not in cluster:
                place = f"spec.clusterIPs[{index}]"
                faults.append(invalid_value(place, given, f"{family} is not configured on this cluster"))
    if faults:
        return faults
    for index, family in enumerate(families):
        if family not in cluster:
            faults.append(
                invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
            )
    if policy == "RequireDualStack" and len(cluster) < 2:
        faults.append(
            invalid_value(_POLICY, policy, "this cluster is not configured for dual-stack services")
        )
    return faults
