"""Affinity between pods, and how pods spread over parts of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from apimachinery.meta.json import Json
from apimachinery.meta.selectors import selector_of

from .board import Board, NodePods
from .node_terms import asks_for
from .tolerations import untolerated

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def labels_of(pod: Json) -> Mapping[str, str]:
    """The labels of a pod."""
    return pod["metadata"].get("labels") or {}


def required(pod: Json, kind: str) -> list[Json]:
    """The terms that must hold; ``kind`` is podAffinity or podAntiAffinity."""
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(REQUIRED) or []


def preferred(pod: Json, kind: str) -> Iterator[tuple[int, Json]]:
    """The terms that should hold, with their weights."""
    for each in ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(PREFERRED) or ():
        yield each["weight"], each["podAffinityTerm"]


def means(term: Json, owner: Json, other: Json, board: Board) -> bool:
    """Whether a term of a pod is about another pod."""
    namespace = other["metadata"]["namespace"]
    named, chosen = term.get("namespaces") or [], term.get("namespaceSelector")
    within = namespace in named
    if chosen is not None:
        within = within or selector_of(chosen).matches(board.namespaces.get(namespace, {}))
    elif not named:
        within = namespace == owner["metadata"]["namespace"]
    if not within or term.get("labelSelector") is None:
        return False
    own, theirs = labels_of(owner), labels_of(other)
    for key in term.get("matchLabelKeys") or ():
        if key in own and theirs.get(key) != own[key]:
            return False
    if any(key in own and theirs.get(key) == own[key] for key in term.get("mismatchLabelKeys") or ()):
        return False
    return selector_of(term["labelSelector"]).matches(theirs)


def domains(board: Board, term: Json, pod: Json) -> Counter[str]:
    """How many pods that a term is about each part of the cluster has."""
    found: Counter[str] = Counter()
    for here, other in board.all_pods():
        part = here.labels.get(term["topologyKey"])
        if part is not None and means(term, pod, other, board):
            found[part] += 1
    return found


def keeps_out(board: Board, pod: Json) -> set[tuple[str, str]]:
    """The parts of the cluster, by key and value, where a pod that is there wants none like this one."""
    out = set()
    for here, other in board.all_pods():
        for term in required(other, "podAntiAffinity"):
            part = here.labels.get(term["topologyKey"])
            if part is not None and means(term, other, pod, board):
                out.add((term["topologyKey"], part))
    return out


def spread(pod: Json, action: str) -> list[Json]:
    """The constraints of a pod on how it spreads, of one ``whenUnsatisfiable``."""
    given = pod["spec"].get("topologySpreadConstraints") or ()
    return [each for each in given if each.get("whenUnsatisfiable") == action]


def spread_counts(board: Board, pod: Json, constraint: Json) -> Counter[str]:
    """The matching pods in each part that counts: those of nodes that the pod could be on."""
    counts: Counter[str] = Counter()
    key = constraint["topologyKey"]
    for here in board.places.values():
        if key in here.labels and _counts(constraint, pod, here):
            counts[here.labels[key]] += sum(_is_like(constraint, pod, other) for other in here.pods)
    return counts


def _counts(constraint: Json, pod: Json, here: NodePods) -> bool:
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not asks_for(pod, here.node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") != "Honor" or not untolerated(pod, here.node)


def _is_like(constraint: Json, pod: Json, other: Json) -> bool:
    if (
        other["metadata"]["namespace"] != pod["metadata"]["namespace"]
        or "deletionTimestamp" in other["metadata"]
    ):
        return False
    own, theirs = labels_of(pod), labels_of(other)
    if any(key in own and theirs.get(key) != own[key] for key in constraint.get("matchLabelKeys") or ()):
        return False
    return selector_of(constraint.get("labelSelector") or {}).matches(theirs)


def matches_itself(constraint: Json, pod: Json) -> bool:
    """Whether a pod is one of those that its constraint counts."""
    return selector_of(constraint.get("labelSelector") or {}).matches(labels_of(pod))
