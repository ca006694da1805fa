"""Objects that are made and dropped many times leave nothing behind, neither in Python's memory nor in the process."""

import gc
import tracemalloc

import windrow


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def makers(db, keyspace, tmp_path):
    snapshot = db.snapshot()

    def error():
        try:
            keyspace[b""]
        except windrow.Error as failure:
            assert failure.key is None

    def conflict():
        transaction = db.transaction()
        transaction.get(keyspace, b"count")
        transaction.put(keyspace, b"count", b"1")
        keyspace[b"count"] = b"2"
        try:
            transaction.commit()
        except windrow.ConflictError as failure:
            assert failure.key == b"count"

    def transaction():
        with db.transaction() as it:
            it.put(keyspace, b"b", b"2")
            next(it.items(keyspace))

    def batch():
        it = db.batch()
        it.put(keyspace, b"b", b"2" * 100)

    def walk():
        items = iter(keyspace.items())
        next(items), next(items), items.prev()

    return {
        "iterators": (100_000, walk),
        "views": (100_000, lambda: keyspace.prefix(b"a")[b"b":].at(snapshot)),
        "values": (100_000, lambda: memoryview(keyspace.get_pinned(b"large"))),
        "gets": (200_000, lambda: keyspace.get(b"large")),
        "errors": (100_000, error),
        "snapshots": (100_000, lambda: keyspace.at(db.snapshot()).get(b"a")),
        "batches": (50_000, batch),
        "transactions": (20_000, transaction),
        "conflicts": (20_000, conflict),
        "keyspaces": (50_000, lambda: db.keyspace("main")),
        "arrays": (10_000, lambda: list(keyspace._scan_arrays(10))),
        "opens": (50, lambda: windrow.open(tmp_path / "other").keyspace("main")),
    }


def test_nothing_grows(tmp_path):
    with windrow.open(tmp_path / "db", keyspace={"memtable_bytes": 1 << 20}, memory_budget=16 << 20) as db:
        keyspace = db.keyspace("main")
        keyspace.update({b"a": b"1", b"b": b"2", b"large": b"x" * 10000})
        db.flush()
        for name, (count, make) in makers(db, keyspace, tmp_path).items():
            for _ in range(count // 10):
                make()
            gc.collect()
            tracemalloc.start()
            resident, traced = resident_bytes(), tracemalloc.get_traced_memory()[0]
            for _ in range(count // 10):
                make()
            gc.collect()
            traced = tracemalloc.get_traced_memory()[0] - traced
            tracemalloc.stop()
            for _ in range(count - count // 5):
                make()
            gc.collect()
            grown = resident_bytes() - resident
            print(f"{name}: {count} times, {traced} traced bytes, {grown} resident bytes")
            assert traced < 4096, name
            # The memory budget and the allocator take some; an object of 64 bytes that stays takes more.
            assert grown < 6 << 20, name
