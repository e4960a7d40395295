"""The Pod Security Standards: what pods of the levels baseline and restricted may not ask for, by version.

https://kubernetes.io/docs/concepts/security/pod-security-standards/. A check looks at a pod's metadata and spec and
returns None, or the detail of what it forbids. A version says what the standard was then; what came later does not hold
for it. Checks are told in the order of the table, baseline first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apimachinery.kinds.fields import Json
from apimachinery.kinds.pod_standards import pod_baseline, pod_restricted
from apimachinery.kinds.pod_standards.pod_violations import (
    LATEST,
    USER_NAMESPACES,
    Version,
    Violation,
    parse_version,
)

__all__ = ["LATEST", "LEVELS", "Version", "Violation", "parse_version", "violations"]
LEVELS = ("privileged", "baseline", "restricted")


def violations(metadata: Json, spec: Json, level: str, version: Version) -> list[Violation]:
    """What of a pod a level forbids."""
    if level == "privileged":
        return []
    found = []
    for check in _CHECKS:
        if check.restricted and level != "restricted":
            continue
        if not check.since <= version < check.until or (
            level == "restricted" and version >= check.overridden
        ):
            continue
        said = check.run(metadata, spec, version)
        if said is not None:
            found.append(said)
    return found


@dataclass(frozen=True, slots=True)
class _Check:
    """``overridden``: from which version on a check of the restricted level says the same more strictly."""

    run: Callable[[Json, Json, Version], Violation | None]
    restricted: bool = False
    since: Version = (1, 0)
    until: Version = (1, 1 << 31)
    overridden: Version = (1, 1 << 31)


_CHECKS = (
    _Check(pod_baseline.app_armor),
    _Check(pod_baseline.default_capabilities, overridden=(1, 22)),
    _Check(pod_baseline.host_namespaces),
    _Check(pod_baseline.host_paths, overridden=(1, 0)),
    _Check(pod_baseline.host_ports),
    _Check(pod_baseline.probe_hosts, since=(1, 34)),
    _Check(pod_baseline.privileged),
    _Check(pod_baseline.proc_mount_of_host_users, overridden=USER_NAMESPACES),
    _Check(pod_baseline.selinux),
    _Check(pod_baseline.seccomp_annotations, until=(1, 19)),
    _Check(pod_baseline.seccomp, since=(1, 19), overridden=(1, 19)),
    _Check(pod_baseline.sysctls),
    _Check(pod_baseline.host_process),
    _Check(pod_restricted.escalation, restricted=True, since=(1, 8)),
    _Check(pod_restricted.restricted_capabilities, restricted=True, since=(1, 22)),
    _Check(pod_baseline.proc_mount, restricted=True, since=USER_NAMESPACES),
    _Check(pod_restricted.volume_types, restricted=True),
    _Check(pod_restricted.not_root, restricted=True),
    _Check(pod_restricted.not_user_zero, restricted=True, since=(1, 23)),
    _Check(pod_restricted.restricted_seccomp, restricted=True, since=(1, 19)),
)
