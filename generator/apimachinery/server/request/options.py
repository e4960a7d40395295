"""The options of writes, read from the query (those of deletion from a body too) or refused.

``dryRun`` knows ``All`` only and may be repeated. A writer that gives no ``fieldManager`` is called what its
User-Agent says before the first slash. Booleans are true unless they say ``false`` or ``0``. DeleteOptions in a
body replace those of the query whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from apimachinery.http.messages import Request
from apimachinery.meta.field_errors import (
    FieldError,
    forbidden,
    invalid,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from apimachinery.server.request.list_options import parse_int64

MANAGER_BYTES = 128
_POLICIES = ("Foreground", "Background", "Orphan")
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
Query = Mapping[str, Sequence[str]]


class WriteOptions(msgspec.Struct, frozen=True):
    """CreateOptions, UpdateOptions and PatchOptions in one. ``force`` is None if nobody says. ``stated`` is the query
    that they are from: what a client did not say is not shown to webhooks."""

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None
    stated: Query = msgspec.field(default_factory=dict)

    def shown(self, kind: str) -> dict[str, Any]:
        """As an object of a kind of meta.k8s.io/v1, with what the client said."""
        options: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if dry_run := self.stated.get("dryRun"):
            options["dryRun"] = list(dry_run)
        for name in ("fieldManager", "fieldValidation"):
            if (values := self.stated.get(name)) and values[0]:
                options[name] = values[0]
        return options


@dataclass(frozen=True, slots=True)
class DeletionOptions:
    """DeleteOptions; None if nobody says."""

    dry_run: bool = False
    grace_seconds: int | None = None
    policy: str | None = None
    orphan: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    ignores_read_errors: bool = False
    faults: tuple[FieldError, ...] = field(default=())

    def shown(self) -> dict[str, Any]:
        """As an object of meta.k8s.io/v1, with what the client said."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        given = {key: value for key, value in preconditions.items() if value is not None}
        stated = {
            "gracePeriodSeconds": self.grace_seconds,
            "preconditions": given or None,
            "orphanDependents": self.orphan,
            "propagationPolicy": None if self.orphan is not None else self.policy,
            "dryRun": ["All"] if self.dry_run else None,
        }
        return options | {key: value for key, value in stated.items() if value is not None}


IGNORES_READ_ERRORS = "ignoreStoreReadErrorWithClusterBreakingPotential"
_NO_DELETE_OPTIONS = DeletionOptions()


def read_write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """The options of a create, update or patch; ``kind`` is the Kind of options that messages name.

    Raises ApiError 422.
    """
    if not request.query_string and not apply:
        return WriteOptions(manager=_agent(request))
    query = request.query
    manager = request.first("fieldManager")
    force = boolean(query, "force")
    faults: list[FieldError] = []
    if kind == "PatchOptions":
        if apply:
            if not manager:
                faults.append(required("fieldManager", "is required for apply patch"))
        elif force is not None:
            faults.append(forbidden("force", "may not be specified for non-apply patch"))
    faults += _manager_faults(manager)
    dry_run = query.get("dryRun", ())
    faults += _dry_run_faults(dry_run)
    validation = request.first("fieldValidation")
    if validation not in _VALIDATIONS:
        faults.append(not_supported("fieldValidation", validation, _VALIDATIONS))
    if faults:
        raise invalid(kind, "meta.k8s.io", "", faults)
    return WriteOptions(bool(dry_run), manager or _agent(request), validation or "Warn", force, query)


def boolean(query: Query, name: str) -> bool | None:
    """A boolean of a query; None where it is absent."""
    if name not in query:
        return None
    return query[name][0].lower() not in ("false", "0")


def _agent(request: Request) -> str:
    name = request.headers.get("user-agent", "").partition("/")[0][:MANAGER_BYTES]
    return name if name.isprintable() else "".join(filter(str.isprintable, name))


def _manager_faults(manager: str) -> list[FieldError]:
    if len(manager.encode()) > MANAGER_BYTES:
        return [too_long("fieldManager", MANAGER_BYTES)]
    if manager.isprintable():
        return []
    for place, char in enumerate(manager):
        if not char.isprintable():
            where = len(manager[:place].encode())
            return [
                invalid_value(
                    "fieldManager", manager, f"invalid character U+{ord(char):04X} (at position {where})"
                )
            ]
    return []


def _dry_run_faults(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ("All",))]


def read_delete_options(request: Request, body: Any) -> DeletionOptions:
    """The options of a deletion; ``body`` is what was decoded of one, None where there was none.

    Raises ApiError 400, 422.
    """
    if body is not None:
        return checked_delete_options(stated_delete_options(body))
    return checked_delete_options(_from_query(request)) if request.query_string else _NO_DELETE_OPTIONS


def checked_delete_options(options: DeletionOptions) -> DeletionOptions:
    """The options with the policy that they come to. Raises ApiError 422."""
    faults = [*options.faults]
    if options.policy is not None and options.orphan is not None:
        faults.append(
            invalid_value(
                "propagationPolicy",
                options.policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if options.policy is not None and options.policy not in _POLICIES:
        faults.append(not_supported("propagationPolicy", options.policy, (*_POLICIES, "nil")))
    if faults:
        raise invalid("DeleteOptions", "meta.k8s.io", "", faults)
    if options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
        return replace(options, policy=policy)
    return options


def _from_query(request: Request) -> DeletionOptions:
    query = request.query
    dry_run = query.get("dryRun", ())
    return DeletionOptions(
        dry_run=bool(dry_run),
        grace_seconds=parse_int64(request.first("gracePeriodSeconds"))
        if "gracePeriodSeconds" in query
        else None,
        policy=request.first("propagationPolicy") if "propagationPolicy" in query else None,
        orphan=boolean(query, "orphanDependents"),
        uid=request.first("uid") or None,
        resource_version=request.first("resourceVersion") or None,
        ignores_read_errors=boolean(query, IGNORES_READ_ERRORS) or False,
        faults=tuple(_dry_run_faults(dry_run)),
    )


def stated_delete_options(body: dict[str, Any]) -> DeletionOptions:
    """The options that an object states, right or wrong."""
    preconditions = body.get("preconditions") or {}
    dry_run = body.get("dryRun") or []
    return DeletionOptions(
        dry_run=bool(dry_run),
        grace_seconds=body.get("gracePeriodSeconds"),
        policy=body.get("propagationPolicy"),
        orphan=body.get("orphanDependents"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        ignores_read_errors=body.get(IGNORES_READ_ERRORS) or False,
        faults=tuple(_dry_run_faults(dry_run)),
    )
