"""Discovery in every form, OpenAPI, the version, health: what a server says of itself."""

from __future__ import annotations

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BUILTIN, CUSTOM
from tests.differential.draw.words import Dice

_AGGREGATED = [
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer", "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/cbor;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;g=apidiscovery.k8s.io;v=v2;as=Other",
]  # fmt: skip


def draw(dice: Dice, name: str) -> Conversation:
    """Reads without objects."""
    steps = [_step(dice) for _ in range(dice.randint(5, 10))]
    return Conversation("discovery", name, steps, [CUSTOM[0].crd, CUSTOM[2].crd], namespace=False)  # type: ignore[list-item]


def _step(dice: Dice) -> Step:
    kind = dice.one([*CUSTOM, *BUILTIN])
    path = dice.one(
        [kind.path, kind.path, kind.path.rpartition("/")[0], "/api", "/apis/" + kind.api_version.partition("/")[0], f"/openapi/v3{kind.path}", "/version", "/healthz", "/livez", "/readyz",
         "/livez/ping", "/healthz/ping", "/readyz/ping", "/healthz/log", "/livez/etcd", "/openid/v1/jwks/", "/.well-known/none", "/readyz/informer-sync", "/livez/poststarthook/generic-apiserver-start-informers"]
    )  # fmt: skip
    step: Step = {
        "method": dice.one(["GET"] * 9 + ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]),
        "path": path,
    }
    if path.startswith("/openapi"):
        step["ignore"] = ["body.components.schemas"] if kind.crd is None else []
        if dice.chance(0.3):
            step["headers"] = {
                "Accept": dice.one(
                    [
                        "application/json",
                        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
                        "*/*",
                        "text/html",
                        "application/yaml",
                        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
                    ]
                )
            }
            step["ignore"] = ["body"]
        return step
    if path in ("/api",) and dice.chance(0.3):
        step["headers"] = {"Accept": dice.one([a for a in _AGGREGATED if "json" in a])}
    elif dice.chance(0.5):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS)}
    if dice.chance(0.08):
        step["path"] += dice.one(
            [
                "/",
                "?x=1",
                "?verbose",
                "?exclude=ping",
                "?exclude=nothing",
                "?pretty=true",
                "/x",
                "?verbose&exclude=etcd",
            ]
        )
    if path == "/version":
        step["ignore"] = ["body"]
    if path == "/openid/v1/jwks/":
        step["ignore"] = ["body.keys"]
    if path in ("/livez", "/readyz", "/healthz") and "verbose" in step["path"]:
        step["ignore"] = ["body.text"]
    return step
