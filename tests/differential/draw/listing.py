"""Options of lists and watches in every combination: pages, versions, selectors by kind, bookmarks, forms."""

from __future__ import annotations

from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BUILTIN, CUSTOM, Kind
from tests.differential.draw.words import Dice, merged

_FIELDS: dict[str, list[str]] = {
    "Pod": ["spec.nodeName=", "spec.nodeName=n", "spec.restartPolicy=Always", "spec.schedulerName!=x", "spec.serviceAccountName=", "status.phase=Pending", "status.phase!=Running",
            "status.podIP=", "status.podIPs=", "status.nominatedNodeName=", "spec.hostNetwork=false", "spec.hostNetwork=true", "spec.priority=0", "spec.containers=x"],
    "Event": ["involvedObject.kind=Pod", "involvedObject.name=p", "involvedObject.namespace={ns}", "involvedObject.uid=", "involvedObject.apiVersion=", "involvedObject.resourceVersion=", "involvedObject.fieldPath=",
              "reason=Why", "reason!=Why", "reportingComponent=", "reportingController=example.com/c", "source=me", "source=", "type=Normal", "type!=Normal", "regarding.name=p", "regarding.kind=Pod", "note=text", "action=Do"],
    "Secret": ["type=Opaque", "type!=Opaque", "type=example.com/own", "data.a=MQ=="],
    "Namespace": ["status.phase=Active", "status.phase!=Active", "name=a", "spec.x="],
    "ReplicaSet": ["status.replicas=0", "status.replicas!=0", "spec.replicas=1"],
    "ReplicationController": ["status.replicas=0", "status.replicas=1", "spec.replicas=1"],
    "Job": ["status.successful=0", "status.successful=1", "status.succeeded=0"],
    "Node": ["spec.unschedulable=true", "spec.unschedulable=false", "spec.unschedulable=", "spec.podCIDR="],
    "CertificateSigningRequest": ["spec.signerName=example.com/s", "spec.signerName!=x", "spec.username=admin"],
    "Service": ["spec.clusterIP=None", "spec.type=ClusterIP", "spec.type!=ClusterIP", "spec.sessionAffinity=None"],
    "ResourceClaim": ["spec.nodeName=", "status.x=1"],
    "Widget": ["spec.color=red", "spec.color!=red", "spec.size=3", "spec.on=true", "spec.size=x", "spec.color=red,spec.size=3", "spec.ratio=1.5"],
}  # fmt: skip
"""Fields of kinds to select by; some of each are not served."""
_BOOLS = ["true", "false", "1", "0", "", "x", "True", "TRUE"]
_TIMEOUTS = ["1", "1", "1", "1", "1", "x", "1s", "1.5"]
_LIMITS = ["1", "1", "2", "3", "0", "500", "-1", "x"]
_TABLES = [each for each in words.ACCEPTS if "as=Table" in each]
_PARTIAL = [each for each in words.ACCEPTS if "PartialObject" in each]


def draw(dice: Dice, name: str) -> Conversation:
    """Some objects, and ways to read them."""
    kind = dice.one([*BUILTIN, *CUSTOM, CUSTOM[0], *(each for each in BUILTIN if each.kind in _FIELDS)])
    path = kind.collection()
    steps: list[Step] = [
        {
            "method": "GET",
            "path": path,
            "query": _own(kind, {}),
            "save": {"start": "metadata.resourceVersion"},
        }
    ]
    versions = ["start"]
    for number, each in enumerate("abcde"[: dice.randint(1, 5)]):
        body = kind.make(dice, each)
        body["metadata"].pop("finalizers", None)
        body["metadata"]["labels"] = {"own": "{own}", **(body["metadata"].get("labels") or {})}
        steps.append(
            {"method": "POST", "path": path, "body": body, "save": {f"v{number}": "metadata.resourceVersion"}}
        )
        versions.append(f"v{number}")
    if dice.chance(0.5):
        change = {"metadata": {"annotations": {"later": "1"}, "labels": {"a": "1"}}}
        patch: Step = {
            "method": "PATCH",
            "path": kind.item("a"),
            "body": change,
            "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
        }
        steps.append({**patch, "save": {"changed": "metadata.resourceVersion"}})
        versions.append("changed")
    if dice.chance(0.3):
        steps.append({"method": "DELETE", "path": kind.item("b"), "query": {"gracePeriodSeconds": "0"}})
    for _ in range(dice.randint(8, 14)):
        steps += dice.choices([_list, _pages, _watch, _get, _clear], [30, 14, 22, 8, 2])[0](
            dice, kind, versions
        )
    return Conversation("listing", name, steps, [kind.crd] if kind.crd else [])


