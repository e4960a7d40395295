"""Security of pods and containers: users, profiles, systems, and annotations that said the same once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core import pods
from apimachinery.kinds.fields import (
    Json,
    lookup,
    numbered,
    struct,
)
from apimachinery.kinds.gates import enabled
from apimachinery.meta.field_errors import forbidden, invalid_value, not_supported, too_long
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder

_MAX_ID = 2**31 - 1
_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_KINDS = ("initContainers", "containers", "ephemeralContainers")
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_MIRROR = "kubernetes.io/config.mirror"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_LINUX_POD = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_LINUX_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
# Go's classes of characters; the patterns are ours and linear.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r"[^\\/:*?\"<>|.][^\\/:*?\"<>|]{0,14}")
_DOMAIN_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*")
_USER_CHARACTERS = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_AND_SPACES = re.compile(r"[. ]+")


def containers(spec: Json) -> Iterator[tuple[str, int, Json]]:
    """Every container of a spec, of whatever kind: the list it is in, its place there, itself."""
    for kind in _KINDS:
        given = spec.get(kind)
        if isinstance(given, list):
            for index, container in enumerate(given):
                if isinstance(container, dict):
                    yield kind, index, container


def pod_context(value: Any, path: str) -> Errors:
    """The security context of a pod."""
    if not isinstance(value, dict) or not value:
        return
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from checks.between(value.get(key), f"{path}.{key}", 0, _MAX_ID)
    for index, group in enumerate(value.get("supplementalGroups") or ()):
        yield from checks.between(group, f"{path}.supplementalGroups[{index}]", 0, _MAX_ID)
    yield from pods.sysctls(value.get("sysctls"), f"{path}.sysctls")
    for key, allowed in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive") if enabled("SELinuxMount") else ("Recursive",)),
    ):
        if value.get(key) is not None and value[key] not in allowed:
            yield not_supported(f"{path}.{key}", value[key], allowed)
    yield from _profiles(value, path)


def container_context(value: Any, path: str) -> Errors:
    """The security context of a container."""
    if not isinstance(value, dict) or not value:
        return
    for key in ("runAsUser", "runAsGroup"):
        yield from checks.between(value.get(key), f"{path}.{key}", 0, _MAX_ID)
    if value.get("procMount") is not None:
        if value["procMount"] not in ("Default", "Unmasked"):
            yield not_supported(f"{path}.procMount", value["procMount"], ("Default", "Unmasked"))
    if value.get("allowPrivilegeEscalation") is False:
        shown = InOrder(_go_context(value))
        if value.get("privileged"):
            yield invalid_value(
                path, shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            )
        if "CAP_SYS_ADMIN" in (lookup(value, "capabilities", "add") or ()):
            yield invalid_value(
                path,
                shown,
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            )
    yield from _profiles(value, path)


def _go_context(value: Json) -> Json:
    capabilities = struct(value, "capabilities")
    shown: Json = {
        "Capabilities": None
        if capabilities is None
        else {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    }
    for name in (
        "Privileged",
        "SELinuxOptions",
        "WindowsOptions",
        "RunAsUser",
        "RunAsGroup",
        "RunAsNonRoot",
        "ReadOnlyRootFilesystem",
        "AllowPrivilegeEscalation",
        "ProcMount",
        "SeccompProfile",
        "AppArmorProfile",
    ):
        key = "seLinuxOptions" if name == "SELinuxOptions" else name[0].lower() + name[1:]
        shown[name] = value.get(key)
    return shown


def _profiles(context: Json, path: str) -> Errors:
    if context.get("seccompProfile") is not None:
        yield from _seccomp(context["seccompProfile"], f"{path}.seccompProfile")
    if context.get("windowsOptions") is not None:
        yield from _windows(context["windowsOptions"], f"{path}.windowsOptions")
    if context.get("appArmorProfile") is not None:
        yield from _app_armor(context["appArmorProfile"], f"{path}.appArmorProfile")


def _seccomp(profile: Json, path: str) -> Errors:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required_error(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if kind == "Localhost":
        if local is None:
            yield required_error(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            yield from pods.relative_path(local, f"{path}.localhostProfile")
    elif local is not None:
        shown = InOrder({"Type": kind, "LocalhostProfile": local})
        yield invalid_value(
            f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost"
        )


def _app_armor(profile: Json, path: str) -> Errors:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    place = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            yield required_error(place, "must be set when AppArmor type is Localhost")
            return
        if local.strip() != local:
            yield invalid_value(place, local, "must not be padded with whitespace")
        elif not local:
            yield required_error(place, "must be set when AppArmor type is Localhost")
        if len(local.encode()) > 4095:
            yield too_long(place, 4095)
    elif kind in _TYPES:
        if local is not None:
            yield invalid_value(place, local, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield required_error(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        yield not_supported(f"{path}.type", kind, _TYPES)


def _windows(options: Json, path: str) -> Errors:
    if options.get("gmsaCredentialSpecName") is not None:
        yield from checks.each_fault(
            options["gmsaCredentialSpecName"], f"{path}.gmsaCredentialSpecName", "dns-subdomain"
        )
    text = options.get("gmsaCredentialSpec")
    if text == "":
        yield invalid_value(
            f"{path}.gmsaCredentialSpec", text, "gmsaCredentialSpec cannot be an empty string"
        )
    elif isinstance(text, str) and len(text.encode()) > 64 * 1024:
        yield invalid_value(
            f"{path}.gmsaCredentialSpec", text, "gmsaCredentialSpec size must be under 64 KiB"
        )
    name = options.get("runAsUserName")
    for detail in _user_name_faults(name) if isinstance(name, str) else ():
        yield invalid_value(f"{path}.runAsUserName", name, detail)


def _user_name_faults(name: str) -> Iterator[str]:
    if not name:
        yield "runAsUserName cannot be an empty string"
    elif _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
    elif name.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        domain, backslash, user = name.rpartition("\\")
        if len(domain) >= 256:
            yield "runAsUserName's Domain length must be under 256 characters"
        if backslash and not (_NETBIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
            yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "runAsUserName's User cannot be empty"
        elif len(user) > 104:
            yield "runAsUserName's User length must not be longer than 104 characters"
        if _DOTS_AND_SPACES.fullmatch(user):
            yield "runAsUserName's User cannot contain only periods or spaces"
        if _USER_CHARACTERS.search(user):
            yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def host(spec: Json, path: str) -> Errors:
    """What a pod shares with its host, its system, and its name there."""
    context = struct(spec, "securityContext") or {}
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield invalid_value(
            f"{path}.securityContext.shareProcessNamespace",
            True,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        )
    if context.get("sysctls"):
        yield from _host_sysctls(spec, context, path)
    yield from _users(spec, path)
    yield from _host_processes(spec, context, path)
    yield from _host_name(spec, path)
    system = struct(spec, "os")
    if system is None:
        return
    name = system.get("name") or ""
    if not name:
        yield required_error(f"{path}.os.name")
    elif name == "linux":
        yield from _linux(spec, context, path)
    elif name == "windows":
        yield from _not_on_windows(spec, context, path)
    else:
        yield not_supported(f"{path}.os", name, ("linux", "windows"))


def _host_sysctls(spec: Json, context: Json, path: str) -> Errors:
    for index, each in numbered(context, "sysctls"):
        name = each.get("name") or ""
        place = f"{path}.securityContext.sysctls[{index}].name"
        # A name with slashes before dots has them the other way round.
        dotted = name.replace("/", ".") if "/" in name.partition(".")[0] else name
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield invalid_value(place, name, "may not be specified when 'hostNetwork' is true")
        ipc = dotted.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or dotted == "kernel.sem"
        if spec.get("hostIPC") and ipc:
            yield invalid_value(place, name, "may not be specified when 'hostIPC' is true")


def _users(spec: Json, path: str) -> Errors:
    own = spec.get("hostUsers") is False
    if not own:
        for kind, index, container in containers(spec):
            if lookup(container, "securityContext", "procMount") == "Unmasked":
                place = f"{path}.{kind}[{index}].securityContext.procMount"
                yield invalid_value(place, "Unmasked", "`hostUsers` must be false to use `Unmasked`")
        return
    detail = "when `hostUsers` is false"
    if spec.get("hostNetwork"):
        yield forbidden(f"{path}.hostNetwork", detail)
    for key in ("HostPID", "HostIPC"):
        if spec.get(f"h{key[1:]}"):
            yield forbidden(f"{path}.{key}", detail)
    for kind, index, container in containers(spec):
        if container.get("volumeDevices"):
            yield forbidden(f"{path}.{kind}[{index}].volumeDevices", detail)


def _host_processes(spec: Json, context: Json, path: str) -> Errors:
    of_pod = lookup(context, "windowsOptions", "hostProcess")
    count = hosted = 0
    for kind, index, container in containers(spec):
        count += 1
        own = lookup(container, "securityContext", "windowsOptions", "hostProcess")
        if of_pod is not None and own is not None and of_pod != own:
            yield invalid_value(
                f"{path}.{kind}[{index}].securityContext.windowsOptions.hostProcess",
                own,
                f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}",
            )
        hosted += bool(of_pod if own is None else own)
    if not hosted:
        return
    if hosted != count:
        yield invalid_value(
            path,
            "",
            "If pod contains any hostProcess containers then all containers must be HostProcess containers",
        )
    if not spec.get("hostNetwork"):
        yield invalid_value(
            f"{path}.hostNetwork",
            False,
            "hostNetwork must be true if pod contains any hostProcess containers",
        )


def _host_name(spec: Json, path: str) -> Errors:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    place = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(place, "may not be specified when hostNetwork is true")
    if len(name.encode()) > 64:
        yield too_long(place, 64)
    yield from checks.each_fault(name, place, "dns-subdomain")


def _linux(spec: Json, context: Json, path: str) -> Errors:
    detail = "windows options cannot be set for a linux pod"
    if context.get("windowsOptions") is not None:
        yield forbidden(f"{path}.securityContext.windowsOptions", detail)
    for kind, index, container in containers(spec):
        if lookup(container, "securityContext", "windowsOptions") is not None:
            yield forbidden(f"{path}.{kind}[{index}].securityContext.windowsOptions", detail)


def _not_on_windows(spec: Json, context: Json, path: str) -> Errors:
    detail = "cannot be set for a windows pod"
    for key in ("hostUsers", "shareProcessNamespace"):
        if spec.get(key) is not None:
            yield forbidden(f"{path}.{key}", detail)
    for key in ("hostPID", "hostIPC"):
        if spec.get(key):
            yield forbidden(f"{path}.{key}", detail)
    for key in _LINUX_POD:
        if context.get(key) is not None and context[key] != []:
            yield forbidden(f"{path}.securityContext.{key}", detail)
    for kind, index, container in containers(spec):
        own = struct(container, "securityContext") or {}
        for key in _LINUX_CONTAINER:
            if own.get(key) is not None:
                yield forbidden(f"{path}.{kind}[{index}].securityContext.{key}", detail)


def annotation_values(pod: Json, path: str) -> Errors:
    """What annotations of a pod say of how it runs."""
    given = lookup(pod, "metadata", "annotations")
    if not isinstance(given, dict) or not given:
        return
    spec, place = struct(pod, "spec") or {}, "metadata.annotations"
    del path
    if _MIRROR in given and not spec.get("nodeName"):
        yield invalid_value(
            f"{place}[{_MIRROR}]", given[_MIRROR], "must set spec.nodeName if mirror pod annotation is set"
        )
    if _COST in given and not _is_int32(given[_COST]):
        yield invalid_value(f"{place}[{_COST}]", given[_COST], "must be a 32bit integer")
    names = {container.get("name") for _, _, container in containers(spec)}
    for key, text in sorted(given.items()):
        if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            yield from _old_seccomp(text, f"{place}.{key}")
        elif key.startswith(_APP_ARMOR):
            name = key.removeprefix(_APP_ARMOR)
            if name not in names:
                yield invalid_value(f"{place}[{key}]", name, "container not found")
            if text not in ("", "runtime/default", "unconfined") and not text.startswith("localhost/"):
                yield invalid_value(f"{place}[{key}]", text, f'invalid AppArmor profile name: "{text}"')


def _is_int32(text: str) -> bool:
    # Go takes no signs of plus nor leading zeros here.
    return bool(re.fullmatch(r"0|-?[1-9][0-9]*", text)) and -(2**31) <= int(text) < 2**31


def _old_seccomp(text: str, path: str) -> Errors:
    if text in ("runtime/default", "docker/default", "unconfined"):
        return
    if text.startswith("localhost/"):
        yield from pods.relative_path(text.removeprefix("localhost/"), path)
    else:
        yield invalid_value(path, text, "must be a valid seccomp profile")


def annotations_match(pod: Json, path: str) -> Errors:
    """Profiles in annotations are those in fields, where a new pod has both."""
    del path
    given, spec = lookup(pod, "metadata", "annotations") or {}, struct(pod, "spec") or {}
    if not given:
        return
    context = struct(spec, "securityContext") or {}
    if _SECCOMP_POD in given and context.get("seccompProfile"):
        place = "spec.securityContext.seccompProfile"
        yield from _same("seccomp", given[_SECCOMP_POD], context["seccompProfile"], place)
    for kind, index, container in containers(spec):
        place, own = f"spec.{kind}[{index}].securityContext", struct(container, "securityContext") or {}
        name = container.get("name")
        text = given.get(f"{_SECCOMP_CONTAINER}{name}")
        if text is not None and own.get("seccompProfile"):
            yield from _same("seccomp", text, own["seccompProfile"], f"{place}.seccompProfile")
        text = given.get(f"{_APP_ARMOR}{name}")
        profile = own.get("appArmorProfile") or context.get("appArmorProfile")
        if text is not None and profile and lookup(spec, "os", "name") != "windows":
            yield from _same("apparmor", text, profile, f"{place}.appArmorProfile")


def _same(what: str, text: str, profile: Json, path: str) -> Errors:
    kind = profile.get("type")
    defaults = ("runtime/default", "docker/default") if what == "seccomp" else ("runtime/default",)
    fits = {
        "Unconfined": text == "unconfined",
        "RuntimeDefault": text in defaults,
        "Localhost": text.startswith("localhost/"),
    }.get(str(kind), True)
    if not fits:
        yield forbidden(f"{path}.type", f"{what} type in annotation and field must match")
    elif kind == "Localhost" and text.removeprefix("localhost/") != profile.get("localhostProfile"):
        yield forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")
