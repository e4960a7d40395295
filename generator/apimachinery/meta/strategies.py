"""How the objects of a kind are written: the facts by which one handler serves all kinds.

Generated ``strategies.py`` files hold ``STRATEGIES``, kind → ``Strategy``. The order of a create is: decode and
default, ``admit``, metadata filled in by the server (uid, times), ``prepare_create``, validation. The three
functions change the object in place and never fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apimachinery.meta.json import Json as Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One kind's facts.

    - ``generation``: the fields (dots between keys) whose change raises ``metadata.generation``; ``None`` where the
      kind has no generation. It starts at 1.
    - ``status``: what a new object's status is, whatever the request says; ``None`` where the kind has none, or
      clients write it themselves. Updates of the object keep the stored status, updates of the ``status``
      subresource keep everything else. With ``keeps_status_on_create`` the status sent on create stays.
    - ``create_on_update``: a PUT may create. ``unconditional_update``: a PUT may leave out the resourceVersion.
    - ``name``: the rule its objects' names keep, one of ``meta.names.NAME_RULES``.
    - ``requester``: the server writes who asks into ``spec`` (username, uid, groups, extra).
    - ``admit``: what built-in admission adds on create. ``prepare_create`` gets the new object,
      ``prepare_update`` the new and the stored one.
    """

    generation: tuple[str, ...] | None = None
    status: Json | None = None
    keeps_status_on_create: bool = False
    create_on_update: bool = False
    unconditional_update: bool = True
    requester: bool = False
    name: str = "dns-subdomain"
    admit: Callable[[Json], None] | None = None
    prepare_create: Callable[[Json], None] | None = None
    prepare_update: Callable[[Json, Json], None] | None = None
