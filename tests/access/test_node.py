"""The Node authorizer: what a kubelet may do. Verdicts and texts are those of kube-apiserver 1.36."""

from __future__ import annotations

import asyncio
import json

import pytest

from apimachinery.access.authorization import Attributes
from apimachinery.access.node import NodeAuthorizer
from apimachinery.http.messages import User
from apimachinery.storage.interface import Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
POD = {
    "metadata": {"name": "p1"},
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "claimed"}],
        "containers": [
            {
                "env": [
                    {"valueFrom": {"secretKeyRef": {"name": "env"}}},
                    {"valueFrom": {"configMapKeyRef": {"name": "env"}}},
                    {"name": "PLAIN", "value": "x"},
                ],
                "envFrom": [{"secretRef": {"name": "from"}}, {"configMapRef": {"name": "from"}}],
            }
        ],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "init"}}]}],
        "volumes": [
            {"name": "a", "secret": {"secretName": "volume"}},
            {"name": "b", "configMap": {"name": "volume"}},
            {
                "name": "c",
                "projected": {
                    "sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "proj"}}]
                },
            },
            {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "e", "csi": {"nodePublishSecretRef": {"name": "csi"}}},
            {"name": "f", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "g", "emptyDir": {}},
        ],
    },
    "status": {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}]},
}
MIRROR = {
    "metadata": {"name": "mirror", "annotations": {"kubernetes.io/config.mirror": "x"}},
    "spec": {"nodeName": "n1", "imagePullSecrets": [{"name": "of-mirror"}]},
}
OBJECTS = {
    "/core/pods/ns/p1": POD,
    "/core/pods/ns/mirror": MIRROR,
    "/core/pods/ns/p2": {
        "metadata": {"name": "p2"},
        "spec": {"nodeName": "n2", "imagePullSecrets": [{"name": "other"}]},
    },
    "/core/pods/ns/waiting": {
        "metadata": {"name": "waiting"},
        "spec": {"imagePullSecrets": [{"name": "early"}]},
    },
    "/core/persistentvolumeclaims/ns/claim": {"spec": {"volumeName": "volume"}},
    "/core/persistentvolumes/volume": {
        "spec": {
            "claimRef": {"namespace": "ns", "name": "claim"},
            "csi": {"nodeStageSecretRef": {"namespace": "store", "name": "stage"}},
        }
    },
    "/core/persistentvolumes/loose": {"spec": {"csi": {"driver": "d"}}},
    "/storage.k8s.io/volumeattachments/mine": {"spec": {"nodeName": "n1"}},
    "/storage.k8s.io/volumeattachments/theirs": {"spec": {"nodeName": "n2"}},
    "/resource.k8s.io/resourceslices/mine": {"spec": {"nodeName": "n1"}},
}


async def authorizer():
    storage = MemoryStorage()
    cache = await WatchCache.open(storage)
    found = NodeAuthorizer(cache)
    for key, obj in OBJECTS.items():
        await storage.create(key, Value(json.dumps(obj).encode()[:-1] + b', "revision": ', b"}"))
    await asyncio.sleep(0)
    return found, storage


NONE = "no relationship found between node 'n1' and this object"
SINGLE = "can only get individual resources of this type"


def asked(text, selector=""):
    """``VERB GROUP/RESOURCE[/SUB] NAMESPACE NAME``; ``-`` for none."""
    verb, what, namespace, name = ("" if part == "-" else part for part in text.split(" "))
    group, _, resource = what.rpartition(":")
    resource, _, subresource = resource.partition("/")
    fields = [("spec.nodeName", "In", (selector,))] if selector else None
    return Attributes(NODE, verb, namespace, group, "v1", resource, subresource, name, field_selector=fields)


