"""An operator with webhooks: images of Websites get a registry and are checked, then comes the Deployment."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from website_operator import websites

from apimachinery.controller import Election, Operator
from apimachinery.webhook import Denied, FieldError, Review, Webhooks, invalid_value
from kubernetes_api.client import Client
from website_api.example_v1 import Website

REGISTRY = "registry.example.com"
webhook = Webhooks("websites.example.kubewright.dev")


@webhook.mutating(Website)
def fill_in(review: Review[Website], site: Website) -> None:
    if "/" not in site.spec.image:
        site.spec.image = f"{REGISTRY}/{site.spec.image}"


@webhook.validating(Website)
def check(review: Review[Website], site: Website) -> Iterator[FieldError]:
    if ":" not in site.spec.image:
        yield invalid_value("spec.image", site.spec.image, "must name a version, as in web:1.2")
    if review.old is not None and (review.old.spec.replicas or 1) - (site.spec.replicas or 1) > 5:
        review.warn("more than five copies end at once")


@webhook.validating(Website, operations=["DELETE"])
def keep(review: Review[Website], site: Website) -> None:
    if site.metadata and (site.metadata.labels or {}).get("keep") == "yes":
        raise Denied(f"{review.user.username} has to take the label keep away first")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    with Client() as client, webhook.serve(client, service="default/website-hooks"):
        election = Election(name="website-operator", namespace="default")
        Operator(client, [websites], election=election, probes_port=8080).run()
