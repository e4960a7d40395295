"""Per-kind behaviour written by hand, next to the facts that generated ``strategies.py`` files hold.

A resource works without hooks. Who serves a generated API and needs more writes a module ``hooks.py`` next to the
generated modules of a group-version (the generator leaves it alone) with ``HOOKS = {"Kind": Hooks(...)}``. Hooks get
plain JSON at the version of the request; ``prepare_*`` run after the generated ones and change the object in place,
the others only look. ``CONVERSIONS`` in it, a table as in ``conversion.py``, replaces generated conversions one ordered
pair of versions at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.json import Json as Json
from apimachinery.meta.object_meta import NameRule

FieldValue = Callable[[Json], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What a kind does next to its generated strategy.

    ``selectable``: field labels besides the two of metadata, each a dotted path or a function. ``unknown_label`` words
    the refusal of others. ``orphans``: a deletion without a policy leaves dependents.
    ``never_waits``: what depends on an object is not asked after when it is deleted, whatever the policy.
    ``orphan_warning`` is what whoever deletes without a policy is reported then.
    ``grace``: how many seconds a deleted object stays for its own sake; None where it may go at once.
    ``unowned``: top-level fields that no writer of the object owns, as updates leave them alone.
    ``status_keeps``: what a status update takes from the stored object although it is metadata. ``default`` stands
    in for generated defaults. ``terminate``: a first phase of deletion of the kind's own: it marks the object (and
    gets the time), which then stays until its content is gone.
    ``prepare_subresource``: what an update of another subresource than status and scale keeps of the stored object; it
    gets the time.
    ``of_status``: other subresources whose writers own the status and nothing else.
    ``called``: what the refusal of a name that is not there calls the resource, where that is not its own name.
    ``order``: what the rows of a Table are sorted by, where it is not the name.
    ``gated``: fields of the spec that the emulated release has switched off: they are dropped unless they are stored
    (``a.b[*].c{*}.d?.e`` goes through lists and maps, and takes an empty ``d`` away too; ``$.`` begins at the object).
    ``internal_annotations``: those that stand for fields of kube-apiserver's struct, so that metadata alone lacks them.
    ``asks_twice``: kube-apiserver checks a changed object as a new one and once more as an update.
    ``fills_in_when_read``: whether a new object is shown with more than was stored of it, so that the first update
    writes even if it changes nothing.
    ``gives_labels``: whether a new object has labels that nobody sent, which no client is told to mend.
    ``counts_empties``: an empty list or map that is sent changes the spec where there was none.
    ``blank``: what an empty object shows besides its typed form, as conversion fills it in.
    ``annotated``: a version, and how the annotations begin in which other versions keep what only that one has fields
    for: with one of these an object is judged as that version, and only what that version reads of them stays.
    ``status_tables``: the status is shown as a Table, too.
    ``answers_deleted``: DELETE answers the object instead of a Status. ``validates_metadata``: ``validate`` looks at
    metadata itself on create.
    """

    name_rule: NameRule | None = None
    selectable: Mapping[str, str | FieldValue] = field(default_factory=dict)
    unknown_label: str = "field label not supported: {label}"
    orphans: bool = False
    never_waits: bool = False
    orphan_warning: str = ""
    grace: Callable[[Json], int | None] | None = None
    status_keeps: tuple[str, ...] = ()
    unowned: tuple[str, ...] = ()
    terminate: Callable[[Json, str], None] | None = None
    annotated: tuple[str, str] | None = None
    status_tables: bool = True
    answers_deleted: bool = False
    validates_metadata: bool = False
    default: Callable[[Json], None] | None = None
    prepare_create: Callable[[Json], None] | None = None
    prepare_update: Callable[[Json, Json], None] | None = None
    prepare_status: Callable[[Json, Json], None] | None = None
    prepare_subresource: Mapping[str, Callable[[Json, Json, str], None]] = field(default_factory=dict)
    of_status: tuple[str, ...] = ()
    blank: Mapping[str, object] = field(default_factory=dict)
    called: str = ""
    order: Callable[[Json], Any] | None = None
    gated: tuple[str, ...] = ()
    asks_twice: bool = False
    counts_empties: bool = False
    internal_annotations: tuple[str, ...] = ()
    gives_labels: Callable[[Json], bool] | None = None
    fills_in_when_read: Callable[[Json], bool] | None = None
    validate: Callable[[Json, Json | None], list[FieldError]] | None = None
    validate_status: Callable[[Json, Json], list[FieldError]] | None = None
    warnings: Callable[[Json, Json | None], list[str]] | None = None


BUILTIN = Hooks(
    unknown_label='"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
)
CUSTOM = Hooks()
