"""The Pod Security Standards: what pods of the levels baseline and restricted may not ask for, by version.

https://kubernetes.io/docs/concepts/security/pod-security-standards/. A check looks at a pod's metadata and spec and
returns None, or the detail of what it forbids. A version says what the standard was then; what came later does not hold
for it. Checks are told in the order of the table, baseline first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from apimachinery.meta.printing import go_quote
from apimachinery.rules.fields import Json, items, lookup, struct

LEVELS = ("privileged", "baseline", "restricted")
LATEST = (1, 1 << 30)
Version = tuple[int, int]
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,8})")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_USER_NAMESPACES: Version = (1, 35)
"""From here on a pod with users of its own may do what would be dangerous with the host's."""


def parse_version(text: str) -> Version | None:
    """``latest`` or ``v1.N``; None for anything else."""
    if text == "latest":
        return LATEST
    found = _VERSION.fullmatch(text)
    return None if found is None else (1, int(found[1]))


@dataclass(frozen=True, slots=True)
class Violation:
    """What a pod may not have, and where it has it."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


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


def _containers(spec: Json) -> Iterator[Json]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from items(spec, key)


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def _some(word: str, names: list[str]) -> str:
    return f"{word}{'s' if len(names) != 1 else ''} {_quoted(names)}"


def _setters(pod: bool, names: list[str]) -> list[str]:
    return (["pod"] if pod else []) + ([_some("container", names)] if names else [])


def _names(spec: Json, wrong: Callable[[Json], bool]) -> list[str]:
    return [str(container.get("name")) for container in _containers(spec) if wrong(container)]


def _context(container: Json, *keys: str) -> object:
    return lookup(container, "securityContext", *keys)


def _windows(spec: Json) -> bool:
    return bool(lookup(spec, "os", "name") == "windows")


def _own_users(spec: Json, version: Version) -> bool:
    return version >= _USER_NAMESPACES and spec.get("hostUsers") is False


def _app_armor(metadata: Json, spec: Json, version: Version) -> Violation | None:
    fine = (None, "RuntimeDefault", "Localhost")
    values: list[str] = []

    def wrong(holder: Json) -> bool:
        kind = _context(holder, "appArmorProfile", "type")
        if kind not in fine:
            values.append(str(kind))
        return kind not in fine

    setters = _setters(wrong(spec), _names(spec, wrong))
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
    return Violation(
        reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(shown)}"
    )


_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)


def _added(spec: Json, fine: frozenset[str]) -> str:
    """Who adds capabilities that are not allowed, and which."""
    values: set[str] = set()

    def wrong(container: Json) -> bool:
        added = lookup(container, "securityContext", "capabilities", "add")
        found = {str(each) for each in added or ()} - fine
        values.update(found)
        return bool(found)

    names = _names(spec, wrong)
    if not names:
        return ""
    return f"{_some('container', names)} must not include {_quoted(sorted(values))} in securityContext.capabilities.add"


def _default_capabilities(metadata: Json, spec: Json, version: Version) -> Violation | None:
    detail = _added(spec, _CAPABILITIES)
    return Violation("non-default capabilities", detail) if detail else None


def _host_namespaces(metadata: Json, spec: Json, version: Version) -> Violation | None:
    used = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def _host_paths(metadata: Json, spec: Json, version: Version) -> Violation | None:
    names = [
        str(volume.get("name")) for volume in items(spec, "volumes") if volume.get("hostPath") is not None
    ]
    return Violation("hostPath volumes", _some("volume", names)) if names else None


def _host_ports(metadata: Json, spec: Json, version: Version) -> Violation | None:
    ports: set[str] = set()

    def wrong(container: Json) -> bool:
        found = {str(port["hostPort"]) for port in items(container, "ports") if port.get("hostPort")}
        ports.update(found)
        return bool(found)

    names = _names(spec, wrong)
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    several = "s" if len(ports) != 1 else ""
    return Violation(
        "hostPort", f"{_some('container', names)} {uses} hostPort{several} {', '.join(sorted(ports))}"
    )


def _probe_hosts(metadata: Json, spec: Json, version: Version) -> Violation | None:
    hosts: set[str] = set()

    def wrong(container: Json) -> bool:
        handlers = [
            struct(container, key) or {} for key in ("livenessProbe", "readinessProbe", "startupProbe")
        ]
        handlers += [struct(container, "lifecycle", key) or {} for key in ("postStart", "preStop")]
        found = {
            str(host)
            for handler in handlers
            for action in ("httpGet", "tcpSocket")
            if (host := lookup(handler, action, "host"))
        }
        hosts.update(found)
        return bool(found)

    names = _names(spec, wrong)
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    several = "s" if len(hosts) != 1 else ""
    detail = f"{_some('container', names)} {uses} probe or lifecycle host{several} {_quoted(sorted(hosts))}"
    return Violation("probe or lifecycle host", detail)


def _privileged(metadata: Json, spec: Json, version: Version) -> Violation | None:
    names = _names(spec, lambda container: _context(container, "privileged") is True)
    detail = f"{_some('container', names)} must not set securityContext.privileged=true"
    return Violation("privileged", detail) if names else None


def _proc_mount(metadata: Json, spec: Json, version: Version) -> Violation | None:
    values: set[str] = set()

    def wrong(container: Json) -> bool:
        kind = _context(container, "procMount")
        if kind not in (None, "Default"):
            values.add(str(kind))
        return kind not in (None, "Default")

    names = _names(spec, wrong)
    if not names:
        return None
    detail = (
        f"{_some('container', names)} must not set securityContext.procMount to {_quoted(sorted(values))}"
    )
    return Violation("procMount", detail)


def _proc_mount_of_host_users(metadata: Json, spec: Json, version: Version) -> Violation | None:
    return None if _own_users(spec, version) else _proc_mount(metadata, spec, version)


def _selinux(metadata: Json, spec: Json, version: Version) -> Violation | None:
    fine = ["", "container_t", "container_init_t", "container_kvm_t"]
    if version >= (1, 31):
        fine.append("container_engine_t")
    types: set[str] = set()
    more: set[str] = set()

    def wrong(holder: Json) -> bool:
        options = _context(holder, "seLinuxOptions")
        if not isinstance(options, dict):
            return False
        found = {str(options.get("type") or "")} - {*fine}
        named = {key for key in ("user", "role") if options.get(key)}
        types.update(found)
        more.update(named)
        return bool(found or named)

    setters = _setters(wrong(spec), _names(spec, wrong))
    if not setters:
        return None
    details = [f"type{'s' if len(types) != 1 else ''} {_quoted(sorted(types))}"] if types else []
    details += [f"{key} may not be set" for key in ("user", "role") if key in more]
    told = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}"
    return Violation("seLinuxOptions", told)


def _seccomp_annotations(metadata: Json, spec: Json, version: Version) -> Violation | None:
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
        kind = _context(holder, "seccompProfile", "type")
        if kind not in (None, "RuntimeDefault", "Localhost"):
            values.add(str(kind))
            return True
        return False

    return _setters(wrong(spec), _names(spec, wrong)), sorted(values)


def _seccomp(metadata: Json, spec: Json, version: Version) -> Violation | None:
    setters, values = _bad_profiles(spec)
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.seccompProfile.type to {_quoted(values)}"
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


def _sysctls(metadata: Json, spec: Json, version: Version) -> Violation | None:
    fine = {name for since, names in _SYSCTLS if since <= version for name in names.split()}
    used = [str(each.get("name")) for each in items(struct(spec, "securityContext") or {}, "sysctls")]
    found = [name for name in used if name not in fine]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(metadata: Json, spec: Json, version: Version) -> Violation | None:
    def wrong(holder: Json) -> bool:
        return _context(holder, "windowsOptions", "hostProcess") is True

    setters = _setters(wrong(spec), _names(spec, wrong))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail)


def _escalation(metadata: Json, spec: Json, version: Version) -> Violation | None:
    if version >= (1, 25) and _windows(spec):
        return None
    names = _names(spec, lambda container: _context(container, "allowPrivilegeEscalation") is not False)
    detail = f"{_some('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail) if names else None


def _restricted_capabilities(metadata: Json, spec: Json, version: Version) -> Violation | None:
    if version >= (1, 25) and _windows(spec):
        return None
    names = _names(
        spec, lambda each: "ALL" not in (lookup(each, "securityContext", "capabilities", "drop") or ())
    )
    details = (
        [f'{_some("container", names)} must set securityContext.capabilities.drop=["ALL"]'] if names else []
    )
    if added := _added(spec, frozenset({"NET_BIND_SERVICE"})):
        details.append(added)
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()
)


def _volume_types(metadata: Json, spec: Json, version: Version) -> Violation | None:
    names, types = [], set()
    for volume in items(spec, "volumes"):
        source = {key for key, value in volume.items() if key != "name" and value is not None}
        if not source & _VOLUMES:
            names.append(str(volume.get("name")))
            types.add(next(iter(sorted(source)), "unknown"))
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    shown = f"restricted volume type{'s' if len(types) != 1 else ''} {_quoted(sorted(types))}"
    return Violation("restricted volume types", f"{_some('volume', names)} {uses} {shown}")


def _not_root(metadata: Json, spec: Json, version: Version) -> Violation | None:
    if _own_users(spec, version):
        return None
    of_pod = _context(spec, "runAsNonRoot")
    setters = _setters(of_pod is False, _names(spec, lambda each: _context(each, "runAsNonRoot") is False))
    if setters:
        detail = f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", detail)
    names = _names(spec, lambda each: _context(each, "runAsNonRoot") is None)
    if of_pod is True or not names:
        return None
    detail = f"pod or {_some('container', names)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", detail)


def _not_user_zero(metadata: Json, spec: Json, version: Version) -> Violation | None:
    if _own_users(spec, version):
        return None

    def wrong(holder: Json) -> bool:
        return _context(holder, "runAsUser") == 0

    setters = _setters(wrong(spec), _names(spec, wrong))
    return Violation("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0") if setters else None


def _restricted_seccomp(metadata: Json, spec: Json, version: Version) -> Violation | None:
    if version >= (1, 25) and _windows(spec):
        return None
    if (found := _seccomp(metadata, spec, version)) is not None:
        return found
    if _context(spec, "seccompProfile", "type") is not None:
        return None
    names = _names(spec, lambda each: _context(each, "seccompProfile", "type") is None)
    if not names:
        return None
    detail = (
        f"pod or {_some('container', names)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail)


@dataclass(frozen=True, slots=True)
class _Check:
    """``overridden``: from which version on a check of the restricted level says the same more strictly."""

    run: Callable[[Json, Json, Version], Violation | None]
    restricted: bool = False
    since: Version = (1, 0)
    until: Version = (1, 1 << 31)
    overridden: Version = (1, 1 << 31)


_CHECKS = (
    _Check(_app_armor),
    _Check(_default_capabilities, overridden=(1, 22)),
    _Check(_host_namespaces),
    _Check(_host_paths, overridden=(1, 0)),
    _Check(_host_ports),
    _Check(_probe_hosts, since=(1, 34)),
    _Check(_privileged),
    _Check(_proc_mount_of_host_users, overridden=_USER_NAMESPACES),
    _Check(_selinux),
    _Check(_seccomp_annotations, until=(1, 19)),
    _Check(_seccomp, since=(1, 19), overridden=(1, 19)),
    _Check(_sysctls),
    _Check(_host_process),
    _Check(_escalation, restricted=True, since=(1, 8)),
    _Check(_restricted_capabilities, restricted=True, since=(1, 22)),
    _Check(_proc_mount, restricted=True, since=_USER_NAMESPACES),
    _Check(_volume_types, restricted=True),
    _Check(_not_root, restricted=True),
    _Check(_not_user_zero, restricted=True, since=(1, 23)),
    _Check(_restricted_seccomp, restricted=True, since=(1, 19)),
)
