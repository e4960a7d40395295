"""Discovery in every form, OpenAPI, the version, health: what a server says of itself."""

from __future__ import annotations

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BUILTIN, CUSTOM, Kind
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


_ABOUT = ["/version", "/healthz", "/livez", "/readyz", "/livez/ping", "/healthz/ping", "/readyz/ping", "/healthz/log", "/livez/etcd", "/openid/v1/jwks/", "/.well-known/none",
          "/readyz/informer-sync", "/livez/poststarthook/generic-apiserver-start-informers"]  # fmt: skip
_DOCUMENTS = ["application/json", "*/*", "text/html", "application/yaml", "application/*", "application/vnd.kubernetes.protobuf", "garbage", "application/json;as=Table;g=meta.k8s.io;v=v1",
              *(f"application/com.github.proto-openapi.spec.{version}{mark}v1.0+protobuf" for version in ("v2", "v3") for mark in ".@"),
              "text/html,application/json;q=0.5", "application/json;q=0.1,application/com.github.proto-openapi.spec.v3.v1.0+protobuf"]  # fmt: skip
_ENDS = ["/", "?x=1", "?verbose", "?exclude=ping", "?exclude=nothing", "?pretty=true", "/x", "?verbose&exclude=etcd"]  # fmt: skip


def _step(dice: Dice) -> Step:
    kind = dice.one([*CUSTOM, *BUILTIN])
    group = "/apis/" + kind.api_version.partition("/")[0]
    path = dice.one(
        [kind.path, kind.path, kind.path.rpartition("/")[0], "/api", "/apis", group, *(["<openapi>"] * 2)]
    )
    if dice.chance(0.4):
        path = dice.one(_ABOUT)
    step: Step = {
        "method": dice.one(["GET"] * 9 + ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]),
        "path": path,
    }
    if path == "<openapi>":
        return _document(dice, step, kind, group)
    if path in ("/api", "/apis") and dice.chance(0.5):
        step["headers"] = {"Accept": dice.one(_AGGREGATED)}
    elif dice.chance(0.5):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS)}
    if path == "/apis":
        step["ignore"] = ["body"]  # what conversations beside this one define is there too
    if dice.chance(0.08):
        step["path"] += dice.one(_ENDS)
    if path == "/version":
        step["ignore"] = ["body"]
    if path == "/openid/v1/jwks/":
        step["ignore"] = ["body.keys"]
    if path in ("/livez", "/readyz", "/healthz") and "verbose" in step["path"]:
        step["ignore"] = ["body.text"]
    return step


def _document(dice: Dice, step: Step, kind: Kind, group: str) -> Step:
    """An OpenAPI document: its schemas too where a CRD states them; in protobuf that it is there."""
    root = "/openapi/v3"
    name = dice.one([kind.path] * 6 + [group, "/api", "/apis", "/version", "/nothing/v1", "", "<v2>"])
    step["path"] = "/openapi/v2" if name == "<v2>" else root + name
    own = kind.crd is not None and name == kind.path
    step["ignore"] = ["headers.location", *([] if own else ["body.components.schemas"])]
    if name in ("", "<v2>"):
        step["ignore"] = ["body", "headers.location"]
    if name and name != "<v2>" and dice.chance(0.1):
        step["query"] = {"hash": dice.one(["", "X"])}
    if dice.chance(0.4):
        step["headers"] = {"Accept": dice.one(_DOCUMENTS)}
        step["ignore"] = ["body", "headers.location"]
    elif dice.chance(0.1):
        step["headers"] = {"If-None-Match": dice.one(["*", '"x"', 'W/"x", *'])}
        step["ignore"] = ["body", "headers.location"]
    return step
