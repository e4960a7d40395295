"""Where keys lie in etcd: as kube-apiserver lays them out, so that either can read what the other wrote.

    /core/pods/NS/NAME                    PREFIX/pods/NS/NAME
    /apps/deployments/NS/NAME             PREFIX/deployments/NS/NAME
    /core/services/NS/NAME                PREFIX/services/specs/NS/NAME
    /custom:example.com/widgets/NS/NAME   PREFIX/example.com/widgets/NS/NAME

    /shop.example.com/orders/NS/NAME      PREFIX/.shop.example.com/orders/NS/NAME

Kubernetes' own resources are kept without their group, a few under an older name, two with it. Those of definitions
have their group, which has a dot in it. What kube-apiserver has no place for has a dot before its group: the resources
of other packages, and definitions that are called as one of the two are. Within a resource the order of keys is the
same on both sides; across resources it is not.
"""

from __future__ import annotations

from apimachinery.storage.layout import WITH_GROUP, WITHOUT_GROUP, custom_prefix, package_prefix, place_of

_OLDER_NAMES = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
_PLACES = {
    package_prefix(group, resource): f"/{_OLDER_NAMES.get(resource, resource)}/"
    for group, resources in WITHOUT_GROUP.items()
    for resource in resources
} | {package_prefix(*names): f"/{'/'.join(names)}/" for names in WITH_GROUP}
_PREFIXES = {place: prefix for prefix, place in _PLACES.items()}
_CUSTOM = {custom_prefix(*names): f"/.{custom_prefix(*names)[1:]}" for names in WITH_GROUP}


class Keys:
    """The keys below a prefix of etcd, which has no last slash."""

    def __init__(self, prefix: str) -> None:
        self._root = prefix
        # The slash, so that /registry does not include /registry2.
        self.start = f"{prefix}/".encode()
        self.end = f"{prefix}0".encode()  # "0" follows "/"
        self.barrier = f"{prefix}/.kubewright/barrier".encode()

    def to_etcd(self, key: str) -> bytes:
        """Where a key, or the prefix of a whole resource or namespace, lies."""
        resource = key[: key.index("/", key.index("/", 1) + 1) + 1]
        place = _PLACES.get(resource) or _CUSTOM.get(resource)
        if place is None:
            group, plural, custom = place_of(resource)
            place = f"/{group}/{plural}/" if custom else f"/.{resource[1:]}"
        return f"{self._root}{place}{key[len(resource) :]}".encode()

    def from_etcd(self, key: bytes) -> str | None:
        """The key that lies somewhere; None for what is no object of a resource: counters, barriers, what others
        keep below the same prefix."""
        try:
            path = key[len(self._root) :].decode()
        except UnicodeDecodeError:
            return None
        # Some resources have one segment, some two (services/specs).
        first = path.find("/", 1)
        second = path.find("/", first + 1)
        if first < 0:
            return None
        for end in (first + 1, second + 1):
            found = _PREFIXES.get(path[:end])
            if found is not None:
                return found + path[end:] if path[end:] else None
        # A group of definitions has a dot in it; what has none and is not known is somebody else's.
        if "." not in path[1:first] or second <= first + 1 or len(path) == second + 1:
            return None
        if path[1] == ".":
            return f"/{path[2:]}"
        return custom_prefix(path[1:first], path[first + 1 : second]) + path[second + 1 :]


def key_range(start: bytes) -> tuple[bytes, bytes]:
    """The range of all keys that begin with ``start``."""
    return start, start[:-1] + bytes([start[-1] + 1])
