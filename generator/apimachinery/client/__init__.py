"""The client SDK: everything that a program needs is imported from here, and loaded when it is first used.

Typed clients of kinds are in generated packages (``kubernetes_api.client``). What is not in ``NAMES`` is not for users;
the modules of this folder are:

- ``connection``  ``Client``; ``async_connection`` ``AsyncClient``; generated packages derive from both
- ``config``      kubeconfig, exec plugins, in-cluster; ``credentials``, ``tls``, ``oidc`` what connections show
- ``resource``    the verbs as mixins; ``reading`` pages, watches and logs; ``async_resource`` the same, awaited
- ``objects``     what programs do with objects of any kind: wait, apply files, try again after conflicts; ``verbs``
  these as methods of a client
- ``calls``       every call as data; ``errors`` what calls raise, by reason
- ``reflector``, ``informer``  copies of what the server has; ``local`` apply without a server
- ``processes``   commands and ports of pods; ``channels`` their protocol
- ``discovery``   resources known only at run time
- ``transport``   requests over connections, which are in ``links``; ``endpoint`` where a server is
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apimachinery.meta.exports import exports

if TYPE_CHECKING:
    from apimachinery.client.access import key_of as key_of
    from apimachinery.client.access import name_of as name_of
    from apimachinery.client.access import namespace_of as namespace_of
    from apimachinery.client.access import resource_version_of as resource_version_of
    from apimachinery.client.access import uid_of as uid_of
    from apimachinery.client.async_connection import AsyncClient as AsyncClient
    from apimachinery.client.async_forwarding import AsyncForwarder as AsyncForwarder
    from apimachinery.client.async_informer import AsyncInformer as AsyncInformer
    from apimachinery.client.async_objects import AsyncKindApi as AsyncKindApi
    from apimachinery.client.async_objects import async_create_or_update as async_create_or_update
    from apimachinery.client.async_objects import async_retry_on_conflict as async_retry_on_conflict
    from apimachinery.client.async_objects import async_wait_for as async_wait_for
    from apimachinery.client.async_processes import AsyncForwarded as AsyncForwarded
    from apimachinery.client.async_processes import AsyncProcess as AsyncProcess
    from apimachinery.client.async_reading import AsyncLogLines as AsyncLogLines
    from apimachinery.client.async_reading import AsyncPages as AsyncPages
    from apimachinery.client.async_reading import AsyncWatch as AsyncWatch
    from apimachinery.client.async_resource import AsyncDynamicResource as AsyncDynamicResource
    from apimachinery.client.bodies import AnswerTooLarge as AnswerTooLarge
    from apimachinery.client.bodies import TransportError as TransportError
    from apimachinery.client.calls import Event as Event
    from apimachinery.client.calls import Page as Page
    from apimachinery.client.calls import PatchType as PatchType
    from apimachinery.client.channels import STDERR as STDERR
    from apimachinery.client.channels import STDOUT as STDOUT
    from apimachinery.client.channels import ExecResult as ExecResult
    from apimachinery.client.config import Config as Config
    from apimachinery.client.config import ConfigError as ConfigError
    from apimachinery.client.config import Credential as Credential
    from apimachinery.client.config import ExecPlugin as ExecPlugin
    from apimachinery.client.config import FileBytes as FileBytes
    from apimachinery.client.config import Impersonation as Impersonation
    from apimachinery.client.connection import Client as Client
    from apimachinery.client.errors import AlreadyExists as AlreadyExists
    from apimachinery.client.errors import ApplyConflict as ApplyConflict
    from apimachinery.client.errors import BadRequest as BadRequest
    from apimachinery.client.errors import Conflict as Conflict
    from apimachinery.client.errors import FieldConflict as FieldConflict
    from apimachinery.client.errors import Forbidden as Forbidden
    from apimachinery.client.errors import Gone as Gone
    from apimachinery.client.errors import InternalError as InternalError
    from apimachinery.client.errors import Invalid as Invalid
    from apimachinery.client.errors import MethodNotAllowed as MethodNotAllowed
    from apimachinery.client.errors import NotFound as NotFound
    from apimachinery.client.errors import ServerTimeout as ServerTimeout
    from apimachinery.client.errors import ServiceUnavailable as ServiceUnavailable
    from apimachinery.client.errors import Timeout as Timeout
    from apimachinery.client.errors import TooManyRequests as TooManyRequests
    from apimachinery.client.errors import Unauthorized as Unauthorized
    from apimachinery.client.errors import UnreadableAnswer as UnreadableAnswer
    from apimachinery.client.errors import UnreadableObject as UnreadableObject
    from apimachinery.client.forwarding import Forwarder as Forwarder
    from apimachinery.client.informer import Informer as Informer
    from apimachinery.client.informer import Store as Store
    from apimachinery.client.kinds import UnknownResourceError as UnknownResourceError
    from apimachinery.client.kinds import resource_of as resource_of
    from apimachinery.client.local import FieldChange as FieldChange
    from apimachinery.client.local import LocalApply as LocalApply
    from apimachinery.client.local import Preview as Preview
    from apimachinery.client.objects import KindApi as KindApi
    from apimachinery.client.objects import create_or_update as create_or_update
    from apimachinery.client.objects import retry_on_conflict as retry_on_conflict
    from apimachinery.client.objects import wait_for as wait_for
    from apimachinery.client.partial import PartialObjectMetadata as PartialObjectMetadata
    from apimachinery.client.processes import Forwarded as Forwarded
    from apimachinery.client.processes import Process as Process
    from apimachinery.client.reading import LogLines as LogLines
    from apimachinery.client.reading import Pages as Pages
    from apimachinery.client.reading import Watch as Watch
    from apimachinery.client.reflector import Change as Change
    from apimachinery.client.reflector import ReflectorOptions as ReflectorOptions
    from apimachinery.client.resource import DynamicResource as DynamicResource
    from apimachinery.client.retry import NO_RETRIES as NO_RETRIES
    from apimachinery.client.retry import RetryPolicy as RetryPolicy
    from apimachinery.client.scale import Scale as Scale
    from apimachinery.client.throttle import Limits as Limits
    from apimachinery.meta.errors import ApiError as ApiError

NAMES = {
    "apimachinery.client.connection": "Client",
    "apimachinery.client.async_connection": "AsyncClient",
    "apimachinery.client.config": "Config ConfigError Credential ExecPlugin FileBytes Impersonation",
    "apimachinery.client.throttle": "Limits",
    "apimachinery.client.retry": "NO_RETRIES RetryPolicy",
    "apimachinery.client.calls": "Event Page PatchType",
    "apimachinery.client.errors": (
        "AlreadyExists ApplyConflict BadRequest Conflict FieldConflict Forbidden "
        "Gone InternalError Invalid MethodNotAllowed NotFound ServerTimeout "
        "ServiceUnavailable Timeout TooManyRequests Unauthorized UnreadableAnswer "
        "UnreadableObject"
    ),
    "apimachinery.meta.errors": "ApiError",
    "apimachinery.client.bodies": "AnswerTooLarge TransportError",
    "apimachinery.client.resource": "DynamicResource",
    "apimachinery.client.async_resource": "AsyncDynamicResource",
    "apimachinery.client.reading": "LogLines Pages Watch",
    "apimachinery.client.async_reading": "AsyncLogLines AsyncPages AsyncWatch",
    "apimachinery.client.objects": "KindApi create_or_update retry_on_conflict wait_for",
    "apimachinery.client.async_objects": (
        "AsyncKindApi async_create_or_update async_retry_on_conflict async_wait_for"
    ),
    "apimachinery.client.kinds": "UnknownResourceError resource_of",
    "apimachinery.client.forwarding": "Forwarder",
    "apimachinery.client.async_forwarding": "AsyncForwarder",
    "apimachinery.client.processes": "Forwarded Process",
    "apimachinery.client.async_processes": "AsyncForwarded AsyncProcess",
    "apimachinery.client.channels": "ExecResult STDERR STDOUT",
    "apimachinery.client.scale": "Scale",
    "apimachinery.client.partial": "PartialObjectMetadata",
    "apimachinery.client.reflector": "Change ReflectorOptions",
    "apimachinery.client.informer": "Informer Store",
    "apimachinery.client.async_informer": "AsyncInformer",
    "apimachinery.client.local": "FieldChange LocalApply Preview",
    "apimachinery.client.access": "key_of name_of namespace_of resource_version_of uid_of",
}
"""Where what is public is."""

__getattr__, __all__ = exports(__name__, NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
