"""Names of certificate signers, and of the trust bundles that belong to them."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import of_missing
from apimachinery.meta import names
from apimachinery.meta.field_errors import invalid_value, too_long
from apimachinery.meta.field_errors import required as required_error


def is_kubernetes(signer: str) -> bool:
    """Whether a signer is one of Kubernetes' own."""
    host = signer.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


@of_missing
def signer_name(value: Any, path: str) -> Errors:
    """A domain and a path of one segment: ``example.com/signer-name``."""
    if not value:
        yield required_error(path)
        return
    if value.count("/") != 1:
        yield invalid_value(
            path, value, "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        )
        return
    domain, _, rest = value.partition("/")
    if len(domain) > 253:
        yield too_long(path, 253)
    labels = domain.split(".")
    yield from _first_bad(labels, names.dns1123_label_faults, domain, path)
    if len(labels) < 2:
        detail = "should be a domain with at least two segments separated by dots"
        yield invalid_value(path, domain, detail)
    yield from _first_bad(rest.split("."), names.dns1123_subdomain_faults, rest, path)
    if len(value) > 571:
        yield too_long(path, 571)


def _first_bad(labels: list[str], rule: Any, shown: str, path: str) -> Errors:
    for label in labels:
        if faults := rule(label):
            for detail in faults:
                yield invalid_value(path, shown, f'validating label "{label}": {detail}')
            return


def trust_bundle_name_faults(name: str, signer: str | None = None) -> list[str]:
    """What is wrong with the name of a ClusterTrustBundle; without ``signer``, of the one that the name tells."""
    if signer is None:
        head, colon, _ = name.rpartition(":")
        signer = head.replace(":", "/") if colon else ""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return names.dns1123_subdomain_faults(name)
    prefix = signer.replace("/", ":") + ":"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return names.dns1123_subdomain_faults(name.removeprefix(prefix))
