"""The wrappers for asyncio."""

import asyncio

import pytest

import windrow
from windrow import aio


def test_coroutines_do_what_the_calls_do(tmp_path):
    async def work():
        async with await aio.open(tmp_path, merge_operators={"lists": "windrow.append.2c"}) as db:
            planets = await db.keyspace("planets")
            await planets.put(b"earth", b"1", durability="sync")
            await planets.update((b"%04d" % number, b"x") for number in range(1000))
            assert await planets.get(b"earth") == b"1" and await planets.get(b"pluto", 5) == 5
            assert await planets.get_many([b"earth", b"pluto"]) == [b"1", None]
            assert [key async for key in planets.keys()] == list(planets.wrapped)
            newest_first = planets.items(reverse=True)
            assert await anext(newest_first) == (b"earth", b"1")
            await newest_first.aclose()
            assert await planets.change(b"earth", lambda old: old + b"!") == b"1!"
            await planets.delete(b"0000")
            lists = await db.keyspace("lists")
            await asyncio.gather(*(lists.merge(b"a", b"%d" % number) for number in range(20)))
            assert sorted(map(int, (await lists.get(b"a")).split(b","))) == list(range(20))
            await db.transact(lambda it: it.put(planets.wrapped, b"mars", b"2"))
            batch = db.wrapped.batch()
            batch.delete(planets.wrapped, b"mars")
            await db.write(batch)
            await db.persist()
            await db.checkpoint(tmp_path / "../copy")
            with windrow.Backups(tmp_path / "../backups") as backups:
                assert await db.backup(backups) == 1
            with pytest.raises(windrow.InvalidArgumentError):
                await planets.get(b"")
        with pytest.raises(windrow.ClosedError):
            await planets.get(b"earth")
        async with await aio.open(tmp_path / "../copy") as copy:
            planets = await copy.keyspace("planets")
            assert len(planets.wrapped) == 1000

    asyncio.run(work())


def test_changes_are_followed_and_a_cancelled_wait_loses_none(tmp_path):
    async def work():
        async with await aio.open(tmp_path) as db:
            keyspace = await db.keyspace("main")
            consumer = await db.consumer("copy")
            changes = await consumer.changes(timeout=None)
            assert await changes.wait(0) is None and await changes.wait(0.01) is None

            async def write():
                for number in range(100):
                    await keyspace.put(b"n", b"%d" % number)

            writing = asyncio.create_task(write())
            expected = 0
            while expected < 50:
                waiting = asyncio.create_task(changes.wait())
                for _ in range(expected % 5):
                    await asyncio.sleep(0)
                if expected % 2:
                    waiting.cancel()
                try:
                    change = await waiting
                except asyncio.CancelledError:
                    change = await changes.wait()
                assert change.writes[0].value == b"%d" % expected
                expected += 1
            async for change in changes:
                assert change.writes[0].value == b"%d" % expected
                expected += 1
                if expected == 100:
                    break
            await writing
            await consumer.acknowledge(change.sequence)
            assert await consumer.acknowledged() == change.sequence
            again = await db.changes(change.sequence)
            assert [it.sequence async for it in again] == [change.sequence]
            await again.close()
            with pytest.raises(windrow.ClosedError):
                await again.wait(0)

    asyncio.run(work())


def test_a_transaction_takes_no_coroutine(tmp_path):
    async def work(transaction):
        raise AssertionError("it runs")

    async def program():
        async with await aio.open(tmp_path / "db") as db:
            with pytest.raises(TypeError, match="coroutine"):
                await db.transact(work)

    asyncio.run(program())
