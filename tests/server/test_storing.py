"""Large writes of a user reach the storage in turn, and those of others do not wait for all of them; who changes an
object that is being written waits for that."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from apimachinery.server.write.storing import USER_BYTES, KeysUnderWay, Storing

LARGE = USER_BYTES * 3 // 4


class Writing:
    """Writes that end when they are told to, in the order in which they began."""

    def __init__(self) -> None:
        self.storing = Storing()
        self.began: list[str] = []
        self._going: list[asyncio.Event] = []

    def start(self, user: str, size: int) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self.storing.in_turn(user, size, self._write(user)))

    async def _write(self, user: str) -> None:
        self.began.append(user)
        going = asyncio.Event()
        self._going.append(going)
        await going.wait()

    def end_first(self) -> None:
        self._going.pop(0).set()


def test_a_user_has_so_much_under_way_and_others_pass():
    async def story() -> None:
        writing = Writing()
        tasks = [writing.start("hostile", LARGE) for _ in range(3)]
        await asyncio.sleep(0)
        tasks.append(writing.start("quiet", LARGE))
        await asyncio.sleep(0)
        assert writing.began == ["hostile", "quiet"]
        cancelled = tasks.pop(1)
        cancelled.cancel()
        writing.end_first()
        for _ in range(5):
            await asyncio.sleep(0)
        assert writing.began == ["hostile", "quiet", "hostile"]
        writing.end_first()
        writing.end_first()
        await asyncio.gather(*tasks)
        assert cancelled.cancelled() and not writing.storing._users

    asyncio.run(story())


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 2 * USER_BYTES)), max_size=30))
def test_all_are_written_in_the_order_of_their_user(wanted):
    async def story() -> None:
        storing, order, under_way = Storing(), [], {"a": 0, "b": 0}

        async def write(number: int, user: str, size: int) -> None:
            order.append((user, number))
            under_way[user] += size
            assert under_way[user] <= USER_BYTES or under_way[user] == size
            await asyncio.sleep(0)
            under_way[user] -= size

        await asyncio.gather(
            *(storing.in_turn(user, size, write(n, user, size)) for n, (user, size) in enumerate(wanted))
        )
        for user in "ab":
            assert [n for each, n in order if each == user] == [
                n for n, (each, _) in enumerate(wanted) if each == user
            ]
        assert not storing._users

    asyncio.run(story())


def test_changes_of_one_object_compute_once_each():
    """The second one reads what the first one has stored."""

    async def story() -> None:
        keys, log, stored = KeysUnderWay(), [], 0

        async def change(name: str, *, writes: bool = True) -> None:
            nonlocal stored
            if not keys.is_free("k"):
                await keys.turn("k")
            log.append((name, stored))
            if not writes:
                return
            keys.begin("k")
            await asyncio.sleep(0)
            stored += 1
            keys.end("k")

        tasks = [asyncio.ensure_future(change(name, writes=name != "c")) for name in "abcde"]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert log == [("a", 0), ("b", 1), ("c", 2), ("e", 2)] and stored == 3
        assert keys.is_free("k")

    asyncio.run(story())


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), max_size=20))
def test_everybody_has_a_turn_whoever_writes_late_or_goes(wanted):
    async def story() -> None:
        keys, had = KeysUnderWay(), []

        async def change(number: int, writes: bool, late: int) -> None:
            if not keys.is_free("k"):
                await keys.turn("k")
            had.append(number)
            for _ in range(late):
                await asyncio.sleep(0)
            if writes:
                keys.begin("k")
                try:
                    await asyncio.sleep(0)
                finally:
                    keys.end("k")

        keys.begin("k")
        tasks = [asyncio.ensure_future(change(n, writes, late)) for n, (_, writes, late) in enumerate(wanted)]
        await asyncio.sleep(0)
        goes = [n for n, (goes, _, _) in enumerate(wanted) if goes]
        for number in goes:
            tasks[number].cancel()
        keys.end("k")
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        assert sorted(had) == [n for n in range(len(wanted)) if n not in goes]
        await asyncio.sleep(0)
        assert keys.is_free("k")

    asyncio.run(story())
