"""Files of a container that nobody in its pod wrote: /etc/hosts as a kubelet writes it, the limits of its control group
(version 2), and what it mounts of its node."""

from __future__ import annotations

import posixpath
from typing import Final

from apimachinery.kinds.amounts import parsed
from apimachinery.meta.json import Json
from apimachinery.server.node.commands import Pod

HOSTS: Final = "/etc/hosts"
NODE_FILES: Final = {HOSTS: b"127.0.0.1\tlocalhost\n"}
MANAGED: Final = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
ON_HOST_NETWORK: Final = "# Kubernetes-managed hosts file (host network).\n"
CGROUP: Final = "/sys/fs/cgroup/"
PERIOD: Final = 100_000
"""Microseconds over which CPU time is limited."""
LEAST_SHARES, MOST_SHARES, LEAST_QUOTA = 2, 262_144, 1000
LONGEST_HOSTNAME: Final = 63


def given_files(pod: Pod, container: Json) -> dict[str, bytes]:
    """Those of a container by absolute path."""
    found = {HOSTS: _hosts(pod).encode(), **_cgroup(container)}
    volumes = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        on_node = (volumes.get(mount["name"], {}).get("hostPath") or {}).get("path")
        at = posixpath.normpath(mount["mountPath"])
        found = {path: text for path, text in found.items() if not _is_within(path, at)}
        for path, text in NODE_FILES.items():
            if on_node and _is_within(path, posixpath.normpath(on_node)):
                found[posixpath.normpath(at + "/" + posixpath.relpath(path, on_node))] = text
    return found


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _hosts(pod: Pod) -> str:
    spec, status = pod["spec"], pod.get("status") or {}
    aliases = [(each["ip"], *(each.get("hostnames") or ())) for each in spec.get("hostAliases") or ()]
    more = "".join("\t".join(each) + "\n" for each in aliases)
    more = f"\n# Entries added by HostAliases.\n{more}" if aliases else ""
    if spec.get("hostNetwork"):
        return ON_HOST_NETWORK + NODE_FILES[HOSTS].decode() + more
    name = str(spec.get("hostname") or pod["metadata"]["name"])[:LONGEST_HOSTNAME].rstrip("-.")
    names = name
    if spec.get("subdomain"):
        domain = f"{spec['subdomain']}.{pod['metadata'].get('namespace', '')}.svc.cluster.local"
        names = f"{name}.{domain}\t{name}"
    return MANAGED + "".join(f"{each['ip']}\t{names}\n" for each in status.get("podIPs") or ()) + more


def _cgroup(container: Json) -> dict[str, bytes]:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    processor, memory = _amount(limits.get("cpu"), 1000), _amount(limits.get("memory"))
    asked = _amount(requests.get("cpu"), 1000) or (processor if "cpu" not in requests else 0)
    shares = min(max(asked * 1024 // 1000, LEAST_SHARES), MOST_SHARES)
    quota = str(max(processor * PERIOD // 1000, LEAST_QUOTA)) if processor else "max"
    values = {
        "cpu.max": f"{quota} {PERIOD}",
        "cpu.weight": str(1 + (shares - 2) * 9999 // 262_142),
        "memory.max": str(memory) if memory else "max",
    }
    return {CGROUP + name: f"{value}\n".encode() for name, value in values.items()}


def _amount(text: object, times: int = 1) -> int:
    """A quantity in so many parts, rounded up; 0 for none."""
    amount = None if text is None else parsed(text)
    return 0 if amount is None else -int(-amount.value * times // 1)