CASES = [
    *(
        (f"get secrets ns {name}", "", True)
        for name in ("pull", "env", "from", "init", "volume", "projected", "csi")
    ),
    *((f"watch configmaps ns {name}", "", True) for name in ("env", "from", "volume", "proj")),
    ("get secrets ns other", "", NONE),
    ("get secrets ns early", "", NONE),
    ("get secrets ns of-mirror", "", NONE),
    ("get secrets elsewhere pull", "", NONE),
    ("get secrets store stage", "", True),
    ("list secrets ns -", "", "No Object name found"),
    ("list secrets - -", "", "can only read namespaced object of this type"),
    ("create secrets ns -", "", "can only read resources of this type"),
    ("delete secrets ns pull", "", "can only read resources of this type"),
    ("get persistentvolumeclaims ns claim", "", True),
    ("get persistentvolumeclaims ns p1-f", "", True),
    ("list persistentvolumeclaims ns -", "", SINGLE),
    ("patch persistentvolumeclaims/status ns claim", "", True),
    ("get persistentvolumeclaims/status ns claim", "", "can only get/update/patch this type"),
    ("get persistentvolumes - volume", "", True),
    ("get persistentvolumes - loose", "", NONE),
    ("get resource.k8s.io:resourceclaims ns claimed", "", True),
    ("get resource.k8s.io:resourceclaims ns made", "", True),
    ("get storage.k8s.io:volumeattachments - mine", "", True),
    ("get storage.k8s.io:volumeattachments - theirs", "", NONE),
    ("create serviceaccounts/token ns robot", "", True),
    ("create serviceaccounts/token ns default", "", NONE),
    ("get serviceaccounts ns robot", "", True),
    ("list serviceaccounts ns -", "", "can only create tokens for individual service accounts"),
    ("update coordination.k8s.io:leases kube-node-lease n1", "", True),
    (
        "update coordination.k8s.io:leases kube-node-lease n2",
        "",
        "can only access node lease with the same name as the requesting node",
    ),
    (
        "update coordination.k8s.io:leases ns n1",
        "",
        'can only access leases in the "kube-node-lease" system namespace',
    ),
    (
        "get storage.k8s.io:csinodes - n2",
        "",
        "can only access CSINode with the same name as the requesting node",
    ),
    ("get resource.k8s.io:resourceslices - mine", "", True),
    ("list resource.k8s.io:resourceslices - -", "n1", True),
    (
        "list resource.k8s.io:resourceslices - -",
        "n2",
        "can only list/watch/deletecollection resourceslices with nodeName field selector",
    ),
    ("get nodes - n1", "", True),
    ("get nodes - n2", "", "node 'n1' cannot read 'n2', only its own Node object"),
    ("list nodes - -", "", "node 'n1' cannot read all nodes, only its own Node object"),
    ("patch nodes/status - n1", "", True),
    ("delete nodes - n1", "", ""),
    ("get pods ns p1", "", True),
    ("get pods ns p2", "", NONE),
    ("list pods - -", "n1", True),
    ("list pods - -", "n2", "can only list/watch pods with spec.nodeName field selector"),
    ("create pods/eviction ns p1", "", True),
    ("get pods/log ns p1", "", ""),
    ("list services - -", "", True),
    ("create events ns -", "", True),
    ("create apps:deployments ns -", "", ""),
]


@pytest.mark.parametrize(("text", "selector", "wanted"), CASES)
def test_what_a_node_may(text, selector, wanted):
    async def decide():
        return (await authorizer())[0].decide(asked(text, selector))

    verdict = asyncio.run(decide())
    assert (verdict.allowed or verdict.reason) == wanted
    assert not verdict.denied


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (User("system:node:n1", groups=("system:authenticated",)), ""),
        (User("alice", groups=("system:nodes",)), ""),
        (User("system:node:", groups=("system:nodes",)), 'unknown node for user "system:node:"'),
    ],
)
def test_who_is_no_node(user, reason):
    async def decide():
        attributes = asked("get secrets ns pull")
        attributes.user = user
        return (await authorizer())[0].decide(attributes)

    verdict = asyncio.run(decide())
    assert (verdict.allowed, verdict.reason) == (False, reason)


def test_it_follows_pods():
    async def run():
        found, storage = await authorizer()
        question = asked("get secrets ns pull")
        assert found.decide(question).allowed
        record = await storage.get("/core/pods/ns/p1")
        await storage.delete("/core/pods/ns/p1", record.revision, Value(b'{"revision": ', b"}"))
        await asyncio.sleep(0)
        assert not found.decide(question).allowed

    asyncio.run(run())
