"""Who can do something, why, and what somebody can do: the roles of the cluster as a graph, read with the rights of
whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from apimachinery.access.authorization import Attributes
from apimachinery.access.bindings import GROUP, KINDS
from kubewright.tools.rbac.graph import NOBODY, AccessGraph, GrantChain, read_subject

PATHS = {plural: f"/apis/{GROUP}/v1/{plural}" for plural in KINDS}
MOST_CHAINS = 2_000
Json = dict[str, Any]


def answer(asked: Json, objects: Iterable[Json]) -> Json:
    """The chains of binding, role and rule. Raises SubjectError for a subject that cannot be read."""
    graph = AccessGraph(objects)
    namespace = str(asked.get("namespace") or "")
    resource, _, subresource = str(asked.get("resource") or "").partition("/")
    wanted = Attributes(
        NOBODY,
        str(asked.get("verb") or "get"),
        namespace,
        str(asked.get("group") or ""),
        "",
        resource,
        subresource,
        str(asked.get("name") or ""),
    )
    subject = str(asked.get("subject") or "")
    if asked.get("question") == "who-can":
        chains = graph.who_can(wanted)
    else:
        user = read_subject(subject)
        user = replace(user, groups=(*user.groups, *map(str, asked.get("groups") or ())))
        chains = (
            graph.what_can(user, namespace)
            if asked.get("question") == "what-can"
            else graph.why(user, wanted)
        )
    found = [_shown(chain) for chain, _ in zip(chains, range(MOST_CHAINS), strict=False)]
    return {"chains": found, "roles": graph.count}


def _shown(chain: GrantChain) -> Json:
    return {
        "subject": chain.who,
        "binding": chain.bound_by,
        "role": chain.role,
        "rule": chain.rule.shown(),
    }


def typed(listed: Json) -> list[Json]:
    """The objects of a list, which do not say their kind."""
    kind = str(listed.get("kind") or "").removesuffix("List")
    return [
        {**item, "kind": kind, "apiVersion": listed.get("apiVersion")} for item in listed.get("items") or ()
    ]
