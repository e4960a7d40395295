"""Volumes that a release can no longer mount, though its API still takes them: plugins that left Kubernetes.

Most went out of tree: a CSI driver serves the same volumes, by itself for those that were migrated, and the objects
stay as they are. The others are gone. Source: the Kubernetes documentation of volume types and of CSI migration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from apimachinery.meta.json import Json
from kubewright.tools.migrate.references import Way, pod_specs


class VolumePlugin(NamedTuple):
    """What became of a plugin: since when it is gone, whether a driver takes its volumes over, and what to do."""

    gone: str
    is_migrated: bool
    hint: str


def _driver(gone: str, name: str) -> VolumePlugin:
    return VolumePlugin(
        gone, True, f"the CSI driver {name} must be installed: it serves these volumes as they are written"
    )


PLUGINS: Final[Mapping[str, VolumePlugin]] = {
    "awsElasticBlockStore": _driver("1.27", "ebs.csi.aws.com"),
    "azureDisk": _driver("1.27", "disk.csi.azure.com"),
    "azureFile": _driver("1.30", "file.csi.azure.com"),
    "cinder": _driver("1.26", "cinder.csi.openstack.org"),
    "gcePersistentDisk": _driver("1.28", "pd.csi.storage.gke.io"),
    "vsphereVolume": _driver("1.30", "csi.vsphere.vmware.com"),
    "portworxVolume": _driver("1.36", "pxd.portworx.com"),
    "cephfs": VolumePlugin("1.31", False, "use a csi volume of cephfs.csi.ceph.com"),
    "flocker": VolumePlugin("1.25", False, "there is no successor: move the data to another kind of volume"),
    "gitRepo": VolumePlugin("1.33", False, "let an init container clone the repository into an emptyDir"),
    "glusterfs": VolumePlugin("1.26", False, "there is no in-tree successor: use a csi or nfs volume"),
    "photonPersistentDisk": VolumePlugin(
        "1.11", False, "its cloud is gone: move the data to another kind of volume"
    ),
    "quobyte": VolumePlugin("1.25", False, "use a csi volume of csi.quobyte.com"),
    "rbd": VolumePlugin("1.31", False, "use a csi volume of rbd.csi.ceph.com"),
    "scaleIO": VolumePlugin("1.22", False, "use a csi volume of csi-vxflexos.dellemc.com"),
    "storageos": VolumePlugin(
        "1.25", False, "there is no successor: move the data to another kind of volume"
    ),
}
_PROVISIONERS: Final = {
    "aws-ebs": "awsElasticBlockStore",
    "azure-disk": "azureDisk",
    "azure-file": "azureFile",
    "cinder": "cinder",
    "gce-pd": "gcePersistentDisk",
    "vsphere-volume": "vsphereVolume",
    "portworx-volume": "portworxVolume",
    "glusterfs": "glusterfs",
    "quobyte": "quobyte",
    "rbd": "rbd",
    "scaleio": "scaleIO",
    "storageos": "storageos",
}
"""Provisioners of storage classes, without ``kubernetes.io/``, and the volumes that they make."""


def volumes(obj: Json) -> Iterator[tuple[Way, str]]:
    """The volumes of known plugins in pods, persistent volumes and storage classes: where, and which."""
    for way, spec in pod_specs(obj):
        listed = spec.get("volumes")
        for index, volume in enumerate(listed if isinstance(listed, list) else ()):
            for name in sorted(PLUGINS.keys() & volume.keys()) if isinstance(volume, dict) else ():
                yield (*way, "volumes", index, name), name
    source = obj.get("spec")
    if obj.get("kind") == "PersistentVolume" and isinstance(source, dict):
        for name in sorted(PLUGINS.keys() & source.keys()):
            yield ("spec", name), name
    provisioner = obj.get("provisioner")
    if obj.get("kind") == "StorageClass" and isinstance(provisioner, str):
        group, _, short = provisioner.partition("/")
        if group == "kubernetes.io" and short in _PROVISIONERS:
            yield ("provisioner",), _PROVISIONERS[short]
