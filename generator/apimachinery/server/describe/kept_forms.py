"""Documents in the forms that they were asked for, kept within a weight."""

from __future__ import annotations

from collections import OrderedDict

FORMS_BYTES = 64 << 20
ENTRY_BYTES = 1 << 10


class KeptForms:
    """The bytes of documents by name and media type; the longest unused go. One thread at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._names: dict[str, set[str]] = {}
        self.weight = 0

    def get(self, name: str, kind: str) -> bytes | None:
        """What was kept."""
        data = self._kept.get((name, kind))
        if data is not None:
            self._kept.move_to_end((name, kind))
        return data

    def keep(self, name: str, kind: str, data: bytes) -> None:
        """Keeps a form; one that is larger than all may be is not kept."""
        size = len(data) + ENTRY_BYTES
        if size > FORMS_BYTES:
            return
        while self.weight + size > FORMS_BYTES:
            (other, form), old = self._kept.popitem(last=False)
            self.weight -= len(old) + ENTRY_BYTES
            self._names[other].discard(form)
            if not self._names[other]:
                del self._names[other]
        self._kept[name, kind] = data
        self._names.setdefault(name, set()).add(kind)
        self.weight += size

    def drop(self, name: str) -> None:
        """Forgets all forms of a document."""
        for kind in self._names.pop(name, ()):
            self.weight -= len(self._kept.pop((name, kind))) + ENTRY_BYTES
