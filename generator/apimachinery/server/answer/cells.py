"""The computed cells of built-in kinds' tables, as kubectl's users know them.

A cell is a dotted path with the text for nothing (``at``), or a function of the object. Tables are by kind and column;
a column that is not here is empty, but for Name and the ages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.json import Json
from apimachinery.server.answer.durations import between, since
from apimachinery.server.answer.json_path import print_value

Cell = Callable[[Json], Any]
NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


def get(obj: Any, path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def at(path: str, nothing: Any = "") -> Cell:
    """The cell that shows what stands at a path."""

    def cell(obj: Json) -> Any:
        value = get(obj, path)
        return nothing if value is None or value == "" else value

    return cell


def text_at(path: str, nothing: str = "") -> Cell:
    """The same as text."""

    def cell(obj: Json) -> str:
        value = get(obj, path)
        return nothing if value is None or value == "" else print_value(value)

    return cell


def count_at(*paths: str) -> Cell:
    """How many entries stand at the paths together."""
    return lambda obj: sum(len(get(obj, path) or ()) for path in paths)


def joined(values: Iterable[Any], separator: str = ",") -> str:
    """Texts in a row."""
    return separator.join(print_value(value) for value in values)


def _containers(path: str, key: str) -> Cell:
    return lambda obj: joined(c.get(key, "") for c in get(obj, path) or () if isinstance(c, dict))


def labels_text(labels: Any) -> str:
    """A map as a selector's text."""
    if not labels:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Any) -> str:
    """A label selector object as a selector's text."""
    if not selector:
        return NONE
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, operator = term.get("key", ""), term.get("operator")
        values = ",".join(sorted(term.get("values") or ()))
        shown = {"Exists": key, "DoesNotExist": f"!{key}"}.get(operator)
        parts.append((key, shown or f"{key} {_OPERATORS.get(operator, operator)} ({values})"))
    return ",".join(text for _, text in sorted(parts)) or NONE


def _of(path: str, show: Callable[[Any], Any]) -> Cell:
    return lambda obj: show(get(obj, path))


def _workload(template: str = "spec.template.spec.containers", selector: bool = True) -> dict[str, Cell]:
    found = {"Containers": _containers(template, "name"), "Images": _containers(template, "image")}
    return {**found, "Selector": _of("spec.selector", selector_text)} if selector else found


def _ready(ready: str, wanted: str) -> Cell:
    return lambda obj: f"{get(obj, ready) or 0}/{get(obj, wanted) or 0}"


def _pod_ready(pod: Json) -> str:
    statuses = get(pod, "status.containerStatuses") or []
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(get(pod, 'spec.containers') or ())}"


def _pod_status(pod: Json) -> str:
    reason = get(pod, "status.reason") or get(pod, "status.phase") or ""
    for status in get(pod, "status.containerStatuses") or ():
        state = status.get("state") or {}
        reason = get(state, "waiting.reason") or get(state, "terminated.reason") or reason
    if "deletionTimestamp" in pod["metadata"]:
        return "Unknown" if get(pod, "status.reason") == "NodeLost" else "Terminating"
    return str(reason)


def _pod_restarts(pod: Json) -> str:
    return str(sum(s.get("restartCount", 0) for s in get(pod, "status.containerStatuses") or ()))


def _gates(pod: Json) -> str:
    gates = get(pod, "spec.readinessGates") or []
    if not gates:
        return NONE
    conditions = {c.get("type"): c.get("status") for c in get(pod, "status.conditions") or ()}
    met = sum(1 for gate in gates if conditions.get(gate.get("conditionType")) == "True")
    return f"{met}/{len(gates)}"


def _external_ip(service: Json) -> str:
    spec = service.get("spec") or {}
    kind, ips = spec.get("type"), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        found = [
            i.get("ip") or i.get("hostname", "") for i in get(service, "status.loadBalancer.ingress") or ()
        ]
        return ",".join([*found, *ips]) or "<pending>"
    return ",".join(ips) or NONE


