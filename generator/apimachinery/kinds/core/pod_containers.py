"""Containers of a pod next to each other and next to its volumes: what each kind of container may have."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks, gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core import pod_probes, pod_resources, pod_volumes, pods
from apimachinery.kinds.core.pod_security import containers
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta.field_errors import (
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    too_many,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder

_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "restartPolicy",
    "restartPolicyRules",
)
_NOT_INIT = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_POLICIES = ("Always", "Never", "OnFailure")
_RESTARTS = ("NotRequired", "RestartContainer")
_RULES_NEED_POLICY = "must specify restartPolicy when restart rules are used"
_WINDOWS_SIGNALS = ("SIGKILL", "SIGTERM")
_RT = [f"SIGRTMIN+{n}" for n in range(1, 16)] + [f"SIGRTMAX-{n}" for n in range(1, 15)]
_LINUX_SIGNALS = tuple(
    sorted(
        "SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE "
        "SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU "
        "SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMAX".split()
        + _RT
    )
)


def beside_each_other(spec: Json, path: str) -> Errors:
    """Names, mounts, restarts and claims of all containers of a spec."""
    volumes = pod_volumes.sound(spec)
    claims = {claim["name"] for claim in items(spec, "resourceClaims") if claim.get("name")}
    for kind, index, container in containers(spec):
        place = f"{path}.{kind}[{index}]"
        if container.get("volumeMounts") or container.get("volumeDevices"):
            yield from _mounts(container, place, volumes)
            yield from _devices(container, place, volumes)
        if container.get("resizePolicy"):
            yield from _resize_policy(container, place, spec)
        if lookup(container, "resources", "claims"):
            yield from pod_resources.claims(container["resources"], f"{place}.resources.claims", claims)
        if container.get("env"):
            yield from _file_keys(container, place, volumes)
        if kind == "ephemeralContainers":
            yield from _ephemeral(container, place, spec)
        elif kind == "initContainers":
            yield from _init(container, place, spec)
        else:
            yield from restart_policy(container, place)
            yield from _running(container, place, spec)


def _mounts(container: Json, path: str, volumes: Json) -> Errors:
    devices = {device.get("name"): device.get("devicePath") for device in items(container, "volumeDevices")}
    seen: set[Any] = set()
    whole = f"{path}.volumeMounts"
    privileged = bool(lookup(container, "securityContext", "privileged"))
    for index, mount in numbered(container, "volumeMounts"):
        place, name, where = f"{whole}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if name not in volumes:
            yield checks.not_found(f"{place}.name", name)
        if where in seen:
            yield invalid_value(f"{place}.mountPath", where, "must be unique")
        seen.add(where)
        if name in devices:
            yield invalid_value(f"{place}.name", name, "must not already exist in volumeDevices")
        if where in devices.values():
            yield invalid_value(
                f"{place}.mountPath", where, "must not already exist as a path in volumeDevices"
            )
        yield from pods.relative_path(mount.get("subPath"), f"{whole}.subPath")
        yield from pods.relative_path(mount.get("subPathExpr"), f"{whole}.subPathExpr")
        spread = mount.get("mountPropagation")
        if spread is not None:
            if spread not in ("Bidirectional", "HostToContainer", "None"):
                allowed = ("Bidirectional", "HostToContainer", "None")
                yield not_supported(f"{whole}.mountPropagation", spread, allowed)
            if spread == "Bidirectional" and not privileged:
                yield forbidden(
                    f"{whole}.mountPropagation",
                    "Bidirectional mount propagation is available only to privileged containers",
                )
        if mount.get("recursiveReadOnly") is not None:
            yield from _recursive(mount, f"{whole}.recursiveReadOnly")


def _recursive(mount: Json, path: str) -> Errors:
    wanted = mount["recursiveReadOnly"]
    if wanted in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            yield forbidden(path, "may only be specified when mountPropagation is None or not specified")
    elif wanted != "Disabled":
        yield not_supported(path, wanted, ("Disabled", "Enabled", "IfPossible"))


def _devices(container: Json, path: str, volumes: Json) -> Errors:
    mounts = {mount.get("name"): mount.get("mountPath") for mount in items(container, "volumeMounts")}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in numbered(container, "volumeDevices"):
        place = f"{path}.volumeDevices[{index}]"
        name, where = device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        if not name:
            yield required_error(f"{place}.name")
        if name in names:
            yield invalid_value(f"{place}.name", name, "must be unique")
        if volume is None:
            yield checks.not_found(f"{place}.name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            yield invalid_value(
                f"{place}.name",
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )
        if not where:
            yield required_error(f"{place}.devicePath")
        if where in paths:
            yield invalid_value(f"{place}.devicePath", where, "must be unique")
        if ".." in where.split("/"):
            yield invalid_value(f"{place}.devicePath", where, "can not contain backsteps ('..')")
        else:
            paths.add(where)
        if name in mounts:
            yield invalid_value(f"{place}.name", name, "must not already exist in volumeMounts")
        if where in mounts.values():
            yield invalid_value(
                f"{place}.devicePath", where, "must not already exist as a path in volumeMounts"
            )
        if name:
            names.add(name)


def _resize_policy(container: Json, path: str, spec: Json) -> Errors:
    seen, place = set(), f"{path}.resizePolicy"
    for index, policy in numbered(container, "resizePolicy"):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            yield duplicate(f"{place}[{index}]", name)
        seen.add(name)
        for value, allowed in ((name, ("cpu", "memory")), (restart, _RESTARTS)):
            if not value:
                yield required_error(place)
            elif value not in allowed:
                yield not_supported(place, value, allowed)
        if spec.get("restartPolicy") == "Never" and restart != "NotRequired":
            yield invalid_value(place, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _file_keys(container: Json, path: str, volumes: Json) -> Errors:
    for index, variable in numbered(container, "env"):
        source = struct(variable, "valueFrom", "fileKeyRef")
        if source is None:
            continue
        place, name = f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName", source.get("volumeName") or ""
        if name not in volumes:
            yield checks.not_found(place, name)
        elif volumes[name].get("emptyDir") is None:
            yield invalid_value(place, name, "referenced volume must be of type emptyDir")


def _ephemeral(container: Json, path: str, spec: Json) -> Errors:
    target = container.get("targetContainerName")
    others = {each.get("name") for kind in ("containers", "initContainers") for each in items(spec, kind)}
    if target and target not in others:
        yield checks.not_found(f"{path}.targetContainerName", target)
    for key in _NOT_EPHEMERAL:
        if container.get(key) is not None and (container[key] or key != "resources"):
            yield forbidden(f"{path}.{key}", "cannot be set for an Ephemeral Container")
    for index, mount in numbered(container, "volumeMounts"):
        for key in ("subPath", "subPathExpr"):
            if mount.get(key):
                yield forbidden(
                    f"{path}.volumeMounts[{index}].{key}", "cannot be set for an Ephemeral Container"
                )


def _init(container: Json, path: str, spec: Json) -> Errors:
    policy = container.get("restartPolicy")
    always = policy == "Always"
    if policy is not None:
        yield from restart_policy(container, path)
    elif container.get("restartPolicyRules"):
        yield required_error(f"{path}.restartPolicy", _RULES_NEED_POLICY)
    if always:
        yield from _running(container, path, spec)
        return
    for key in _NOT_INIT:
        if container.get(key) is not None:
            yield forbidden(
                f"{path}.{key}", "may not be set for init containers without restartPolicy=Always"
            )
    for index, each in numbered(container, "resizePolicy"):
        if each.get("restartPolicy") == "RestartContainer":
            yield invalid_value(
                f"{path}.resizePolicy[{index}].restartPolicy",
                "RestartContainer",
                "must not be set to 'RestartContainer' for non-sidecar initContainers",
            )


def restart_policy(container: Json, path: str) -> Errors:
    """When a container is started again: a policy of its own, and rules by exit code."""
    policy, rules = container.get("restartPolicy"), list(items(container, "restartPolicyRules"))
    place = f"{path}.restartPolicy"
    if policy is None:
        if rules:
            yield required_error(place, _RULES_NEED_POLICY)
    elif policy not in _POLICIES:
        yield not_supported(place, policy, _POLICIES)
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    all_containers = gates.enabled("RestartAllContainersOnContainerExits")
    actions = ("Restart", "RestartAllContainers") if all_containers else ("Restart",)
    for index, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action") not in actions:
            yield not_supported(f"{at}.action", rule.get("action") or "", actions)
        exits = struct(rule, "exitCodes")
        if exits is None:
            yield required_error(f"{at}.exitCodes", "must be specified")
            continue
        if exits.get("operator") not in ("In", "NotIn"):
            yield not_supported(f"{at}.exitCodes.operator", exits.get("operator") or "", ("In", "NotIn"))
        if len(exits.get("values") or ()) > 255:
            yield too_many(f"{at}.exitCodes.values", len(exits["values"]), 255)


def _running(container: Json, path: str, spec: Json) -> Errors:
    yield from pod_probes.probes(container, path)
    yield from pod_probes.hooks(container, path, spec.get("terminationGracePeriodSeconds"))
    signal, system = lookup(container, "lifecycle", "stopSignal"), struct(spec, "os")
    if signal is None:
        return
    place = f"{path}.lifecycle.stopSignal"
    if system is None:
        yield forbidden(place, "may not be set for containers with empty `spec.os.name`")
        return
    allowed = {"windows": _WINDOWS_SIGNALS, "linux": _LINUX_SIGNALS}.get(str(system.get("name")))
    if allowed is not None and signal not in allowed:
        yield not_supported(place, signal, allowed)


def resource_claims(spec: Json, path: str) -> Errors:
    """Each claim of a pod names a claim or a template of one, and no two have one name."""
    seen = set()
    for index, claim in numbered(spec, "resourceClaims"):
        place, name = f"{path}.resourceClaims[{index}]", claim.get("name") or ""
        if not name:
            yield required_error(f"{place}.name")
        elif name in seen:
            yield duplicate(f"{place}.name", name)
        else:
            yield from checks.each_fault(name, f"{place}.name", "dns-label")
        seen.add(name)
        own, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = InOrder({"Name": name, "ResourceClaimName": own, "ResourceClaimTemplateName": template})
        if own is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid_value(place, shown, detail)
        if own is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid_value(place, shown, detail)
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(key) is not None:
                yield from checks.each_fault(claim[key], f"{place}.{key}", "dns-subdomain")


def images(pod: Json, path: str) -> Errors:
    """Images of a pod, not of a template of one, are alone between their blanks."""
    for kind, index, container in containers(struct(pod, "spec") or {}):
        image = container.get("image")
        if isinstance(image, str) and image.strip() != image:
            yield invalid_value(
                f"{path}spec.{kind}[{index}].image", image, "must not have leading or trailing whitespace"
            )
    spec = struct(pod, "spec") or {}
    if not spec.get("serviceAccountName"):
        for index, volume in numbered(spec, "volumes"):
            for source_index, source in numbered(struct(volume, "projected") or {}, "sources"):
                if source.get("serviceAccountToken") is not None:
                    place = f"spec.volumes[{index}].projected.sources[{source_index}].serviceAccountToken"
                    yield forbidden(place, "must not be specified when serviceAccountName is not set")


def new_pod(pod: Json, path: str) -> Errors:
    """What a pod may not have when it is created."""
    del path
    spec = struct(pod, "spec") or {}
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
