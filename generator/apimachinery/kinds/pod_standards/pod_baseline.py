"""The baseline level of the Pod Security Standards: what would give a pod power over its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    struct,
)
from apimachinery.kinds.pod_standards.pod_violations import (
    Version,
    Violation,
    context,
    has_own_users,
    names_of,
    quoted,
    setters_of,
    some,
)
from apimachinery.meta.printing import go_quote

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def app_armor(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """AppArmor is not turned off."""
    fine = (None, "RuntimeDefault", "Localhost")
    values: list[str] = []

    def wrong(holder: Json) -> bool:
        kind = context(holder, "appArmorProfile", "type")
        if kind not in fine:
            values.append(str(kind))
        return kind not in fine

    setters = setters_of(wrong(spec), names_of(spec, wrong))
    annotated = [
        f'{key}="{value}"'
        for key, value in sorted((metadata.get("annotations") or {}).items())
        if key.startswith(_APP_ARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    ]
    if annotated:
        setters.append("annotation" if len(annotated) == 1 else "annotations")
        values += annotated
    if not setters:
        return None
    shown = sorted(set(values))
    reason = "forbidden AppArmor profile" + ("s" if len(shown) != 1 else "")
    return Violation(reason, f"{' and '.join(setters)} must not set AppArmor profile type to {quoted(shown)}")


_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)


def added_capabilities(spec: Json, fine: frozenset[str]) -> str:
    """Who adds capabilities that are not allowed, and which."""
    values: set[str] = set()

    def wrong(container: Json) -> bool:
        added = lookup(container, "securityContext", "capabilities", "add")
        found = {str(each) for each in added or ()} - fine
        values.update(found)
        return bool(found)

    names = names_of(spec, wrong)
    if not names:
        return ""
    return f"{some('container', names)} must not include {quoted(sorted(values))} in securityContext.capabilities.add"


def default_capabilities(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No capabilities but those that containers usually have."""
    detail = added_capabilities(spec, _CAPABILITIES)
    return Violation("non-default capabilities", detail) if detail else None


