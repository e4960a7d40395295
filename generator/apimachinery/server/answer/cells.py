"""The computed cells of built-in kinds' tables, as kubectl's users know them.

A cell is a dotted path with the text for nothing (``at``), or a function of the object. Tables are by kind and column;
a column that is not here is empty, except for Name and the ages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.json import Json
from apimachinery.server.answer.autoscaler_cells import AUTOSCALER
from apimachinery.server.answer.cell import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    at,
    count_at,
    get,
    joined,
    text_at,
)
from apimachinery.server.answer.durations import between, since
from apimachinery.server.answer.pod_cells import POD


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


def _cluster_ip(service: Json) -> str:
    spec = service.get("spec") or {}
    given = spec.get("clusterIPs") or [spec.get("clusterIP")]
    return str(given[0] or NONE)


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
    if kind not in ("ClusterIP", "NodePort"):
        return UNKNOWN
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
    kind, name = str(involved.get("kind", "")).lower(), str(involved.get("name", ""))
    return f"{kind}/{name}" if kind else name


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
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    found.add(labels.get("kubernetes.io/role") or "")
    return ",".join(sorted(name for name in found if name)) or NONE


def _kernel(node: Json) -> str:
    info = get(node, "status.nodeInfo") or {}
    kernel = str(info.get("kernelVersion") or UNKNOWN)
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


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
    parent = get(address, "spec.parentRef")
    if parent is None:
        return NONE
    group = f".{parent['group']}" if parent.get("group") else ""
    place = f"{parent['namespace']}/" if parent.get("namespace") else ""
    return f"{parent.get('resource', '')}{group}".lower() + f"/{place}{parent.get('name', '')}"


def _health(key: str, nothing: str) -> Cell:
    def cell(status: Json) -> str:
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Healthy":
                healthy = "Healthy" if condition.get("status") == "True" else "Unhealthy"
                return healthy if key == "status" else str(condition.get(key) or "")
        return nothing

    return cell


def _encodings(version: Json) -> str:
    stored = get(version, "status.storageVersions") or []
    return _few([f"{each.get('apiServerID', '')}={each.get('encodingVersion', '')}" for each in stored])


def _migrated(migration: Json) -> str:
    resource = get(migration, "spec.resource") or {}
    group = f".{resource['group']}" if resource.get("group") else ""
    return f"{resource.get('resource', '')}{group}"


def _migration_state(migration: Json) -> str:
    state = "Unknown"
    for condition in get(migration, "status.conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Running", "Failed", "Succeeded"):
            state = condition["type"]
    return state


def _claim_state(claim: Json) -> str:
    states = []
    if "deletionTimestamp" in claim["metadata"]:
        states.append("deleted")
    if get(claim, "status.allocation") is None:
        return ",".join(states or ["pending"])
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
        "SignerName": at("spec.signerName", NONE),
        "Requestor": at("spec.username"),
        "RequestedDuration": _of("spec.expirationSeconds", lambda s: NONE if s is None else between(0, s)),
        "Condition": _request_state,
    },
    "ComponentStatus": {
        "Status": _health("status", "Unknown"),
        "Message": _health("message", ""),
        "Error": _health("error", ""),
    },
    "ConfigMap": {"Data": count_at("data", "binaryData")},
    "ControllerRevision": {"Controller": _controller, "Revision": at("revision", 0)},
    "CronJob": {
        "Schedule": at("spec.schedule"),
        "Timezone": at("spec.timeZone", NONE),
        "Suspend": _of("spec.suspend", lambda value: UNSET if value is None else str(bool(value))),
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
    "HorizontalPodAutoscaler": AUTOSCALER,
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
        "Kernel-Version": _kernel,
        "Container-Runtime": at("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    },
    "PersistentVolume": {
        "Capacity": at("spec.capacity.storage", "0"),
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
    "Pod": POD,
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
        "NominalConcurrencyShares": at("spec.limited.nominalConcurrencyShares", NONE),
        "Queues": at("spec.limited.limitResponse.queuing.queues", NONE),
        "HandSize": at("spec.limited.limitResponse.queuing.handSize", NONE),
        "QueueLengthLimit": at("spec.limited.limitResponse.queuing.queueLengthLimit", NONE),
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
        "Cluster-IP": _cluster_ip,
        "External-IP": _external_ip,
        "Port(s)": _service_ports,
        "Selector": _of("spec.selector", labels_text),
    },
    "ServiceCIDR": {"CIDRs": _of("spec.cidrs", lambda cidrs: ",".join(cidrs or ()))},
    "StorageVersion": {
        "CommonEncodingVersion": at("status.commonEncodingVersion", UNSET),
        "StorageVersions": _encodings,
    },
    "StorageVersionMigration": {"Resource": _migrated, "Status": _migration_state},
    "StatefulSet": {"Ready": _ready("status.readyReplicas", "spec.replicas"), **_workload(selector=False)},
    "StorageClass": {
        "Provisioner": at("provisioner"),
        "ReclaimPolicy": at("reclaimPolicy", "Delete"),
        "VolumeBindingMode": at("volumeBindingMode", "Immediate"),
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
