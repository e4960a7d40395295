"""What the mirror pod of a node may refer to, which is no object at all: its kubelet runs it, and would be shown the
object. Order and words are those of kube-apiserver 1.36."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from apimachinery.access.authorization import Chain
from apimachinery.http.messages import User
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.builtin.node_restriction import NodeRestriction
from apimachinery.server.admission.interface import Operation
from apimachinery.storage.interface import Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

KUBELET = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
NODE = {"metadata": {"name": "n1", "uid": "u"}}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": True}


def refusal(spec: dict) -> str:
    """What the plugin says of a mirror pod, after "reference "."""

    async def ask() -> None:
        storage = MemoryStorage()
        cache = await WatchCache.open(storage)
        await storage.create("/core/nodes/n1", Value(json.dumps(NODE).encode()[:-1] + b', "r": ', b"}"))
        metadata = {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [OWNER]}
        served = SimpleNamespace(group="", plural="pods")
        target = SimpleNamespace(served=served, subresource="", namespace="ns", name="m", user=KUBELET)
        pod = {"metadata": {"name": "m", **metadata}, "spec": {"nodeName": "n1", **spec}}
        NodeRestriction(cache, Chain([])).admit(Operation("CREATE", target, pod, None, "m"))

    try:
        asyncio.run(ask())
    except ApiError as error:
        return error.message.partition("reference ")[2]
    return ""


def volumes(*sources: dict) -> dict:
    return {"volumes": [{"name": f"v{number}", **source} for number, source in enumerate(sources)]}


def projected(*sources: dict) -> dict:
    return {"projected": {"sources": list(sources)}}


CLAIM = {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}]}
TOKEN, BUNDLE, CERTIFICATE = (
    {"serviceAccountToken": {"path": "x"}},
    {"clusterTrustBundle": {"name": "x"}},
    {"podCertificate": {"signerName": "example.com/x"}},
)
EPHEMERAL, PVC = {"ephemeral": {"volumeClaimTemplate": {}}}, {"persistentVolumeClaim": {"claimName": "x"}}
CSI = {"csi": {"driver": "d", "nodePublishSecretRef": {"name": "x"}}}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, ""),
        (volumes({"emptyDir": {}}, {"hostPath": {"path": "/"}}, projected({"downwardAPI": {}})), ""),
        (volumes(EPHEMERAL), "persistentvolumeclaims (via ephemeral volumes)"),
        (CLAIM, "resourceclaims"),
        ({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "x"}]}, "resourceclaims"),
        (volumes(projected(CERTIFICATE)), "podcertificates"),
        (volumes(projected(BUNDLE)), "clustertrustbundles"),
        (volumes(projected(TOKEN)), "serviceaccounts (via projected volumes)"),
        (volumes({"csi": {"driver": "d"}}), "csidrivers (via CSI volumes)"),
        (volumes({"glusterfs": {"endpoints": "x"}}), "endpoints (via glusterFS volumes)"),
        (volumes(CSI), "secrets"),
        (volumes({"configMap": {"name": "x"}}), "configmaps"),
        # Before all volumes, and volumes in the order of the pod.
        ({"serviceAccountName": "x", "imagePullSecrets": [{"name": "x"}]}, "serviceaccounts"),
        ({**CLAIM, **volumes(EPHEMERAL)}, "resourceclaims"),
        ({**CLAIM, **volumes(EPHEMERAL, {"configMap": {"name": "x"}})}, "configmaps"),
        (volumes(PVC, projected(BUNDLE)), "persistentvolumeclaims"),
        (volumes(projected(BUNDLE), PVC), "clustertrustbundles"),
        (volumes(projected(CERTIFICATE, BUNDLE, TOKEN)), "podcertificates"),
    ],
)
def test_a_mirror_pod_refers_to_nothing(spec, says):
    assert refusal(spec) == says
