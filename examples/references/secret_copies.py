"""Two kinds: an Ingress names a Secret of another namespace (an annotation), and gets a copy of it next to itself."""

from __future__ import annotations

import logging

from apimachinery.controller import (
    Cached,
    Context,
    Controller,
    MapContext,
    Operator,
    Request,
    Watch,
    request_for,
)
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import Secret
from kubernetes_api.meta_v1 import ObjectMeta
from kubernetes_api.networking_v1 import Ingress

SOURCE = "secrets.example.com/copy"


def source_of(ingress: Ingress) -> list[str]:
    annotations = ingress.metadata.annotations if ingress.metadata else None
    return [annotations[SOURCE]] if annotations and SOURCE in annotations else []


def users_of(context: MapContext, secret: Secret) -> list[Request]:
    return context.indexed(Ingress, "source", str(request_for(secret)))


copies = Controller(
    for_=Cached(Ingress, indexes={"source": source_of}),
    owns=[Secret],
    watches=[Watch(Secret, users_of)],
    name="secret-copies",
)


@copies.reconciler
def reconcile(context: Context[Ingress], ingress: Ingress) -> None:
    for source in source_of(ingress):
        namespace, _, name = source.partition("/")
        secret = context.lister(Secret).get(name, namespace=namespace)
        if secret is None:
            context.event("Warning", "Missing", f"there is no Secret {source}")
        else:
            context.apply(Secret(metadata=ObjectMeta(name=name), type=secret.type, data=secret.data))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    with Client() as client:
        Operator(client, [copies]).run()
