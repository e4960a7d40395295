"""Webhooks as decorated functions, from a program of yours: what it needs is imported from here.

- ``webhooks``      the decorators, and what is asked by path; ``reviews`` what functions get and give
- ``running``       a server of them; ``serving`` reviews over HTTPS; ``certificates`` which renew themselves
- ``installing``    what the cluster needs to know
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apimachinery.meta.exports import exports

if TYPE_CHECKING:
    from apimachinery.meta.field_errors import FieldError as FieldError
    from apimachinery.meta.field_errors import duplicate as duplicate
    from apimachinery.meta.field_errors import forbidden as forbidden
    from apimachinery.meta.field_errors import invalid_value as invalid_value
    from apimachinery.meta.field_errors import not_supported as not_supported
    from apimachinery.meta.field_errors import required as required
    from apimachinery.webhook.reviews import Denied as Denied
    from apimachinery.webhook.reviews import Requester as Requester
    from apimachinery.webhook.reviews import Review as Review
    from apimachinery.webhook.running import WebhookServer as WebhookServer
    from apimachinery.webhook.webhooks import Webhooks as Webhooks

NAMES = {
    "apimachinery.webhook.webhooks": "Webhooks",
    "apimachinery.webhook.reviews": "Denied Requester Review",
    "apimachinery.webhook.running": "WebhookServer",
    "apimachinery.meta.field_errors": "FieldError duplicate forbidden invalid_value not_supported required",
}
"""Where what is public is."""

__getattr__, __all__ = exports(__name__, NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