def _service_ports(service: Json) -> str:
    ports = []
    for port in get(service, "spec.ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(ports) or NONE


def _job_status(job: Json) -> str:
    conditions = {c.get("type"): c.get("status") for c in get(job, "status.conditions") or ()}
    for kind, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if conditions.get(kind) == "True":
            return shown
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for kind, shown in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if conditions.get(kind) == "True":
            return shown
    return "Running"


def _completions(job: Json) -> str:
    done, wanted = get(job, "status.succeeded") or 0, get(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = get(job, "spec.parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Json) -> str:
    start = get(job, "status.startTime")
    if not start:
        return ""
    end = get(job, "status.completionTime")
    return between(start, end) if end else since(start)


def _last_schedule(cron_job: Json) -> str:
    last = get(cron_job, "status.lastScheduleTime")
    return since(last) if last else NONE


def _hpa_reference(hpa: Json) -> str:
    target = get(hpa, "spec.scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _hpa_targets(hpa: Json) -> str:
    metrics = get(hpa, "spec.metrics") or []
    if not metrics and get(hpa, "spec.targetCPUUtilizationPercentage") is not None:
        return f"cpu: {UNKNOWN}/{get(hpa, 'spec.targetCPUUtilizationPercentage')}%"
    shown = []
    for metric in metrics[:2]:
        source = metric.get(str(metric.get("type", "")).lower()) or metric.get("resource") or {}
        target = source.get("target") or {}
        wanted = target.get("averageUtilization")
        text = (
            f"{wanted}%"
            if wanted is not None
            else target.get("averageValue") or target.get("value") or "<auto>"
        )
        prefix = f"{source['name']}: " if metric.get("type") == "Resource" and "name" in source else ""
        shown.append(f"{prefix}{UNKNOWN}/{text}")
    more = f" + {len(metrics) - 2} more..." if len(metrics) > 2 else ""
    return ", ".join(shown) + more if shown else NONE


def _role(binding: Json) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Json) -> str:
        names = []
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == kind:
                prefix = f"{subject.get('namespace', '')}/" if kind == "ServiceAccount" else ""
                names.append(prefix + subject.get("name", ""))
        return ", ".join(names)

    return cell


_ACCESS = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access(path: str) -> Cell:
    return lambda obj: ",".join(_ACCESS.get(mode, mode) for mode in get(obj, path) or ())


def _claim(volume: Json) -> str:
    reference = get(volume, "spec.claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _phase(obj: Json) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str(get(obj, "status.phase") or "")


def _class(obj: Json) -> str:
    annotation = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(annotation or get(obj, "spec.storageClassName") or "")


def _bound(path: str) -> Cell:
    """A claim's facts that count only once it is bound."""
    return lambda claim: (get(claim, path) or "") if get(claim, "spec.volumeName") else ""


def _claim_access(claim: Json) -> str:
    return str(_access("status.accessModes")(claim)) if get(claim, "spec.volumeName") else ""


def _hosts(ingress: Json) -> str:
    hosts = [rule.get("host") for rule in get(ingress, "spec.rules") or () if rule.get("host")]
    if not hosts:
        return "*"
    return ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")


def _addresses(ingress: Json) -> str:
    found = [i.get("ip") or i.get("hostname", "") for i in get(ingress, "status.loadBalancer.ingress") or ()]
    return ",".join(text for text in found if text)


def _parameters(ingress_class: Json) -> str:
    found = get(ingress_class, "spec.parameters")
    if not found:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def _endpoints(endpoints: Json) -> str:
    found: list[str] = []
    for subset in endpoints.get("subsets") or ():
        ports = subset.get("ports") or [{}]
        for port in ports:
            for address in subset.get("addresses") or ():
                suffix = f":{port['port']}" if "port" in port else ""
                found.append(f"{address.get('ip', '')}{suffix}")
    return _few(found)


def _few(found: list[str]) -> str:
    if not found:
        return NONE
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")


def _slice_ports(endpoint_slice: Json) -> str:
    ports = endpoint_slice.get("ports")
    if not ports:
        return UNSET
    return _few([str(port.get("port", port.get("name", "*"))) for port in ports])


def _slice_endpoints(endpoint_slice: Json) -> str:
    found = [a for endpoint in endpoint_slice.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return _few(found) if found else UNSET


def _controller(revision: Json) -> str:
    for owner in revision["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = GroupVersion.parse(str(owner.get("apiVersion", ""))).group
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}{'.' + group if group else ''}/{owner.get('name', '')}"
    return NONE


def _quota(prefixes: bool) -> Cell:
    def cell(quota: Json) -> str:
        hard, used = get(quota, "status.hard") or {}, get(quota, "status.used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") == prefixes)
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _last_seen(event: Json) -> str:
    series = get(event, "series.lastObservedTime")
    seen = (
        series or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or event.get("eventTime")
    )
    return since(seen)


def _first_seen(event: Json) -> str:
    return since(
        event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    )


def _event_object(event: Json) -> str:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _event_source(event: Json) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController")
    host = source.get("host") or event.get("reportingInstance")
    return f"{component or ''}, {host}" if host else str(component or "")


def _event_count(event: Json) -> int:
    return get(event, "series.count") or event.get("count") or event.get("deprecatedCount") or 1


def _node_status(node: Json) -> str:
    conditions = {c.get("type"): c.get("status") for c in get(node, "status.conditions") or ()}
    ready = conditions.get("Ready")
    shown = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    if get(node, "spec.unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


_ROLE = "node-role.kubernetes.io/"


def _roles(node: Json) -> str:
    labels = node["metadata"].get("labels") or {}
    found = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))
    return ",".join(name for name in found if name) or NONE


def _node_address(kind: str) -> Cell:
    def cell(node: Json) -> str:
        for address in get(node, "status.addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address", ""))
        return NONE

    return cell


def _request_state(request: Json) -> str:
    conditions = [c.get("type") for c in get(request, "status.conditions") or ()]
    shown = ",".join(kind for kind in ("Approved", "Denied", "Failed") if kind in conditions) or "Pending"
    return f"{shown},Issued" if get(request, "status.certificate") else shown


def _service_of(api_service: Json) -> str:
    service = get(api_service, "spec.service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _available(api_service: Json) -> str:
    for condition in get(api_service, "status.conditions") or ():
        if condition.get("type") == "Available":
            reason = condition.get("reason")
            status = condition.get("status", "")
            return status if status == "True" or not reason else f"{status} ({reason})"
    return "Unknown"


def _tokens(driver: Json) -> str:
    audiences = [request.get("audience", "") for request in get(driver, "spec.tokenRequests") or ()]
    return ",".join(audiences) or UNSET


def _flag_at(path: str) -> Cell:
    return lambda obj: bool(get(obj, path))


def _param_kind(policy: Json) -> str:
    kind = get(policy, "spec.paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_ref(binding: Json) -> str:
    reference = get(binding, "spec.paramRef")
    if not reference:
        return UNSET
    name = reference.get("name")
    if not name:
        return "*" if reference.get("selector") is not None else UNSET
    namespace = reference.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


def _parent(address: Json) -> str:
    parent = get(address, "spec.parentRef") or {}
    place = f"{parent['namespace']}/" if parent.get("namespace") else ""
    kind = parent.get("resource", "") + (f".{parent['group']}" if parent.get("group") else "")
    return f"{kind}/{place}{parent.get('name', '')}"


def _claim_state(claim: Json) -> str:
    states = []
    if "deletionTimestamp" in claim["metadata"]:
        states.append("deleted")
    if get(claim, "status.allocation") is None:
        return ",".join([*states, "pending"])
    states.append("allocated")
    if get(claim, "status.reservedFor"):
        states.append("reserved")
    return ",".join(states)


_KINDS: dict[str, dict[str, Cell]] = {
    "APIService": {"Service": _service_of, "Available": _available},
    "CSIDriver": {
        "AttachRequired": _flag_at("spec.attachRequired"),
        "PodInfoOnMount": _flag_at("spec.podInfoOnMount"),
        "StorageCapacity": _flag_at("spec.storageCapacity"),
        "TokenRequests": _tokens,
        "RequiresRepublish": _flag_at("spec.requiresRepublish"),
        "Modes": _of("spec.volumeLifecycleModes", lambda modes: ",".join(modes or ()) or NONE),
    },
    "CSINode": {"Drivers": count_at("spec.drivers")},
    "CertificateSigningRequest": {
        "SignerName": at("spec.signerName"),
        "Requestor": at("spec.username"),
        "RequestedDuration": _of("spec.expirationSeconds", lambda s: NONE if s is None else between(0, s)),
        "Condition": _request_state,
    },
    "ConfigMap": {"Data": count_at("data", "binaryData")},
    "ControllerRevision": {"Controller": _controller, "Revision": at("revision", 0)},
    "CronJob": {
        "Schedule": at("spec.schedule"),
        "Timezone": at("spec.timeZone", NONE),
        "Suspend": _of("spec.suspend", lambda value: "True" if value else "False"),
        "Active": count_at("status.active"),
        "Last Schedule": _last_schedule,
        **_workload("spec.jobTemplate.spec.template.spec.containers", selector=False),
        "Selector": _of("spec.jobTemplate.spec.selector", selector_text),
    },
    "DaemonSet": {
        "Desired": at("status.desiredNumberScheduled", 0),
        "Current": at("status.currentNumberScheduled", 0),
        "Ready": at("status.numberReady", 0),
        "Up-to-date": at("status.updatedNumberScheduled", 0),
        "Available": at("status.numberAvailable", 0),
        "Node Selector": _of("spec.template.spec.nodeSelector", labels_text),
        **_workload(),
    },
    "Deployment": {
        "Ready": _ready("status.readyReplicas", "spec.replicas"),
        "Up-to-date": at("status.updatedReplicas", 0),
        "Available": at("status.availableReplicas", 0),
        **_workload(),
    },
    "EndpointSlice": {
        "AddressType": at("addressType"),
        "Ports": _slice_ports,
        "Endpoints": _slice_endpoints,
    },
    "Endpoints": {"Endpoints": _endpoints},
    "Event": {
        "Last Seen": _last_seen,
        "Type": at("type"),
        "Reason": at("reason"),
        "Object": _event_object,
        "Subobject": lambda e: get(e, "involvedObject.fieldPath") or get(e, "regarding.fieldPath") or "",
        "Source": _event_source,
        "Message": lambda e: str(e.get("message") or e.get("note") or "").strip(),
        "First Seen": _first_seen,
        "Count": _event_count,
    },
    "FlowSchema": {
        "PriorityLevel": at("spec.priorityLevelConfiguration.name"),
        "MatchingPrecedence": at("spec.matchingPrecedence", 0),
        "DistinguisherMethod": at("spec.distinguisherMethod.type", NONE),
        "MissingPL": lambda obj: "?",
    },
    "HorizontalPodAutoscaler": {
        "Reference": _hpa_reference,
        "Targets": _hpa_targets,
        "MinPods": text_at("spec.minReplicas", UNSET),
        "MaxPods": at("spec.maxReplicas", 0),
        "Replicas": at("status.currentReplicas", 0),
    },
    "IPAddress": {"ParentRef": _parent},
    "Ingress": {
        "Class": at("spec.ingressClassName", NONE),
        "Hosts": _hosts,
        "Address": _addresses,
        "Ports": lambda obj: "80, 443" if get(obj, "spec.tls") else "80",
    },
    "IngressClass": {"Controller": at("spec.controller"), "Parameters": _parameters},
    "Job": {
        "Status": _job_status,
        "Completions": _completions,
        "Duration": _job_duration,
        **_workload(),
    },
    "Lease": {"Holder": at("spec.holderIdentity")},
    "MutatingAdmissionPolicy": {"Mutations": count_at("spec.mutations"), "ParamKind": _param_kind},
    "MutatingAdmissionPolicyBinding": {"PolicyName": at("spec.policyName"), "ParamRef": _param_ref},
    "MutatingWebhookConfiguration": {"Webhooks": count_at("webhooks")},
    "Namespace": {"Status": at("status.phase")},
    "NetworkPolicy": {"Pod-Selector": _of("spec.podSelector", selector_text)},
    "Node": {
        "Status": _node_status,
        "Roles": _roles,
        "Version": at("status.nodeInfo.kubeletVersion"),
        "Internal-IP": _node_address("InternalIP"),
        "External-IP": _node_address("ExternalIP"),
        "OS-Image": at("status.nodeInfo.osImage", UNKNOWN),
        "Kernel-Version": at("status.nodeInfo.kernelVersion", UNKNOWN),
        "Container-Runtime": at("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    },
    "PersistentVolume": {
        "Capacity": at("spec.capacity.storage"),
        "Access Modes": _access("spec.accessModes"),
        "Reclaim Policy": at("spec.persistentVolumeReclaimPolicy"),
        "Status": _phase,
        "Claim": _claim,
        "StorageClass": _class,
        "VolumeAttributesClass": at("spec.volumeAttributesClassName", UNSET),
        "Reason": at("status.reason"),
        "VolumeMode": at("spec.volumeMode", UNSET),
    },
    "PersistentVolumeClaim": {
        "Status": _phase,
        "Volume": at("spec.volumeName"),
        "Capacity": _bound("status.capacity.storage"),
        "Access Modes": _claim_access,
        "StorageClass": _class,
        "VolumeAttributesClass": at("spec.volumeAttributesClassName", UNSET),
        "VolumeMode": at("spec.volumeMode", UNSET),
    },
    "Pod": {
        "Ready": _pod_ready,
        "Status": _pod_status,
        "Restarts": _pod_restarts,
        "IP": at("status.podIP", NONE),
        "Node": at("spec.nodeName", NONE),
        "Nominated Node": at("status.nominatedNodeName", NONE),
        "Readiness Gates": _gates,
    },
    "PodDisruptionBudget": {
        "Min Available": text_at("spec.minAvailable", "N/A"),
        "Max Unavailable": text_at("spec.maxUnavailable", "N/A"),
        "Allowed Disruptions": at("status.disruptionsAllowed", 0),
    },
    "PodTemplate": {
        **_workload("template.spec.containers", selector=False),
        "Pod Labels": _of("template.metadata.labels", labels_text),
    },
    "PriorityClass": {
        "Value": at("value", 0),
        "Global-Default": _flag_at("globalDefault"),
        "PreemptionPolicy": at("preemptionPolicy"),
    },
    "PriorityLevelConfiguration": {
        "Type": at("spec.type"),
        "NominalConcurrencyShares": text_at("spec.limited.nominalConcurrencyShares", NONE),
        "Queues": text_at("spec.limited.limitResponse.queuing.queues", NONE),
        "HandSize": text_at("spec.limited.limitResponse.queuing.handSize", NONE),
        "QueueLengthLimit": text_at("spec.limited.limitResponse.queuing.queueLengthLimit", NONE),
    },
    "ReplicaSet": {
        "Desired": at("spec.replicas", 0),
        "Current": at("status.replicas", 0),
        "Ready": at("status.readyReplicas", 0),
        **_workload(),
    },
    "ReplicationController": {
        "Desired": at("spec.replicas", 0),
        "Current": at("status.replicas", 0),
        "Ready": at("status.readyReplicas", 0),
        **_workload(),
        "Selector": _of("spec.selector", labels_text),
    },
    "ResourceClaim": {"State": _claim_state},
    "ResourceQuota": {"Request": _quota(False), "Limit": _quota(True)},
    "ResourceSlice": {
        "Node": at("spec.nodeName"),
        "Driver": at("spec.driver"),
        "Pool": at("spec.pool.name"),
    },
    "RoleBinding": {
        "Role": _role,
        "Users": _subjects("User"),
        "Groups": _subjects("Group"),
        "ServiceAccounts": _subjects("ServiceAccount"),
    },
    "RuntimeClass": {"Handler": at("handler")},
    "Secret": {"Type": at("type"), "Data": count_at("data")},
    "Service": {
        "Type": at("spec.type"),
        "Cluster-IP": at("spec.clusterIP", NONE),
        "External-IP": _external_ip,
        "Port(s)": _service_ports,
        "Selector": _of("spec.selector", labels_text),
    },
    "ServiceCIDR": {"CIDRs": _of("spec.cidrs", lambda cidrs: ",".join(cidrs or ()))},
    "StatefulSet": {"Ready": _ready("status.readyReplicas", "spec.replicas"), **_workload(selector=False)},
    "StorageClass": {
        "Provisioner": at("provisioner"),
        "ReclaimPolicy": at("reclaimPolicy", "Delete"),
        "VolumeBindingMode": at("volumeBindingMode", UNSET),
        "AllowVolumeExpansion": _flag_at("allowVolumeExpansion"),
    },
    "ValidatingAdmissionPolicy": {"Validations": count_at("spec.validations"), "ParamKind": _param_kind},
    "ValidatingAdmissionPolicyBinding": {"PolicyName": at("spec.policyName"), "ParamRef": _param_ref},
    "ValidatingWebhookConfiguration": {"Webhooks": count_at("webhooks")},
    "VolumeAttachment": {
        "Attacher": at("spec.attacher"),
        "PV": at("spec.source.persistentVolumeName"),
        "Node": at("spec.nodeName"),
        "Attached": _flag_at("status.attached"),
    },
    "VolumeAttributesClass": {"DriverName": at("driverName")},
}
_KINDS["ClusterRoleBinding"] = _KINDS["RoleBinding"]
CELLS: dict[tuple[str, str], Cell] = {
    (kind, column): cell for kind, cells in _KINDS.items() for column, cell in cells.items()
}
