"""Programs of users, which mypy must accept in strict mode: it is not run."""

from collections.abc import Iterable, Mapping, MutableMapping

from typing_extensions import assert_type

import windrow
from windrow import aio


def reads(db: windrow.Database) -> None:
    keyspace = db.keyspace("main", compression="lz4", bits_per_key=12.5)
    assert_type(keyspace[b"a"], bytes)
    assert_type(keyspace[b"a":b"b"], windrow.Keyspace)
    assert_type(keyspace.get(b"a"), bytes | None)
    assert_type(keyspace.get(bytearray(b"a"), 5), bytes | int)
    assert_type(keyspace.pop(b"a", None), bytes | None)
    assert_type(keyspace.prefix(b"a").at(db.snapshot()), windrow.View)
    names: Iterable[bytes] = keyspace
    mapping: MutableMapping[bytes, bytes] = keyspace
    readable: Mapping[bytes, bytes] = keyspace.at(db.snapshot())
    assert_type(keyspace.pop(b"a", default=5), bytes | int)
    assert_type(keyspace.keys() & {b"a"}, set[bytes])
    pairs: list[tuple[bytes, bytes]] = list(reversed(keyspace.items()))
    assert_type(iter(keyspace.values()).prev(), bytes)
    print(names, mapping, readable, pairs, dict(keyspace.items()))


class Longest:
    name = "users.longest"

    def merge(self, key: bytes, base: bytes | None, operands: list[bytes]) -> bytes:
        return max([base or b"", *operands], key=len)


def functions() -> None:
    with windrow.open("folder", merge_operators={"a": Longest(), "b": "windrow.least"}, listener=print) as db:
        main = db.keyspace("main")
        assert_type(main.bulk_load([(b"a", bytearray(b"b"))]), int)
        for keyspace, key, value in db.merged_items(main, db.keyspace("other"), reverse=True):
            assert_type(keyspace, windrow.Keyspace)
            print(key + value)
        db.transaction().prepare("one")
        db.commit_prepared("one", durability="sync")


def writes(db: windrow.Database) -> int:
    keyspace = db.keyspace("main")
    keyspace[memoryview(b"a")] = bytearray(b"b")
    del keyspace[b"a":]
    with db.batch() as batch:
        batch.put(keyspace, b"a", b"b", ttl=1.5)

    def work(transaction: windrow.Transaction) -> int:
        return len(transaction.get(keyspace, b"a", b""))

    return db.transact(work, isolation="snapshot", durability="sync")


def backups(db: windrow.Database) -> None:
    with windrow.Backups("backups", bytes_per_second=1 << 20) as backups:
        assert_type(db.backup(backups), int)
        for backup in backups.list():
            assert_type(backup, windrow.Backup)
            assert_type(backup.error, windrow.Error | None)
        assert_type(backups.keep_newest(2), list[int])
        backups.restore("restored", number=1)


def changes(db: windrow.Database) -> None:
    consumer = db.consumer("copy")
    for change in consumer.changes(timeout=None):
        assert_type(change, windrow.Change)
        if change.kind == "batch":
            for write in change.writes:
                assert_type(write, windrow.Write)
                assert_type(write.end, bytes | None)
        consumer.acknowledge(change.sequence)
    assert_type(db.changes(db.snapshot().sequence + 1).wait(1.5), windrow.Change | None)
    assert_type([it.held_bytes for it in db.consumers()], list[int])
    with windrow.Secondary("folder", cache_bytes=1 << 20) as secondary:
        assert_type(secondary.catch_up(), windrow.Database)


async def waits() -> int:
    async with await aio.open("folder") as db:
        keyspace = await db.keyspace("main")
        return len([pair async for pair in keyspace.items(reverse=True)])
