"""Controllers and operators, for threads and for asyncio: what a program needs is imported from here, loaded when it
is first used. ``x`` that does I/O has a twin ``async_x``, ``X`` a twin ``AsyncX``.

What is not in ``NAMES`` is not for users; the modules of this folder are:

- ``operator``    runs controllers with their informers, election, probes and a graceful stop
- ``controller``  reconcile functions typed by model; ``context`` what they have; ``requests``, ``sources`` why they are
  called
- ``caches``      one watch for each selection; ``cached`` its options; ``lister`` reads, ``written`` own writes
- ``objects``     what reconcile functions do again and again; ``unchanged`` which applies need not be sent
- ``conditions``  of a status: set, find
- ``election``    leader election on a Lease; ``recorder`` events, aggregated
- ``tracing``     spans of OpenTelemetry; ``probes`` HTTP
- ``kinds``       which resource a model class belongs to

Work queues, rate limiters, clocks and the hooks for metrics, traces and logs are in ``apimachinery.queue``. The plain
one of two twin modules is made of the other by ``build/plain.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apimachinery.meta.exports import exports

if TYPE_CHECKING:
    from apimachinery.controller.async_caches import AsyncSharedInformers as AsyncSharedInformers
    from apimachinery.controller.async_context import AsyncContext as AsyncContext
    from apimachinery.controller.async_controller import AsyncController as AsyncController
    from apimachinery.controller.async_election import AsyncElection as AsyncElection
    from apimachinery.controller.async_objects import async_add_finalizer as async_add_finalizer
    from apimachinery.controller.async_objects import async_remove_finalizer as async_remove_finalizer
    from apimachinery.controller.async_objects import async_write_status as async_write_status
    from apimachinery.controller.async_operator import AsyncOperator as AsyncOperator
    from apimachinery.controller.async_recorder import AsyncRecorder as AsyncRecorder
    from apimachinery.controller.cached import Cached as Cached
    from apimachinery.controller.cached import metadata_of as metadata_of
    from apimachinery.controller.caches import SharedInformers as SharedInformers
    from apimachinery.controller.conditions import find_condition as find_condition
    from apimachinery.controller.conditions import has_condition as has_condition
    from apimachinery.controller.conditions import set_condition as set_condition
    from apimachinery.controller.context import Context as Context
    from apimachinery.controller.controller import Controller as Controller
    from apimachinery.controller.election import Election as Election
    from apimachinery.controller.lister import CacheNotSynced as CacheNotSynced
    from apimachinery.controller.lister import Lister as Lister
    from apimachinery.controller.objects import add_finalizer as add_finalizer
    from apimachinery.controller.objects import remove_finalizer as remove_finalizer
    from apimachinery.controller.objects import write_status as write_status
    from apimachinery.controller.operator import Operator as Operator
    from apimachinery.controller.recorder import Recorder as Recorder
    from apimachinery.controller.requests import LostLeadership as LostLeadership
    from apimachinery.controller.requests import MapContext as MapContext
    from apimachinery.controller.requests import Refused as Refused
    from apimachinery.controller.requests import Request as Request
    from apimachinery.controller.requests import Watch as Watch
    from apimachinery.controller.requests import generation_changed as generation_changed
    from apimachinery.controller.requests import request_for as request_for
    from apimachinery.controller.sources import Channel as Channel
    from apimachinery.controller.sources import Every as Every
    from apimachinery.controller.tracing import TracingObserver as TracingObserver
    from apimachinery.queue.backlog import ExponentialBackoff as ExponentialBackoff
    from apimachinery.queue.backlog import LongestOf as LongestOf
    from apimachinery.queue.backlog import OverallLimit as OverallLimit
    from apimachinery.queue.clock import FakeClock as FakeClock
    from apimachinery.queue.observing import Observer as Observer
    from apimachinery.queue.prometheus import PrometheusObserver as PrometheusObserver

NAMES = {
    "apimachinery.controller.controller": "Controller",
    "apimachinery.controller.async_controller": "AsyncController",
    "apimachinery.controller.context": "Context",
    "apimachinery.controller.async_context": "AsyncContext",
    "apimachinery.controller.operator": "Operator",
    "apimachinery.controller.async_operator": "AsyncOperator",
    "apimachinery.controller.election": "Election",
    "apimachinery.controller.async_election": "AsyncElection",
    "apimachinery.controller.cached": "Cached metadata_of",
    "apimachinery.controller.requests": (
        "LostLeadership MapContext Refused Request Watch generation_changed request_for"
    ),
    "apimachinery.controller.sources": "Channel Every",
    "apimachinery.controller.lister": "CacheNotSynced Lister",
    "apimachinery.controller.caches": "SharedInformers",
    "apimachinery.controller.async_caches": "AsyncSharedInformers",
    "apimachinery.controller.conditions": "find_condition has_condition set_condition",
    "apimachinery.controller.objects": "add_finalizer remove_finalizer write_status",
    "apimachinery.controller.async_objects": "async_add_finalizer async_remove_finalizer async_write_status",
    "apimachinery.controller.recorder": "Recorder",
    "apimachinery.controller.async_recorder": "AsyncRecorder",
    "apimachinery.controller.tracing": "TracingObserver",
    "apimachinery.queue.backlog": "ExponentialBackoff LongestOf OverallLimit",
    "apimachinery.queue.observing": "Observer",
    "apimachinery.queue.prometheus": "PrometheusObserver",
    "apimachinery.queue.clock": "FakeClock",
}
"""Where what is public is."""

__getattr__, __all__ = exports(__name__, NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
