"""StatefulSets: pods with names and claims of their own, made, updated and ended in their order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json

from . import revisions
from .interface import ClusterView, Workload, write_status
from .owners import claim, is_controlled_by, is_going, labels_of, owner_or_selecting, reference_to, selector
from .pods import has_ended, is_available, is_ready, next_available, phase, pod_of
from .rollouts import replicas, share

SETS, CLAIMS = "statefulsets.apps", "persistentvolumeclaims"
NAME, INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


async def reconcile(cluster: ClusterView, owner: Json) -> float | None:
    """Takes the next step, which the change of a pod follows. Raises ApiError."""
    selects = selector(owner)
    if selects is None or is_going(owner):
        return None
    present = cluster.objects("pods", owner["metadata"]["namespace"])
    pods = await claim(cluster, "pods", owner, [pod for pod in present if ordinal(owner, pod) >= 0], selects)
    history = await revisions.revisions_of(cluster, owner)
    update = await revisions.newest(cluster, owner, history, "controller.kubernetes.io/hash")
    name = (owner.get("status") or {}).get("currentRevision")
    current = next((each for each in history if each["metadata"]["name"] == name), update)
    step = _Step(cluster, owner, pods, current, update)
    failure: ApiError | None = None
    try:
        await step.take()
    except ApiError as error:
        failure = error
    status = step.status()
    await write_status(cluster, SETS, owner, status)
    used = {status["currentRevision"], status["updateRevision"], *map(_revision, pods)}
    await revisions.forget_old(cluster, history, used, owner["spec"].get("revisionHistoryLimit", 10))
    if failure is not None:
        raise failure
    return next_available(pods, step.least, cluster.now()) if step.least else None


def ordinal(owner: Json, pod: Json) -> int:
    """The number of a pod of a set; -1 for a pod of another name."""
    parent, _, number = pod["metadata"]["name"].rpartition("-")
    own = parent == owner["metadata"]["name"] and number.isdigit() and str(int(number)) == number
    return int(number) if own else -1


def _revision(pod: Json) -> str:
    return str(labels_of(pod).get(revisions.HASH, ""))


def _runs(pod: Json) -> bool:
    return phase(pod) == "Running" and is_ready(pod)


def _is_healthy(pod: Json | None) -> bool:
    return pod is not None and _runs(pod) and not is_going(pod)


class _Step:
    """One look at a set. ``replicas`` are its pods by number, None for one that is missing; ``condemned`` those that it
    is to lose, the last first."""

    def __init__(
        self, cluster: ClusterView, owner: Json, pods: Sequence[Json], current: Json, update: Json
    ) -> None:
        self.cluster, self.owner = cluster, owner
        self.current, self.update = current, update
        spec = owner["spec"]
        self.first = (spec.get("ordinals") or {}).get("start", 0)
        self.least = spec.get("minReadySeconds") or 0
        self.strategy = spec.get("updateStrategy") or {}
        self.ordered = spec.get("podManagementPolicy") != "Parallel"
        by_number = {ordinal(owner, pod): pod for pod in pods}
        self.numbers = range(self.first, self.first + replicas(owner))
        self.replicas = {number: by_number.get(number) for number in self.numbers}
        self.condemned = [
            by_number[number] for number in sorted(by_number, reverse=True) if number not in self.numbers
        ]

    async def take(self) -> None:
        """Makes what is missing, ends what is too much, replaces what is old."""
        for number in self.numbers:
            if await self._keep(number) and self.ordered:
                return
        unhealthy = [
            pod for pod in [*self.replicas.values(), *reversed(self.condemned)] if not _is_healthy(pod)
        ]
        for pod in self.condemned:
            if await self._end(pod, unhealthy[0] if unhealthy else None) and self.ordered:
                return
        if self.strategy.get("type") != "OnDelete":
            await self._update()

    async def _keep(self, number: int) -> bool:
        """Sees to one pod; whether the next has to wait for it."""
        pod = self.replicas[number]
        if pod is None:
            await self._claim_volumes(number)
            self.replicas[number] = await self.cluster.create("pods", self._made(number))
            return True
        if has_ended(pod):
            if not is_going(pod):
                await self.cluster.delete("pods", pod)
            return True
        if phase(pod) == "Pending":
            await self._claim_volumes(number)
        return is_going(pod) or not _runs(pod) or not is_available(pod, self.least, self.cluster.now())

    async def _end(self, pod: Json, first_unhealthy: Json | None) -> bool:
        if is_going(pod):
            return True
        if self.ordered and not _runs(pod) and pod is not first_unhealthy:
            return True
        if (self.owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(
            "whenScaled"
        ) == "Delete":
            await self._own_claims(pod)
        await self.cluster.delete("pods", pod)
        return True

    async def _update(self) -> None:
        rolling = self.strategy.get("rollingUpdate") or {}
        least = self.first + (rolling.get("partition") or 0)
        most = max(share(rolling.get("maxUnavailable") or 1, len(self.numbers), up=True), 1)
        name = self.update["metadata"]["name"]
        targets = [number for number in reversed(self.numbers) if number >= least]
        if most > 1:
            most -= sum(not _is_healthy(pod) for pod in self.replicas.values())
        for number in targets:
            pod = self.replicas[number]
            if most <= 0 or pod is None:
                return
            if _revision(pod) != name and not is_going(pod):
                await self.cluster.delete("pods", pod)
                most -= 1
            elif not _is_healthy(pod) and self.ordered:
                return

    # What is made.

    def _made(self, number: int) -> Json:
        revision = self._revision_for(number)
        pod = pod_of(self.owner, revisions.template_of(revision))
        name = f"{self.owner['metadata']['name']}-{number}"
        metadata, spec = pod["metadata"], pod["spec"]
        del metadata["generateName"]
        metadata["name"] = spec["hostname"] = name
        own = {NAME: name, INDEX: str(number), revisions.HASH: revision["metadata"]["name"]}
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
        if self.owner["spec"].get("serviceName"):
            spec["subdomain"] = self.owner["spec"]["serviceName"]
        claimed = {
            each["metadata"]["name"]: self._claim_name(each, number) for each in self._claim_templates()
        }
        kept = [each for each in spec.get("volumes") or () if each["name"] not in claimed]
        made = [{"name": key, "persistentVolumeClaim": {"claimName": name}} for key, name in claimed.items()]
        if kept or made:
            spec["volumes"] = [*made, *kept]
        return pod

    def _revision_for(self, number: int) -> Json:
        """A pod below the partition is of the old revision; another that is made during an update is of the new one."""
        if self.current["metadata"]["name"] == self.update["metadata"]["name"]:
            return self.update
        if self.strategy.get("type") == "OnDelete":
            return self.update
        rolling = self.strategy.get("rollingUpdate")
        if rolling is None:  # nobody said how: those that an update has not come to keep what they had
            left = (self.owner.get("status") or {}).get("currentReplicas", 0)
        else:
            left = rolling.get("partition") or 0
        return self.current if number < self.first + left else self.update

    def _claim_templates(self) -> Sequence[Json]:
        return self.owner["spec"].get("volumeClaimTemplates") or ()

    def _claim_name(self, template: Json, number: int) -> str:
        return f"{template['metadata']['name']}-{self.owner['metadata']['name']}-{number}"

    async def _claim_volumes(self, number: int) -> None:
        namespace = self.owner["metadata"]["namespace"]
        policy = self.owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        for template in self._claim_templates():
            name = self._claim_name(template, number)
            if self.cluster.get(CLAIMS, namespace, name) is not None:
                continue
            labels = {**labels_of(template), **(self.owner["spec"]["selector"].get("matchLabels") or {})}
            metadata = {**template["metadata"], "name": name, "namespace": namespace, "labels": labels}
            if policy.get("whenDeleted") == "Delete":
                metadata["ownerReferences"] = [_plain_reference(self.owner)]
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
            await self.cluster.create(CLAIMS, {**claim, "spec": deepcopy(template["spec"])})

    async def _own_claims(self, pod: Json) -> None:
        """Has the claims of a pod go with it."""
        number, namespace = ordinal(self.owner, pod), self.owner["metadata"]["namespace"]
        for template in self._claim_templates():
            claim = self.cluster.get(CLAIMS, namespace, self._claim_name(template, number))
            if claim is not None:
                owner = _plain_reference({"apiVersion": "v1", "kind": "Pod", **pod})
                await self.cluster.update(CLAIMS, claim, lambda obj, owner=owner: _owned(obj, owner))  # type: ignore[misc]

    # The status.

    def status(self) -> Json:
        """The status after this step."""
        present = self.cluster.objects("pods", self.owner["metadata"]["namespace"])
        pods = [pod for pod in present if is_controlled_by(pod, self.owner)]
        current, update = self.current["metadata"]["name"], self.update["metadata"]["name"]
        now = self.cluster.now()
        running = [pod for pod in pods if _runs(pod)]
        staying = [pod for pod in pods if not is_going(pod)]
        numbers = {
            "replicas": len(pods),
            "readyReplicas": len(running),
            "availableReplicas": sum(is_available(pod, self.least, now) for pod in running),
            "currentReplicas": sum(_revision(pod) == current for pod in staying),
            "updatedReplicas": sum(_revision(pod) == update for pod in staying),
        }
        total = numbers["replicas"]
        if (
            self.strategy.get("type") != "OnDelete"
            and numbers["updatedReplicas"] == numbers["readyReplicas"] == total
        ):
            numbers["currentReplicas"], current = numbers["updatedReplicas"], update
        old = self.owner.get("status") or {}
        kept = {
            key: value for key, value in numbers.items() if value or key in ("replicas", "availableReplicas")
        }
        status = {"observedGeneration": self.owner["metadata"].get("generation", 0), **kept}
        status |= {"currentRevision": current, "updateRevision": update, "collisionCount": 0}
        return {**status, "conditions": old["conditions"]} if old.get("conditions") else status


def _plain_reference(owner: Json) -> Json:
    """An owner that does not control, and does not wait."""
    reference = reference_to(owner)
    return {key: reference[key] for key in ("apiVersion", "kind", "name", "uid")}


def _owned(obj: Json, owner: Json) -> Json:
    references = obj["metadata"].get("ownerReferences") or []
    if all(each["uid"] != owner["uid"] for each in references):
        obj["metadata"]["ownerReferences"] = [*references, owner]
    return obj


WORKLOAD = Workload(SETS, reconcile, (owner_or_selecting(SETS, "StatefulSet", "pods"),))