def host_namespaces(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No namespaces of the host."""
    used = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def host_paths(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No volumes of the host."""
    names = [
        str(volume.get("name")) for volume in items(spec, "volumes") if volume.get("hostPath") is not None
    ]
    return Violation("hostPath volumes", some("volume", names)) if names else None


def host_ports(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No ports of the host."""

    def ports(container: Json) -> Iterator[str]:
        return (str(port["hostPort"]) for port in items(container, "ports") if port.get("hostPort"))

    names, found = _told(spec, ports)
    several = "s" if len(found) != 1 else ""
    detail = f"{_use(names)} hostPort{several} {', '.join(found)}"
    return Violation("hostPort", detail) if names else None


def probe_hosts(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """Probes and hooks reach no other host."""

    def hosts(container: Json) -> Iterator[str]:
        handlers = [
            struct(container, key) or {} for key in ("livenessProbe", "readinessProbe", "startupProbe")
        ]
        handlers += [struct(container, "lifecycle", key) or {} for key in ("postStart", "preStop")]
        for handler in handlers:
            for action in ("httpGet", "tcpSocket"):
                if host := lookup(handler, action, "host"):
                    yield str(host)

    names, found = _told(spec, hosts)
    several = "s" if len(found) != 1 else ""
    detail = f"{_use(names)} probe or lifecycle host{several} {quoted(found)}"
    return Violation("probe or lifecycle host", detail) if names else None


def _told(spec: Json, said: Callable[[Json], Iterable[str]]) -> tuple[list[str], list[str]]:
    """The containers that say something, and all that they say, sorted."""
    found: set[str] = set()

    def wrong(container: Json) -> bool:
        values = [*said(container)]
        found.update(values)
        return bool(values)

    return names_of(spec, wrong), sorted(found)


def _use(names: list[str]) -> str:
    return f"{some('container', names)} {'uses' if len(names) == 1 else 'use'}"


def privileged(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No privileged containers."""
    names = names_of(spec, lambda container: context(container, "privileged") is True)
    detail = f"{some('container', names)} must not set securityContext.privileged=true"
    return Violation("privileged", detail) if names else None


def proc_mount(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """/proc is masked as usual."""
    values: set[str] = set()

    def wrong(container: Json) -> bool:
        kind = context(container, "procMount")
        if kind not in (None, "Default"):
            values.add(str(kind))
        return kind not in (None, "Default")

    names = names_of(spec, wrong)
    if not names:
        return None
    detail = f"{some('container', names)} must not set securityContext.procMount to {quoted(sorted(values))}"
    return Violation("procMount", detail)


def proc_mount_of_host_users(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """The same, where a container has the host's users."""
    return None if has_own_users(spec, version) else proc_mount(metadata, spec, version)


def selinux(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """SELinux is as containers have it."""
    fine = ["", "container_t", "container_init_t", "container_kvm_t"]
    if version >= (1, 31):
        fine.append("container_engine_t")
    types: set[str] = set()
    more: set[str] = set()

    def wrong(holder: Json) -> bool:
        options = context(holder, "seLinuxOptions")
        if not isinstance(options, dict):
            return False
        found = {str(options.get("type") or "")} - {*fine}
        named = {key for key in ("user", "role") if options.get(key)}
        types.update(found)
        more.update(named)
        return bool(found or named)

    setters = setters_of(wrong(spec), names_of(spec, wrong))
    if not setters:
        return None
    details = [f"type{'s' if len(types) != 1 else ''} {quoted(sorted(types))}"] if types else []
    details += [f"{key} may not be set" for key in ("user", "role") if key in more]
    told = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}"
    return Violation("seLinuxOptions", told)


def seccomp_annotations(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """Seccomp is not turned off, as annotations said it once."""
    found = [
        f"{key}={go_quote(value)}"
        for key, value in sorted((metadata.get("annotations") or {}).items())
        if (key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER))
        and value not in ("runtime/default", "docker/default")
        and not value.startswith("localhost/")
    ]
    if not found:
        return None
    return Violation(
        "seccompProfile", f"forbidden annotation{'s' if len(found) != 1 else ''} {', '.join(found)}"
    )


def _bad_profiles(spec: Json) -> tuple[list[str], list[str]]:
    """Who sets a profile of seccomp that neither level allows, and which."""
    values: set[str] = set()

    def wrong(holder: Json) -> bool:
        kind = context(holder, "seccompProfile", "type")
        if kind not in (None, "RuntimeDefault", "Localhost"):
            values.add(str(kind))
            return True
        return False

    return setters_of(wrong(spec), names_of(spec, wrong)), sorted(values)


def seccomp(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """Seccomp is not turned off."""
    setters, values = _bad_profiles(spec)
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.seccompProfile.type to {quoted(values)}"
    return Violation("seccompProfile", detail)


_SYSCTLS: tuple[tuple[Version, str], ...] = (
    (
        (1, 0),
        "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies "
        "net.ipv4.ping_group_range net.ipv4.ip_unprivileged_port_start",
    ),
    ((1, 27), "net.ipv4.ip_local_reserved_ports"),
    (
        (1, 29),
        "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout "
        "net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes",
    ),
    ((1, 32), "net.ipv4.tcp_rmem net.ipv4.tcp_wmem"),
)
"""Kernel parameters that harm nobody else on the node, by the version that took them in."""


def sysctls(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No kernel parameters but harmless ones."""
    fine = {name for since, names in _SYSCTLS if since <= version for name in names.split()}
    used = [str(each.get("name")) for each in items(struct(spec, "securityContext") or {}, "sysctls")]
    found = [name for name in used if name not in fine]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def host_process(metadata: Json, spec: Json, version: Version) -> Violation | None:
    """No processes of a Windows host."""

    def wrong(holder: Json) -> bool:
        return context(holder, "windowsOptions", "hostProcess") is True

    setters = setters_of(wrong(spec), names_of(spec, wrong))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail)
