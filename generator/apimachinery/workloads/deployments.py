"""Deployments: a ReplicaSet for each template, replaced one by the other.

``rollouts`` has the numbers, ``deployment_status`` the status and its conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json

from . import deployment_status as statuses
from .conditions import find, with_condition
from .interface import ClusterView, Follows, Workload, write_status
from .owners import (
    claim,
    controller_of,
    is_controlled_by,
    is_going,
    owner_or_selecting,
    reference_to,
    selector,
)
from .pods import has_ended, template_hash
from .rollouts import (
    DESIRED,
    MOST,
    age,
    counted,
    in_proportion,
    is_rolling,
    limits,
    newest_size,
    replicas,
    shrunk,
    total,
)

REVISION, HISTORY = "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"
HASH = "pod-template-hash"
NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
        "deprecated.deployment.rollback.to",
    }
)
SETS, DEPLOYMENTS = "replicasets.apps", "deployments.apps"
_HISTORY_BYTES = 2000


async def reconcile(cluster: ClusterView, deployment: Json) -> float | None:
    """Takes the next step of a rollout; the change of a ReplicaSet that follows brings it back. Raises ApiError."""
    selects = selector(deployment)
    if selects is None:
        return None
    present = cluster.objects(SETS, deployment["metadata"]["namespace"])
    sets = await claim(cluster, SETS, deployment, present, selects)
    work = _Rollout(cluster, deployment, sets)
    # What is being deleted makes nothing new; its status still shows what is left.
    if is_going(deployment):
        await work.show_state()
        return None
    await work.note_pause()
    # A size that changed in the middle of a rollout is spread first, as kube-controller-manager does.
    if deployment["spec"].get("paused") or any(
        _desired(each) not in (None, replicas(deployment)) for each in _active(sets)
    ):
        await work.scale_only()
        return None
    if is_rolling(deployment):
        await work.roll()
    else:
        await work.recreate()
    return statuses.next_deadline(work.deployment, cluster.now())


class _Rollout:
    """One look at a Deployment. ``new`` is the ReplicaSet of its template, ``old`` are the others."""

    def __init__(self, cluster: ClusterView, deployment: Json, sets: Sequence[Json]) -> None:
        self.cluster = cluster
        self.deployment = deployment
        template = _plain(deployment["spec"]["template"])
        ordered = sorted(sets, key=age)
        self.new = next((each for each in ordered if _plain(each["spec"]["template"]) == template), None)
        self.old = [each for each in sets if each is not self.new]

    @property
    def sets(self) -> list[Json]:
        """All of them."""
        return [*self.old, *([] if self.new is None else [self.new])]

    async def show_state(self) -> None:
        """Writes the status alone."""
        status = statuses.counted_status(self.deployment, self.sets, self.new, self.cluster.now())
        await self._write(status)

    async def note_pause(self) -> None:
        """Says in the condition Progressing that it is paused, or goes on: its deadline does not run meanwhile."""
        condition = find((self.deployment.get("status") or {}).get("conditions"), "Progressing")
        paused = bool(self.deployment["spec"].get("paused"))
        reason = (condition or {}).get("reason")
        if (
            self.deployment["spec"].get("progressDeadlineSeconds") is None
            # A deadline that has passed is not taken back by a pause.
            or reason == "ProgressDeadlineExceeded"
        ):
            return
        if paused == (reason == "DeploymentPaused"):
            return
        name, text = ("DeploymentPaused", "paused") if paused else ("DeploymentResumed", "resumed")
        await self._progressing("Unknown", name, f"Deployment is {text}")

    async def scale_only(self) -> None:
        """Scales what there is; nothing new is rolled out."""
        await self._find_new(create=False)
        await self._scale_all()
        if self.deployment["spec"].get("paused"):
            await self._clean_up()
        await self.show_state()

    async def roll(self) -> None:
        """Replaces some pods: more of the new, or fewer of the old."""
        await self._find_new(create=True)
        assert self.new is not None
        if replicas(self.new) != replicas(self.deployment):
            size = newest_size(self.deployment, self.new, self.sets)
            if replicas(self.new) > replicas(self.deployment):
                size = replicas(self.deployment)
            # One step for each look: the event of this change brings the next one.
            if await self._resize(self.new, size):
                return await self._show_rollout()
        old = _active(self.old)
        # The old ones shrink only by what the new ones have made available.
        if total(old) and (sizes := shrunk(self.deployment, self.new, old)):
            for each in old:
                if each["metadata"]["uid"] in sizes:
                    await self._resize(each, sizes[each["metadata"]["uid"]])
            return await self._show_rollout()
        if statuses.is_complete(self.deployment, self.deployment.get("status") or {}):
            await self._clean_up()
        return await self._show_rollout()

    async def recreate(self) -> None:
        """Ends all old pods, and then makes the new ones."""
        await self._find_new(create=False)
        resized = [await self._resize(each, 0) for each in _active(self.old)]
        # Pods of the old template must have ended, not only be on their way.
        if any(resized) or self._old_pods_run():
            return await self._show_rollout()
        if self.new is None:
            await self._find_new(create=True)
        assert self.new is not None
        await self._resize(self.new, replicas(self.deployment))
        if statuses.is_complete(self.deployment, self.deployment.get("status") or {}):
            await self._clean_up()
        return await self._show_rollout()

    def _old_pods_run(self) -> bool:
        pods = self.cluster.objects("pods", self.deployment["metadata"]["namespace"])
        return any(not has_ended(pod) and is_controlled_by(pod, each) for pod in pods for each in self.old)

    # The newest ReplicaSet.

    async def _find_new(self, *, create: bool) -> None:
        revision = max((_revision(each) for each in self.old), default=0) + 1
        if self.new is not None:
            await self._update_new(revision)
            if find((self.deployment.get("status") or {}).get("conditions"), "Progressing") is None:
                name = self.new["metadata"]["name"]
                await self._progressing("True", "FoundNewReplicaSet", f'Found new replica set "{name}"')
        elif create:
            await self._create_new(revision)
        else:
            return
        assert self.new is not None
        # An older ReplicaSet that is rolled back to keeps its name, and gets a new revision.
        revision = _revision(self.new)
        if _revision(self.deployment) != revision:
            text = str(revision)
            self.deployment = await self.cluster.update(
                DEPLOYMENTS, self.deployment, lambda obj: _annotated(obj, {REVISION: text})
            )

    async def _update_new(self, revision: int) -> None:
        assert self.new is not None
        least = self.deployment["spec"].get("minReadySeconds", 0)
        notes = self._notes(revision, self.new)
        held = self.new["metadata"].get("annotations") or {}
        if notes.items() <= held.items() and self.new["spec"].get("minReadySeconds", 0) == least:
            return

        def change(obj: Json) -> Json:
            obj["spec"]["minReadySeconds"] = least
            return _annotated(obj, notes)

        self.new = await self.cluster.update(SETS, self.new, change)

    def _notes(self, revision: int, present: Json | None) -> dict[str, str]:
        """The annotations of the newest ReplicaSet that come from its Deployment."""
        held = self.deployment["metadata"].get("annotations") or {}
        notes = {key: value for key, value in held.items() if key not in NOT_COPIED}
        former = 0 if present is None else _revision(present)
        if former < revision:
            notes[REVISION] = str(revision)
            # Revisions that a ReplicaSet had before are listed, oldest first, up to a limit.
            if present is not None and former:
                history = (present["metadata"].get("annotations") or {}).get(HISTORY, "")
                joined = f"{history},{former}" if history else str(former)
                notes[HISTORY] = joined[-_HISTORY_BYTES:]
        return notes

    async def _create_new(self, revision: int) -> None:
        deployment = self.deployment
        status, spec = deployment.get("status") or {}, deployment["spec"]
        # collisionCount is part of the hash, so a collision leads to another name.
        digest = template_hash(spec["template"], status.get("collisionCount") or 0)
        template = deepcopy(spec["template"])
        template.setdefault("metadata", {}).setdefault("labels", {})[HASH] = digest
        chosen = deepcopy(spec["selector"])
        chosen.setdefault("matchLabels", {})[HASH] = digest
        surge = limits(deployment)[0]
        notes = {
            **self._notes(revision, None),
            DESIRED: str(replicas(deployment)),
            MOST: str(replicas(deployment) + surge),
        }
        made: Json = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{deployment['metadata']['name']}-{digest}",
                "namespace": deployment["metadata"]["namespace"],
                "labels": dict(template["metadata"]["labels"]),
                "annotations": notes,
                "ownerReferences": [reference_to(deployment)],
            },
            "spec": {
                "replicas": newest_size(deployment, None, self.old),
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": chosen,
                "template": template,
            },
        }
        try:
            self.new = await self.cluster.create(SETS, made)
        except ApiError as error:
            await self._not_created(made, error)
            raise
        name = made["metadata"]["name"]
        if spec.get("progressDeadlineSeconds") is not None:
            await self._progressing("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')

    async def _not_created(self, made: Json, error: ApiError) -> None:
        """Another template may have the same hash, which is counted; anything else is shown."""
        if error.reason == "AlreadyExists":
            present = self.cluster.get(SETS, made["metadata"]["namespace"], made["metadata"]["name"])
            if present is None or is_controlled_by(present, self.deployment):
                return
            status = dict(self.deployment.get("status") or {})
            status["collisionCount"] = (status.get("collisionCount") or 0) + 1
            await self._write(status)
        elif self.deployment["spec"].get("progressDeadlineSeconds") is not None:
            text = f'Failed to create new replica set "{made["metadata"]["name"]}": {error.message}'
            await self._progressing("False", "ReplicaSetCreateError", text)

    # Sizes.

    async def _resize(self, each: Json, size: int) -> bool:
        """Whether a ReplicaSet was given another size."""
        wanted, surge = replicas(self.deployment), limits(self.deployment)[0]
        notes = {DESIRED: str(wanted), MOST: str(wanted + surge)}
        resized = replicas(each) != size
        # Annotations alone may be out of date, after a change of maxSurge.
        if not resized and notes.items() <= (each["metadata"].get("annotations") or {}).items():
            return False

        def change(obj: Json) -> Json:
            obj["spec"]["replicas"] = size
            return _annotated(obj, notes)

        written = await self.cluster.update(SETS, each, change)
        if each is self.new:
            self.new = written
        else:
            self.old = [written if known is each else known for known in self.old]
        return resized

    async def _scale_all(self) -> None:
        """Brings the sizes of all ReplicaSets to the Deployment's, in proportion where several are active."""
        active = _active(self.sets)
        if len(active) <= 1:
            latest = self.new or max(self.old, key=age, default=None)
            only = active[0] if active else latest
            if only is not None and replicas(only) != replicas(self.deployment):
                await self._resize(only, replicas(self.deployment))
            elif only is not None:
                await self._resize(only, replicas(only))
            return
        # The newest has all pods: what is left of the old ones goes.
        if self._is_saturated():
            for each in _active(self.old):
                await self._resize(each, 0)
        elif is_rolling(self.deployment):
            sizes = in_proportion(self.deployment, active)
            for each in active:
                await self._resize(each, sizes[each["metadata"]["uid"]])

    def _is_saturated(self) -> bool:
        wanted = replicas(self.deployment)
        return (
            self.new is not None
            and _desired(self.new) == wanted == replicas(self.new)
            and counted([self.new], "availableReplicas") == wanted
        )

    async def _clean_up(self) -> None:
        """Deletes the oldest ReplicaSets beyond ``revisionHistoryLimit``."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        kept = [each for each in self.old if not is_going(each)]
        if limit is None or len(kept) <= limit:
            return
        # The oldest first, by revision and not by age.
        for each in sorted(kept, key=_revision)[: len(kept) - limit]:
            status = each.get("status") or {}
            observed = status.get("observedGeneration", 0) >= each["metadata"].get("generation", 0)
            if not status.get("replicas") and not replicas(each) and observed:
                await self.cluster.delete(SETS, each)

    # The status.

    async def _show_rollout(self) -> None:
        status = statuses.rollout_status(self.deployment, self.sets, self.new, self.cluster.now())
        await self._write(status)

    async def _progressing(self, value: str, reason: str, message: str) -> None:
        made = statuses.condition("Progressing", value, reason, message, self.cluster.now())
        status = dict(self.deployment.get("status") or {})
        status["conditions"] = with_condition(status.get("conditions"), made)
        await self._write(status)

    async def _write(self, status: Json) -> None:
        await write_status(self.cluster, DEPLOYMENTS, self.deployment, status)
        self.deployment = {**self.deployment, "status": status}


def _plain(template: Json) -> Json:
    """A template without the label that ReplicaSets add to it."""
    # Set by whoever made it; it says nothing about the template.
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _annotated(obj: Json, notes: dict[str, str]) -> Json:
    obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), **notes}
    return obj


def _revision(obj: Json) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "")
    return int(text) if text.isdigit() else 0


def _desired(each: Json) -> int | None:
    text = (each["metadata"].get("annotations") or {}).get(DESIRED, "")
    return int(text) if text.isdigit() else None


def _active(sets: Sequence[Json]) -> list[Json]:
    return [each for each in sets if replicas(each) > 0]


def _of_pod(cluster: ClusterView, pod: Json) -> Iterator[tuple[str, str]]:
    """The Deployment of a pod: where it waits for old pods to end."""
    reference, namespace = controller_of(pod), pod["metadata"].get("namespace", "")
    if reference is None or reference["kind"] != "ReplicaSet":
        return
    owner = cluster.get(SETS, namespace, reference["name"])
    above = None if owner is None else controller_of(owner)
    if above is None or above["kind"] != "Deployment":
        return
    deployment = cluster.get(DEPLOYMENTS, namespace, above["name"])
    if deployment is not None and not is_rolling(deployment):
        yield namespace, above["name"]


WORKLOAD = Workload(
    DEPLOYMENTS,
    reconcile,
    (owner_or_selecting(DEPLOYMENTS, "Deployment", SETS), Follows("pods", _of_pod)),
)
