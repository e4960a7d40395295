"""The governor: what clients make the server hold, counted in one place, and the most that it may be.

Every sort of thing that grows with what clients send or do not read has an *account* here: heads and bodies that are
on their way or in a handler's hands, objects that are being worked on, answers that are not sent yet, backlogs of
watches, lists kept joined, connections, tunnels. An account has a limit of its own, and all of them together have one,
so that an attack with many kinds at once is held by the second where none of the first is passed. Past a limit nothing
is kept: the client is answered 429, or its connection ends.

What others count already is *asked* for it instead (the recent events of the watch cache, which lie below).

A ``Holding`` is a part of an account that is given back when nobody has the holding any more, whatever became of the
request that it was for. It is a user's, and a user leaves the last quarter of an account to others: who sends sixty
large bodies at a time is answered 429 himself, and not whoever comes next.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from apimachinery.http.flows import on_behalf_of

TOTAL_BYTES = 1 << 30
SMALL_BYTES = 8 << 10
"""What is smaller is bounded by how many there can be."""
HEAD_BYTES = 32 << 20
BODY_BYTES = 192 << 20
WORK_BYTES = 512 << 20
ANSWER_BYTES = 384 << 20
CONNECTION_BYTES = 256 << 20
TUNNELS_BYTES = 256 << 20
TUNNELED_BYTES = 192 << 20
VALUE_BYTES = 100
"""What a value takes at most when it is read, and the key before it."""
BINARY_FACTOR = 64
"""How much larger an object may be in memory than in a form where an empty list is one byte."""
TRIMMED_BYTES = 64 << 20
"""After so much was held and given back, the allocator's free pages are given back to the system."""


class Crowded(Exception):
    """Something would be held that there is no room for now; it may be asked again."""


class Account:
    """How many bytes of one sort are held, and how many may be."""

    __slots__ = ("_governor", "_of_users", "held", "limit", "name", "refused")
    # What an account has of its own: so much of its limit is there for it whatever the others hold.
    OWN_SHARE = 8
    KEPT_SHARE = 4

    def __init__(self, name: str, limit: int, governor: Governor | None = None) -> None:
        self.name = name
        self.limit = limit
        self.held = 0
        self.refused = 0
        self._governor = governor
        self._of_users: dict[str, int] = {}

    def fits(self, size: int) -> bool:
        """Whether there is room for ``size`` more; a refusal is counted."""
        held = self.held + size
        if held * self.OWN_SHARE <= self.limit:
            return True
        # The sum over all accounts is asked last, since it takes longest.
        if held <= self.limit and (self._governor is None or self._governor.fits(size)):
            return True
        self.refused += 1
        return False

    def leaves_enough(self, user: str, size: int) -> bool:
        """Whether a user who holds so much more leaves some to others; a refusal is counted. The server itself may hold
        all of it."""
        # The empty user is the server itself, which no limit a user must bind.
        if not user or self._of_users.get(user, 0) + size <= self.limit - self.limit // self.KEPT_SHARE:
            return True
        self.refused += 1
        return False

    def count(self, user: str, size: int) -> None:
        """Counts what a user holds, or gives back."""
        # No other thread can run between these steps: holdings are given back on any thread.
        if user not in self._of_users:
            self._of_users[user] = 0
        self._of_users[user] += size
        if not self._of_users[user]:
            del self._of_users[user]

    @property
    def is_crowded(self) -> bool:
        """Whether there is more than half of what there may be."""
        return self.held > self.limit // 2

    def take(self, size: int) -> bool:
        """Counts ``size`` where there is room for it; says whether."""
        if not self.fits(size):
            return False
        self.held += size
        return True

    def give(self, size: int) -> None:
        """Counts that so much is no longer held."""
        self.held -= size

    def holding(self, size: int) -> Holding:
        """A part of it. Raises Crowded."""
        holding = Holding(self, on_behalf_of.get())
        holding.grow(size)
        return holding


class Holding:
    """A part of an account, given back with the last reference to it."""

    __slots__ = ("_account", "_user", "size")

    def __init__(self, account: Account, user: str = "") -> None:
        self._account = account
        self._user = user
        self.size = 0

    def grow(self, size: int) -> None:
        """Takes more. Raises Crowded."""
        account = self._account
        if not account.leaves_enough(self._user, size) or not account.take(size):
            raise Crowded(account.name)
        account.count(self._user, size)
        self.size += size

    def set(self, size: int) -> None:
        """Corrects the size, once it is known."""
        self._account.held += size - self.size
        self._account.count(self._user, size - self.size)
        self.size = size

    def __del__(self) -> None:
        self._account.held -= self.size
        self._account.count(self._user, -self.size)


class Governor:
    """All accounts of a server."""

    def __init__(self, total: int = TOTAL_BYTES) -> None:
        self.total = total
        self.accounts: dict[str, Account] = {}
        self._asked: dict[str, Callable[[], int]] = {}
        self._peak = self._given = self._last = 0
        self.heads = self.add(Account("heads", HEAD_BYTES, self))
        self.bodies = self.add(Account("bodies", BODY_BYTES, self))
        self.work = self.add(Account("work", WORK_BYTES, self))
        self.answers = self.add(Account("answers", ANSWER_BYTES, self))
        self.connections = self.add(Account("connections", CONNECTION_BYTES, self))
        self.tunnels = self.add(Account("tunnels", TUNNELS_BYTES, self))
        self.tunneled = self.add(Account("tunneled", TUNNELED_BYTES, self))

    def add(self, account: Account) -> Account:
        """Counts an account with the others."""
        self.accounts[account.name] = account
        return account

    def ask(self, name: str, held: Callable[[], int]) -> None:
        """Counts what somebody else bounds."""
        self._asked[name] = held

    def held(self) -> dict[str, int]:
        """What is held, by name."""
        counted = {name: account.held for name, account in self.accounts.items()}
        return counted | {name: held() for name, held in self._asked.items()}

    def fits(self, size: int) -> bool:
        """Whether all accounts together have room for so much more."""
        held = sum(self.held().values())
        self._peak = max(self._peak, held + size)
        return held + size <= self.total

    def should_trim(self) -> bool:
        """Whether much has been given back since this was last true."""
        held = sum(self.held().values())
        # Much at once, or little by little: what is left free between others is not all used again.
        self._given += max(0, self._last - held)
        self._last = held
        # Trimming walks the whole heap, so it waits until it gives back much.
        if max(self._peak - held, self._given) < TRIMMED_BYTES:
            self._peak = max(self._peak, held)
            return False
        self._peak, self._given = held, 0
        return True


def weight_of(data: bytes, *, binary: bool = False) -> int:
    """What an object may take in memory that is read from these bytes: of text at most so much for each value, of which
    no two are without a comma, a colon, a bracket or a line end between them."""
    if binary:
        return BINARY_FACTOR * len(data)
    values = len(data) - len(data.translate(None, b",:{["))  # in one pass
    return len(data) + VALUE_BYTES * values


def _allocator() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no glibc
        return None


_trim = _allocator()


def trim() -> None:
    """Returns free memory to the system; releases the interpreter's lock meanwhile, so never call it on the loop."""
    if _trim is not None:
        _trim(0)
