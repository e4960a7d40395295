"""kubectl's commands over a few objects: made in every way, shown in every form, changed and deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw.kinds import BUILTIN, BY_KIND, CUSTOM, Kind
from tests.differential.draw.words import Dice

VERSIONS = 16
"""Every command of a conversation has the same of the binaries given, by the remainder."""
_LEFT_OUT = {"Node", "Namespace", "Event", "APIService"}
_KINDS = [kind for kind in BUILTIN if kind.kind not in _LEFT_OUT and "get" not in kind.sub]
_WORKLOADS = ["deployment", "statefulset", "daemonset", "replicaset"]
_TEMPLATES = [BY_KIND[kind] for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")]

_OUTPUTS = [
    "", "", "-o wide", "-o yaml", "-o json", "-o name", "--show-labels", "-L a,app", "--no-headers", "-o wide --show-kind", "-o jsonpath={.metadata.name}",
    "-o jsonpath={.metadata.labels}", "-o jsonpath={.spec}", "-o jsonpath={.nothing.here}", "-o jsonpath={.items[*].metadata.name}", "-o jsonpath={..name}",
    "-o go-template={{.metadata.name}}", "-o 'go-template={{range .items}}{{.metadata.name}} {{end}}'", "-o custom-columns=N:.metadata.name,K:.kind,L:.metadata.labels.a",
    "-o custom-columns=X:.spec.replicas --no-headers", "-o yaml --show-managed-fields", "-o json --show-managed-fields", "-o jsonpath-as-json={.metadata.labels}", "-o nonsense", "-o jsonpath={.a",
    "--ignore-not-found", "--sort-by=.metadata.name", "--sort-by={.spec.replicas}", "--chunk-size=1", "--server-print=false", "-o wide --server-print=false", "--show-kind",
]  # fmt: skip
_SELECTORS = [
    "-l a=1", "-l 'a in (1,2)'", "-l '!a'", "-l a!=1", "-l a", "-l 'a in ()'", "-l 'a=b c'", "--field-selector metadata.name=a", "--field-selector metadata.name!=a",
    "--field-selector spec.x=y", "--field-selector status.phase=Pending", "-l app=web,tier=back", "--selector=",
]  # fmt: skip
_DRY = ["", "", "", "", "--dry-run=client -o yaml", "--dry-run=server -o yaml", "-o yaml", "-o name", "-o json --dry-run=server", "--validate=strict", "--validate=warn", "--validate=ignore", "--save-config"]  # fmt: skip
_CREATES: list[tuple[str, str, list[str]]] = [
    ("deployment", "create deployment {n} --image=nginx", ["--replicas=2", "--port=80", "--image=busybox", "-- sh -c true"]),
    ("configmap", "create configmap {n}", ["--from-literal=a=1", "--from-literal=b=two", "--append-hash", "--from-literal=a/b=1"]),
    ("secret", "create secret generic {n}", ["--from-literal=a=1", "--type=example.com/t", "--append-hash"]),
    ("secret", "create secret docker-registry {n} --docker-username=u --docker-password=p", ["--docker-email=a@b", "--docker-server=r.example.com"]),
    ("service", "create service clusterip {n} --tcp=80", ["--tcp=443:8443", "--clusterip=None"]),
    ("service", "create service nodeport {n} --tcp=80:8080", []),
    ("service", "create service externalname {n} --external-name=x.example.com", []),
    ("service", "create service loadbalancer {n} --tcp=80:http", []),
    ("job", "create job {n} --image=busybox", ["-- date"]),
    ("cronjob", "create cronjob {n} --image=busybox", ["'--schedule=*/5 * * * *'", "--schedule=@daily", "--schedule=no", "--restart=Never", "--restart=OnFailure"]),
    ("quota", "create quota {n}", ["--hard=cpu=1,pods=20", "--scopes=BestEffort", "--hard=x=y"]),
    ("role", "create role {n}", ["--verb=get,list --resource=pods,deployments.apps", "--verb=get --resource=configmaps --resource-name=a", "--verb=get --resource=nothings", "--verb=fly --resource=pods"]),
    ("rolebinding", "create rolebinding {n}", ["--role=r --user=bob", "--clusterrole=view --serviceaccount={ns}:a", "--clusterrole=view --group=g", "--role=r --clusterrole=c"]),
    ("ingress", "create ingress {n}", ["--rule=x.example.com/=svc:80", "'--rule=x.example.com/p*=svc:http,tls=t'", "--class=c --rule=/=a:1", "--default-backend=d:80", "--annotation=a=b --rule=/=a:1"]),
    ("pdb", "create poddisruptionbudget {n} --selector=a=1", ["--min-available=1", "--max-unavailable=50%", "--min-available=1 --max-unavailable=1"]),
    ("serviceaccount", "create serviceaccount {n}", []),
    ("pod", "run {n} --image=nginx", ["--port=80", "--labels=a=1,b=2", "--env=A=1", "--restart=Never", "--command -- sleep 9", "-- sleep 9", "--annotations=x=y", "--expose --port=80", "'--overrides={\"spec\":{\"hostNetwork\":true}}'"]),
]  # fmt: skip
_CLUSTER_CREATES = [
    ("clusterrole", "create clusterrole {n}", ["--verb=get --resource=nodes", "--verb=get --non-resource-url=/metrics", "--aggregation-rule=a=b"]),
    ("clusterrolebinding", "create clusterrolebinding {n} --clusterrole=view", ["--user=bob", "--group=g --serviceaccount=default:a"]),
    ("priorityclass", "create priorityclass {n} --value=5", ["--description=d", "--preemption-policy=Never"]),
    ("namespace", "create namespace {n}", []),
]  # fmt: skip
_FREED = '{"metadata":{"finalizers":null}}'  # what is of no namespace must not outlive its conversation
_ERRORS = [
    "get nothings", "get pods nope", "get pod a b c", "get pods/a services/b", "get all", "delete pod nope", "delete configmap nope --ignore-not-found", "describe pod nope", "describe cm", "create -f -", "apply -f -",
    "get cm -l", "get configmaps.v1.", "get deployments.v1.apps", "get deployments.v2.apps", "get deploy.apps nope", "logs nope", "exec nope -- ls", "rollout status deployment/nope", "scale deployment nope --replicas=1",
    "label cm nope a=b", "annotate cm nope a=b", "patch cm nope -p '{}'", "set image deployment/nope c=d", "expose deployment nope --port=80", "autoscale deployment nope --max=3", "top pods", "wait pod/nope --for=delete --timeout=1s",
    "wait pod/nope --for=condition=Ready --timeout=1s", "certificate approve nope", "cordon nope", "drain nope", "taint node nope a=b:NoSchedule", "attach nope", "port-forward nope 80", "cp nope:/x y", "create token nope", "edit cm nope",
    "replace -f -", "diff -f -", "rollout history deployment/nope", "rollout undo deployment/nope", "rollout restart deployment/nope", "delete cm", "get", "get cm,secret,svc", "events", "events --types=Warning", "get events",
    "get --raw /healthz", "get --raw /api", "get --raw /apis/apps", "get --raw /nothing", "get --raw '/api/v1/namespaces/{ns}/configmaps?limit=1'", "create --raw /nothing -f -", "debug nope --image=x", "auth whoami", "auth can-i create pods",
    "auth can-i create pods --as bob", "auth can-i fly pods --as bob", "auth can-i get nothings", "auth can-i get pods/log --as bob -q", "auth can-i '*' '*'", "auth can-i get /metrics --as bob", "auth can-i --list --as bob",
    "auth can-i get pods --as bob --as-group g", "get cm --as bob", "api-resources --api-group=apps", "api-resources --api-group=batch -o wide", "api-resources --api-group=rbac.authorization.k8s.io --namespaced=false -o name",
    "api-resources --api-group=autoscaling --verbs=list,get", "api-resources --api-group=nothing", "api-resources --api-group=policy --no-headers --sort-by=kind", "cluster-info", "config view --minify -o jsonpath={.contexts[0].name}",
]  # fmt: skip
_EXPLAINED = ["pods", "pods.spec.containers", "deploy.spec.strategy", "deployments --api-version=apps/v1", "svc.spec.ports", "cm", "jobs.spec --recursive", "nothings", "pods.spec.nothing", "hpa.spec", "ingress.spec.rules", "crd.spec.names", "pv.spec.nfs",
              "widgets", "widgets.spec", "widgets.spec --recursive", "widgets.spec.parts", "cronjob.spec.jobTemplate.spec", "hpa --api-version=autoscaling/v1", "netpol.spec.egress.to", "role.rules", "secret.data", "node.status.capacity"]  # fmt: skip


def draw(dice: Dice, name: str) -> Conversation:
    """Some objects, then commands about them; now and then one about what is not there."""
    steps: list[Step] = []
    objects: list[tuple[str, str, Kind | None]] = []
    for number in range(dice.randint(1, 4)):
        _make(dice, f"o{number}", steps, objects)
    for _ in range(dice.randint(5, 10)):
        what = dice.choices(
            [_show, _change, _workload, _manifest, _delete, _describe, _else, _of_cluster],
            [10, 12, 8, 9, 3, 4, 6, 1],
        )[0]
        what(dice, steps, objects)
    version = dice.randrange(VERSIONS)
    for step in steps:
        step["version"] = version
    for resource, object_name, _ in objects:
        if "{own}" in object_name:
            freed = f"patch {resource} {object_name} --type=merge -p '{_FREED}'"
            line = f"delete {resource} {object_name} --ignore-not-found --wait=false"
            steps += [{"kubectl": freed, "quiet": True}, {"kubectl": line, "quiet": True}]
    return Conversation("kubectl", name, steps, [CUSTOM[0].crd, CUSTOM[2].crd])  # type: ignore[list-item]


def _make(dice: Dice, name: str, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    if dice.chance(0.45):
        resource, line, more = dice.one(_CREATES)
        if dice.chance(0.12):
            resource, line, more = dice.one(_CLUSTER_CREATES)
            name += "-{own}"
        options = dice.some(more, 0 if dice.chance(0.2) else 1, 2) if more else []
        # A namespace goes only where a controller runs that ends it.
        dry = "--dry-run=server -o yaml" if resource == "namespace" else dice.one(_DRY)
        rest = sorted(options, key=lambda part: "-- " in f"{part} ")  # what is run comes last
        if any(part.startswith("-- ") or " -- " in part for part in rest):
            rest.insert(-1, dry)
        else:
            rest.append(dry)
        steps.append({"kubectl": " ".join([line.replace("{n}", name), *rest])})
    else:
        kind = dice.one([*_KINDS, *_TEMPLATES, *_TEMPLATES, CUSTOM[0], CUSTOM[0], CUSTOM[2]])
        body = kind.make(dice, name)
        name, resource = body["metadata"]["name"], _resource(kind)
        verb = dice.one(["apply -f -", "apply -f -", "create -f -", "apply --server-side -f -"])
        steps.append({"kubectl": f"{verb} {dice.one(_DRY[:-1])}", "stdin": json.dumps(body)})
        objects.append((resource, name, kind))
        return
    objects.append((resource, name, None))


def _resource(kind: Kind) -> str:
    """A resource as a command names it, its group with it where others may have the same."""
    group = kind.api_version.rpartition("/")[0]
    return f"{kind.plural}.{group}" if group else kind.plural


def _named(dice: Dice, objects: list[tuple[str, str, Kind | None]]) -> str:
    resource, name, _ = dice.one(objects)
    return dice.one([f"{resource} {name}", f"{resource}/{name}"])


def _show(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    resource, name, kind = dice.one(objects)
    cluster = "{own}" in name or (kind is not None and kind.cluster)
    line = f"get {resource}"
    if cluster or dice.chance(0.6):
        line += f" {name}"
        if not cluster and dice.chance(0.2):
            line += f" {dice.one(objects)[1]}"
    elif dice.chance(0.3):
        line += f" {dice.one(_SELECTORS)}"
    steps.append({"kubectl": f"{line} {dice.one(_OUTPUTS)}"})


def _describe(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    steps.append({"kubectl": f"describe {_named(dice, objects)}"})


def _delete(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    options = ["", "--wait=false", "--now", "--force", "--grace-period=0", "--cascade=orphan", "--cascade=foreground --wait=false", "--dry-run=server", "--dry-run=client",
               "-o name", "--ignore-not-found", "--force --grace-period=0"]  # fmt: skip
    steps.append({"kubectl": f"delete {_named(dice, objects)} --timeout=5s {dice.one(options)}"})


def _change(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    named = _named(dice, objects)
    end = dice.one(["", "", "", "-o yaml", "-o name", "--dry-run=server", "--dry-run=client -o yaml", "--field-manager=me", "-o jsonpath={.metadata.labels}"])  # fmt: skip
    merge = {"metadata": {"labels": {"p": "1"}, "annotations": {"n": dice.one([None, "x"])}}}
    patches: list[tuple[str, Any]] = [
        ("merge", merge),
        ("strategic", merge),
        ("merge", {"spec": {"replicas": dice.one([1, 2, "x", -1])}}),
        ("json", [{"op": dice.one(["add", "replace", "test", "fly"]), "path": "/metadata/labels/q", "value": "1"}]),
        ("json", [{"op": "remove", "path": "/metadata/none"}]),
        ("merge", {"spec": {"unknown": 1}}),
        ("merge", []),
    ]  # fmt: skip
    how, body = dice.one(patches)
    line = dice.one(
        [
            f"label {named} {dice.one(['a=1', 'a=2 --overwrite', 'a-', 'b=x c=y', 'a b=1', 'a=b=c', 'x/y/z=1', '--list', 'a=3 --resource-version=1'])}",
            f"annotate {named} {dice.one(['n=1', 'n=2 --overwrite', 'n-', 'n=a b', '--list', 'x/y=z'])}",
            f"patch {named} --type={how} -p '{json.dumps(body)}'",
            f"patch {named} -p '{json.dumps(merge)}'",
            f"patch {named} --subresource=status --type=merge -p '{json.dumps({'status': {'x': 1}})}'",
            f"edit {named}",
        ]
    )
    step: Step = {"kubectl": line if line.startswith("edit") or "--list" in line else f"{line} {end}"}
    if line.startswith("edit"):
        change = dice.one(
            ["s/^  name: /  labels: {ed: it}\\n  name: /", "s/x/x/", "s/^kind: .*/kind: Nothing/"]
        )
        step["env"] = {"KUBE_EDITOR": f"sed -i '{change}'"}
    steps.append(step)


def _workload(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    own = [each for each in objects if each[0].partition(".")[0].rstrip("s") in _WORKLOADS]
    resource, name, _ = dice.one(own or objects)
    named = f"{resource}/{name}"
    end = dice.one(["", "", "", "--dry-run=server -o yaml", "-o name", "--dry-run=client -o json"])
    line = dice.one(
        [
            f"scale {named} --replicas={dice.one('0123')} {dice.one(['', '--current-replicas=1', '--resource-version=1', '-o yaml', '-o name'])}",
            f"set image {named} {dice.one(['*=nginx:9', 'c=nginx:9', 'nginx=nginx:9', 'none=x'])} {end}",
            f"set env {named} {dice.one(['A=1', 'A-', '--list', 'A=1 B=2 -c c', '--from=configmap/nope'])}",
            f"set resources {named} {dice.one(['--limits=cpu=1', '--requests=memory=1Gi --limits=memory=1Mi', '--limits=x=1'])} {end}",
            f"set serviceaccount {named} sa {end}",
            f"set selector {named} a=b {end}",
            f"rollout {dice.one(['history', 'pause', 'resume', 'restart', 'undo', 'status --timeout=1s', 'history --revision=1'])} {named}",
            f"autoscale {named} {dice.one(['--max=3', '--min=2 --max=5 --cpu-percent=50', '--min=5 --max=2', '--max=3 --name=hp'])} {end}",
            f"expose {named} {dice.one(['--port=80', '--port=80 --target-port=web --name=ex', '--type=NodePort --port=1', '', '--port=80 --cluster-ip=None --selector=a=b', '--external-ip=1.2.3.4 --port=5'])} {end}",
            f"wait {named} --timeout=1s {dice.one(['--for=condition=Available', '--for=delete', '--for=jsonpath={.metadata.name}', '--for=jsonpath={.spec.replicas}=1', '--for=create', '--for=nothing'])}",
            f"logs {named}",
            f"exec {named} -- ls",
        ]
    )
    steps.append({"kubectl": line})


_OF_CLUSTER = {
    "CertificateSigningRequest": ["certificate approve {n}", "certificate deny {n}", "certificate approve {n} --force", "get csr {n}", "certificate deny {n} -o name", "describe csr {n}"],
    "Node": ["cordon {n}", "uncordon {n}", "cordon {n} --dry-run=server", "taint node {n} k=v:NoSchedule", "taint node {n} k=w:NoSchedule --overwrite", "taint node {n} k-", "taint node {n} k:NoExecute", "taint node {n} bad",
             "taint node {n} none-", "drain {n}", "drain {n} --ignore-daemonsets --force", "get node {n}", "get node {n} -o wide", "get node/{n} -o jsonpath={.spec.taints}", "label node {n} role=x", "describe node {n}", "top node {n}"],
}  # fmt: skip


def _of_cluster(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    """Requests for certificates, and nodes, which have commands of their own."""
    kind = BY_KIND[dice.one(sorted(_OF_CLUSTER))]
    body = kind.make(dice, f"z{len(objects)}")
    name = body["metadata"]["name"]
    steps.append({"kubectl": "create -f -", "stdin": json.dumps(body)})
    objects.append((kind.plural, name, None))
    lines = dice.some(dice.sample(_OF_CLUSTER[kind.kind], 5), 2, 5)
    steps.extend({"kubectl": line.replace("{n}", name)} for line in lines)


def _manifest(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    """An object that is there, as a changed manifest: applied, replaced, compared, deleted."""
    own = [each for each in objects if each[2] is not None]
    if not own:
        _make(dice, f"m{len(objects)}", steps, objects)
        return
    _, name, kind = dice.one(own)
    assert kind is not None
    body = kind.make(dice, name.removesuffix("-{own}"))
    if dice.chance(0.25):
        change: Callable[[dict[str, Any]], object] = dice.one(
            [
                lambda made: made.update({"unknown": 1}),
                lambda made: made.setdefault("spec", {}).update({"nothing": {"a": 1}}) if isinstance(made.get("spec", {}), dict) else None,
                lambda made: made["metadata"].update({"labels": {"bad label": "x"}}),
                lambda made: made.update({"kind": "Nothing"}),
                lambda made: made.pop("apiVersion"),
                lambda made: made["metadata"].pop("name"),
            ]
        )  # fmt: skip
        change(body)
    verb = dice.one(
        ["apply -f -", "apply -f -", "apply --server-side -f -", "apply --server-side --force-conflicts -f -", "apply --server-side --field-manager=other -f -", "replace -f -", "replace --force -f -", "diff -f -",
         "diff --server-side -f -", "create -f -", "delete --wait=false -f -", "get -f -", "apply view-last-applied -f -", "apply set-last-applied -f -", "label -f - z=1", "patch -f - -p '{}'", "describe -f -",
         "apply --prune -l none=here -f -", "create --edit=false -f -"]
    )  # fmt: skip
    end = dice.one(["", "", "", "-o yaml", "--dry-run=server", "--validate=strict", "--validate=ignore"])
    changes = verb.split()[0] in ("apply", "replace", "create") and "last-applied" not in verb
    steps.append({"kubectl": f"{verb} {end}" if changes else verb, "stdin": json.dumps(body)})


def _else(dice: Dice, steps: list[Step], objects: list[tuple[str, str, Kind | None]]) -> None:
    if dice.chance(0.4):
        steps.append({"kubectl": f"explain {dice.one(_EXPLAINED)}"})
        return
    line = dice.one(_ERRORS)
    step: Step = {"kubectl": line}
    if "-f -" in line:
        step["stdin"] = dice.one(["", "nothing", "{}", '{"kind":"ConfigMap"}', "a: [", '{"apiVersion":"v1","kind":"Nothing","metadata":{"name":"x"}}',
                                  '{"apiVersion":"v1","kind":"List","items":[]}', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}}'])  # fmt: skip
    steps.append(step)
