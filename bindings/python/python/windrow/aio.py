"""The classes of Windrow for `asyncio`: each call runs in a thread of the event loop's executor.

    from windrow import aio

    async with await aio.open("folder") as db:
        planets = await db.keyspace("planets")
        await planets.put(b"earth", b"one moon")
        async for name, moons in planets.items():
            print(name, moons)

A call that the system can answer from memory takes longer here than without: a thread costs some microseconds. What these
classes lack is reached by `wrapped`, for example in `await asyncio.to_thread(db.wrapped.flush)`.
"""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import windrow

_T = TypeVar("_T")

#: How many entries an iteration takes from a thread at once.
_TAKEN = 256

#: How many seconds a thread waits for a change by one call. A program that ends waits for its threads.
_STEP = 0.25

#: An iteration takes no more entries after this many bytes.
_TAKEN_BYTES = 1 << 20


async def open(path: str | os.PathLike[str], **options: Any) -> "Database":
    """Opens a database, as `windrow.open` does."""
    return Database(await asyncio.to_thread(windrow.open, path, **options))


class Database:
    """An open database."""

    def __init__(self, wrapped: windrow.Database) -> None:
        self.wrapped = wrapped

    async def keyspace(self, name: str, **options: Any) -> "Keyspace":
        """Opens a keyspace, as `windrow.Database.keyspace` does."""
        return Keyspace(await asyncio.to_thread(self.wrapped.keyspace, name, **options))

    async def transact(self, work: Callable[[windrow.Transaction], _T], **options: Any) -> _T:
        """Runs `work`, which is no coroutine, in a transaction, as `windrow.Database.transact` does."""

        def checked(transaction: windrow.Transaction) -> _T:
            outcome = work(transaction)
            if inspect.iscoroutine(outcome):
                outcome.close()
                raise TypeError("the work of a transaction cannot be a coroutine")
            return outcome

        return await asyncio.to_thread(lambda: self.wrapped.transact(checked, **options))

    async def write(self, batch: windrow.Batch, **options: Any) -> None:
        """Writes a batch, which `wrapped.batch()` makes."""
        await asyncio.to_thread(batch.write, **options)

    async def persist(self) -> None:
        """Makes all writes so far durable."""
        await asyncio.to_thread(self.wrapped.persist)

    async def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Makes a copy of the database."""
        await asyncio.to_thread(self.wrapped.checkpoint, path)

    async def backup(self, backups: windrow.Backups) -> int:
        """Makes a backup. Returns its number."""
        return await asyncio.to_thread(self.wrapped.backup, backups)

    async def changes(self, start: int, *, timeout: float | None = 0.0) -> "Changes":
        """The changes from a sequence number on, as `windrow.Database.changes` gives them."""
        return Changes(await asyncio.to_thread(self.wrapped.changes, start), timeout)

    async def consumer(self, name: str) -> "Consumer":
        """Opens a consumer of changes, as `windrow.Database.consumer` does."""
        return Consumer(await asyncio.to_thread(self.wrapped.consumer, name))

    async def close(self) -> None:
        """Makes all writes durable and closes the database."""
        await asyncio.to_thread(self.wrapped.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Keyspace:
    """A keyspace, or a part of one: `Keyspace(keyspace.wrapped[b"a":b"b"])`."""

    def __init__(self, wrapped: windrow.Keyspace) -> None:
        self.wrapped = wrapped

    async def get(self, key: bytes, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return await asyncio.to_thread(self.wrapped.get, key, default)

    async def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of `keys` in one state."""
        return await asyncio.to_thread(self.wrapped.get_many, keys)

    async def put(self, key: bytes, value: bytes, **options: Any) -> None:
        """Sets the value of `key`."""
        await asyncio.to_thread(self.wrapped.put, key, value, **options)

    async def update(self, entries: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]], **options: Any) -> None:
        """Sets the values of many keys by one atomic write."""
        await asyncio.to_thread(self.wrapped.update, entries, **options)

    async def delete(self, key: bytes, **options: Any) -> None:
        """Removes `key`."""
        await asyncio.to_thread(self.wrapped.delete, key, **options)

    async def merge(self, key: bytes, operand: bytes, **options: Any) -> None:
        """Writes an operand for the merge operator."""
        await asyncio.to_thread(self.wrapped.merge, key, operand, **options)

    async def change(self, key: bytes, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Sets the value of `key` to what `change` makes of it, in one step."""
        return await asyncio.to_thread(self.wrapped.change, key, change)

    def keys(self, *, reverse: bool = False) -> AsyncIterator[bytes]:
        """The keys in order, or against it."""
        return _taken(self.wrapped.keys(), reverse)

    def items(self, *, reverse: bool = False) -> AsyncIterator[tuple[bytes, bytes]]:
        """Pairs of keys and values in order, or against it."""
        return _taken(self.wrapped.items(), reverse)


class Consumer:
    """A named consumer of changes."""

    def __init__(self, wrapped: windrow.Consumer) -> None:
        self.wrapped = wrapped

    async def changes(self, *, timeout: float | None = 0.0) -> "Changes":
        """The changes behind its place. The iteration waits for each for the seconds of `timeout`, for ever if it is `None`."""
        return Changes(await asyncio.to_thread(self.wrapped.changes), timeout)

    async def acknowledged(self) -> int:
        """Its place."""
        return await asyncio.to_thread(self.wrapped.acknowledged)

    async def acknowledge(self, sequence: int) -> None:
        """Notes that it has done with every change up to `sequence`."""
        await asyncio.to_thread(self.wrapped.acknowledge, sequence)


class Changes:
    """The changes of a database, for one coroutine at a time. A wait keeps a thread of the executor. One that is cancelled
    loses nothing."""

    def __init__(self, wrapped: windrow.Changes, timeout: float | None) -> None:
        self.wrapped = wrapped
        self._timeout = timeout
        # The call that runs in a thread, or has run there for a wait that was cancelled.
        self._step: asyncio.Future[windrow.Change | None] | None = None

    async def wait(self, timeout: float | None = None) -> windrow.Change | None:
        """The next change. Waits for it for `timeout` seconds, or for ever without one; `None` if there was none."""
        now = asyncio.get_running_loop().time
        until = None if timeout is None else now() + timeout
        while True:
            left = _STEP if until is None else min(_STEP, max(0.0, until - now()))
            if self._step is None:
                self._step = asyncio.ensure_future(asyncio.to_thread(self.wrapped.wait, left))
            try:
                change = await asyncio.shield(self._step)
            except asyncio.CancelledError:
                raise
            except BaseException:
                self._step = None
                raise
            self._step = None
            if change is not None or (until is not None and now() >= until):
                return change

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> windrow.Change:
        change = await self.wait(self._timeout)
        if change is None:
            raise StopAsyncIteration
        return change

    async def close(self) -> None:
        """Frees what the feed has, and ends a wait."""
        await asyncio.to_thread(self.wrapped.close)
        # The step that nobody awaits after a cancellation ends with an error.
        if self._step is not None:
            await asyncio.gather(self._step, return_exceptions=True)


async def _taken(entries: windrow.Entries[_T], reverse: bool) -> AsyncIterator[_T]:
    direction: Any = reversed if reverse else iter
    iterator = await asyncio.to_thread(direction, entries)
    try:
        while taken := await asyncio.to_thread(iterator.take, _TAKEN, max_bytes=_TAKEN_BYTES):
            for entry in taken:
                yield entry
    finally:
        # After a cancellation a thread may still take entries, and the event loop must not wait for it.
        await asyncio.shield(asyncio.to_thread(iterator.close))
