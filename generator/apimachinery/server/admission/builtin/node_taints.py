"""TaintNodesByCondition: a new node takes no pods until something says that it is ready."""

from __future__ import annotations

from apimachinery.kinds.defaulters import taint_unready_node
from apimachinery.server.admission.interface import Operation, Plugin


class TaintNodesByCondition(Plugin):
    """Taints new nodes."""

    resources = frozenset({("", "nodes")})

    def admit(self, operation: Operation) -> None:
        if operation.verb == "CREATE" and operation.obj is not None and not operation.target.subresource:
            taint_unready_node(operation.obj)
