"""The restricted level of the Pod Security Standards: what good practice asks of pods besides."""

from __future__ import annotations

from apimachinery.kinds.fields import Json, items, lookup
from apimachinery.kinds.pod_standards.pod_baseline import added_capabilities, seccomp
from apimachinery.kinds.pod_standards.pod_violations import (
    Version,
    Violation,
    context,
    has_own_users,
    is_windows,
    names_of,
    quoted,
    setters_of,
    some,
)


def escalation(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """Nobody gains privileges."""
    if version >= (1, 25) and is_windows(spec):
        return None
    names = names_of(spec, lambda container: context(container, "allowPrivilegeEscalation") is not False)
    detail = f"{some('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail) if names else None


def restricted_capabilities(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """All capabilities are dropped, one may be added."""
    if version >= (1, 25) and is_windows(spec):
        return None
    names = names_of(
        spec, lambda each: "ALL" not in (lookup(each, "securityContext", "capabilities", "drop") or ())
    )
    details = (
        [f'{some("container", names)} must set securityContext.capabilities.drop=["ALL"]'] if names else []
    )
    if added := added_capabilities(spec, frozenset({"NET_BIND_SERVICE"})):
        details.append(added)
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()
)


def volume_types(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """Only volumes that hold nothing of the node."""
    names, types = [], set()
    for volume in items(spec, "volumes"):
        source = {key for key, value in volume.items() if key != "name" and value is not None}
        if not source & _VOLUMES:
            names.append(str(volume.get("name")))
            types.add(next(iter(sorted(source)), "unknown"))
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    shown = f"restricted volume type{'s' if len(types) != 1 else ''} {quoted(sorted(types))}"
    return Violation("restricted volume types", f"{some('volume', names)} {uses} {shown}")


def not_root(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """Containers say that they do not run as root."""
    if has_own_users(spec, version):
        return None
    of_pod = context(spec, "runAsNonRoot")
    setters = setters_of(of_pod is False, names_of(spec, lambda each: context(each, "runAsNonRoot") is False))
    if setters:
        detail = f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", detail)
    names = names_of(spec, lambda each: context(each, "runAsNonRoot") is None)
    if of_pod is True or not names:
        return None
    detail = f"pod or {some('container', names)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", detail)


def not_user_zero(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No container runs as user 0."""
    if has_own_users(spec, version):
        return None

    def wrong(holder: Json) -> bool:
        return context(holder, "runAsUser") == 0

    setters = setters_of(wrong(spec), names_of(spec, wrong))
    return Violation("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0") if setters else None


def restricted_seccomp(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """A seccomp profile is chosen."""
    if version >= (1, 25) and is_windows(spec):
        return None
    if (found := seccomp(metadata, spec, version)) is not None:
        return found
    if context(spec, "seccompProfile", "type") is not None:
        return None
    names = names_of(spec, lambda each: context(each, "seccompProfile", "type") is None)
    if not names:
        return None
    detail = (
        f"pod or {some('container', names)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail)