def _own(kind: Kind, query: dict[str, Any]) -> dict[str, Any]:
    """Keeps what is of the whole cluster to the conversation's own."""
    if not kind.cluster:
        return query
    wanted = query.get("labelSelector")
    return {**query, "labelSelector": f"own={{own}},{wanted}" if wanted else "own={own}"}


def _version(dice: Dice, versions: list[str]) -> str:
    # How far back a server remembers is its own affair, so no version of long ago is drawn.
    return (
        "{" + dice.one(versions) + "}"
        if dice.chance(0.65)
        else dice.one(["0", "0", "", "x", "999999999999", "-1", "00", "1e3"])
    )


def _selectors(dice: Dice, kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if dice.chance(0.25):
        found["labelSelector"] = dice.one(
            words.LABEL_SELECTORS if dice.chance(0.9) or kind.cluster else words.BAD_LABEL_SELECTORS
        )
    own = _FIELDS.get(kind.kind, [])
    if dice.chance(0.45 if own else 0.2):
        fields = (
            dice.one(own)
            if own and dice.chance(0.8)
            else dice.one(words.FIELD_SELECTORS if dice.chance(0.7) else words.BAD_FIELD_SELECTORS)
        )
        if own and dice.chance(0.2):
            fields = f"{fields},{dice.one([*own, 'metadata.name=a', 'metadata.namespace={ns}'])}"
        found["fieldSelector"] = fields
    return found


def _form(dice: Dice, step: Step) -> Step:
    roll = dice.random()
    if roll < 0.22:
        step["headers"] = {"Accept": dice.one(_TABLES)}
        if dice.chance(0.6):
            step["query"]["includeObject"] = dice.one(["None", "Object", "Metadata", "x", "", "none"])
    elif roll < 0.38:
        step["headers"] = {"Accept": dice.one(_PARTIAL)}
    elif roll < 0.46:
        step["headers"] = {"Accept": dice.one(words.ACCEPTS)}
    return step


def _list(dice: Dice, kind: Kind, versions: list[str]) -> list[Step]:
    query = _own(kind, _selectors(dice, kind))
    if dice.chance(0.6):
        query["resourceVersion"] = _version(dice, versions)
    if dice.chance(0.35):
        query["resourceVersionMatch"] = dice.one(["Exact", "NotOlderThan", "Exact", "NotOlderThan", "", "x"])
    if dice.chance(0.35):
        query["limit"] = dice.one(_LIMITS)
    if dice.chance(0.1):
        query["sendInitialEvents"] = dice.one(_BOOLS)
    if dice.chance(0.06):
        query["continue"] = dice.one(
            ["x", "", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "eyJ2IjoieCIsInJ2IjoxfQ"]
        )
    if dice.chance(0.05):
        query["allowWatchBookmarks"] = dice.one(_BOOLS)
    if dice.chance(0.04):
        query["timeoutSeconds"] = dice.one(_TIMEOUTS)
    path = kind.collection()
    if not kind.cluster and dice.chance(0.1):
        path, query["fieldSelector"] = (
            f"{kind.path}/{kind.plural}",
            ",".join(filter(None, ["metadata.namespace={ns}", query.get("fieldSelector")])),
        )
    return [_form(dice, {"method": "GET", "path": path, "query": query})]


def _pages(dice: Dice, kind: Kind, versions: list[str]) -> list[Step]:
    """A first page, and what is made of its token."""
    query = _own(kind, _selectors(dice, kind) if dice.chance(0.3) else {})
    first = {**query, "limit": dice.one(["1", "2", "3"])}
    if dice.chance(0.3):
        first |= {
            "resourceVersion": _version(dice, versions),
            "resourceVersionMatch": dice.one(["Exact", "NotOlderThan"]),
        }
    steps: list[Step] = [
        _form(
            dice,
            {
                "method": "GET",
                "path": kind.collection(),
                "query": first,
                "save": {"next": "metadata.continue"},
            },
        )
    ]
    for _ in range(dice.randint(1, 2)):
        more = {**query, "limit": dice.one(_LIMITS), "continue": "{next}"}
        if dice.chance(0.15):
            more["resourceVersion"] = dice.one(["0", "{start}", ""])
        if dice.chance(0.1):
            more["resourceVersionMatch"] = dice.one(["Exact", "NotOlderThan"])
        if dice.chance(0.06):
            # What breaks the token stands before it: its length is each server's own.
            more["continue"] = "!{next}"
        if dice.chance(0.06):
            more["watch"], more["timeoutSeconds"] = "true", "1"
        path = kind.collection() if dice.chance(0.95) else "/api/v1/namespaces/{ns}/configmaps"
        steps.append(
            _form(dice, {"method": "GET", "path": path, "query": more, "save": {"next": "metadata.continue"}})
        )
    return steps


def _watch(dice: Dice, kind: Kind, versions: list[str]) -> list[Step]:
    query = _own(kind, _selectors(dice, kind)) | {
        "watch": dice.one(["true", "1", "true", "x"]),
        "timeoutSeconds": dice.one(_TIMEOUTS),
    }
    if dice.chance(0.7):
        query["resourceVersion"] = _version(dice, versions)
    if dice.chance(0.45):
        query["sendInitialEvents"] = dice.one(["true", "true", "true", *_BOOLS])
        if dice.chance(0.85):
            query["resourceVersionMatch"] = "NotOlderThan"
        if dice.chance(0.8):
            query["allowWatchBookmarks"] = "true"
    elif dice.chance(0.2):
        query["resourceVersionMatch"] = dice.one(["NotOlderThan", "Exact", "", "x"])
    if dice.chance(0.35):
        query.setdefault("allowWatchBookmarks", dice.one(_BOOLS))
    if dice.chance(0.06):
        query["limit"] = dice.one(_LIMITS)
    path = kind.collection()
    if dice.chance(0.1):
        path = path.replace(kind.path, f"{kind.path}/watch", 1)
    elif dice.chance(0.08):
        path = kind.item(dice.one(["a", "none"])).replace(kind.path, f"{kind.path}/watch", 1)
        query.pop("labelSelector", None)
    return [_form(dice, {"method": "GET", "path": path, "query": query})]


def _get(dice: Dice, kind: Kind, versions: list[str]) -> list[Step]:
    query: dict[str, Any] = {"resourceVersion": _version(dice, versions)} if dice.chance(0.6) else {}
    if dice.chance(0.1):
        query["resourceVersionMatch"] = dice.one(["Exact", "NotOlderThan"])
    if dice.chance(0.1):
        query = merged(query, {"watch": "true", "timeoutSeconds": "1"})
    return [
        _form(dice, {"method": "GET", "path": kind.item(dice.one(["a", "a", "b", "none"])), "query": query})
    ]


def _clear(dice: Dice, kind: Kind, versions: list[str]) -> list[Step]:
    query = _own(kind, _selectors(dice, kind))
    if dice.chance(0.4):
        query["resourceVersion"] = _version(dice, versions)
    if dice.chance(0.3):
        query["resourceVersionMatch"] = dice.one(["Exact", "NotOlderThan"])
    if dice.chance(0.3):
        query["limit"] = dice.one(_LIMITS)
    if dice.chance(0.2):
        query["dryRun"] = "All"
    return [_form(dice, {"method": "DELETE", "path": kind.collection(), "query": query})]
