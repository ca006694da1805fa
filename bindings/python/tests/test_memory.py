"""Objects that are made and dropped many times leave nothing behind, neither in Python's memory nor in the process."""

import gc
import os
import shutil
import tempfile
import time
import tracemalloc

import windrow


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


# What the memory budget of a database and the allocator take and give back as they like, in bytes.
SLACK = 4 << 20


def does_not_grow(name, count, make, size=64, is_traced=True):
    """Makes something often. Nothing stays of it, neither in Python's memory, if it is traced, nor in the process.

    What the first half leaves may be kept for the next ones; the second half may leave nothing but the slack. `size` is less
    than what one would leave if it left anything, so that a leak is found whatever the slack if the count is large.
    """
    began = time.monotonic()
    for _ in range(count // 10):
        make()
    traced = traced_bytes(count // 10, make) if is_traced else 0
    residents = [resident_bytes()]
    for _ in range(2):
        for _ in range(count // 2):
            make()
        gc.collect()
        residents.append(resident_bytes())
    first, second = residents[1] - residents[0], residents[2] - residents[1]
    print(
        f"{name}: {count} times in {time.monotonic() - began:.0f} s, {traced} traced bytes; "
        f"the first half left {first} resident bytes, the second {second}"
    )
    # Half of what the smallest object has, for each: the interpreter keeps some of its own.
    assert traced < max(4096, 8 * (count // 10)), name
    assert second < SLACK + size * (count // 2), name


def traced_bytes(count, make):
    """What stays in Python's memory."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(count):
        make()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def times(count):
    """How often something is made: as often as the environment variable WINDROW_TIMES says, or without it `count` times."""
    return int(os.environ.get("WINDROW_TIMES", count))


def small(path):
    return windrow.open(path, keyspace={"memtable_bytes": 1 << 20}, memory_budget=16 << 20)


def test_errors_leave_nothing(keyspace):
    """memory.sh makes a million errors, and as many cursors and opens."""

    def error():
        try:
            keyspace[b""]
        except windrow.InvalidArgumentError as failure:
            assert failure.key is None

    does_not_grow("errors", times(100_000), error, size=8)


def test_cursors_leave_nothing(tmp_path):
    def cursor():
        with iter(keyspace.items()) as items:
            next(items)
            assert len(next(items)[1]) == 10000

    with small(tmp_path / "db") as db:
        keyspace = db.keyspace("main")
        keyspace.update({b"a": b"1", b"large": b"x" * 10000})
        db.flush()
        does_not_grow("cursors", times(100_000), cursor, size=16)


def test_opens_leave_nothing(tmp_path):
    # In memory if the system has such a place: an open there waits for no disk.
    folder = tempfile.mkdtemp(dir="/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path / "other"

    def open_and_close():
        with small(folder) as db:
            db.keyspace("main")

    try:
        does_not_grow("opens", times(2000), open_and_close, size=256)
    finally:
        shutil.rmtree(folder)


def makers(db, keyspace):
    snapshot = db.snapshot()

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

    def failed_load():
        try:
            keyspace.bulk_load([(b"", b"")])
        except windrow.InvalidArgumentError:
            pass

    def changes():
        with db.changes(db.snapshot().sequence + 1) as changes:
            keyspace[b"b"] = b"2"
            change = next(changes)
            assert change.writes[0].value == b"2" and len(change.to_bytes()) > 1

    def walk():
        items = iter(keyspace.items())
        next(items), next(items), items.prev()

    return {
        "iterators": (100_000, walk),
        "views": (100_000, lambda: keyspace.prefix(b"a")[b"b":].at(snapshot)),
        "values": (100_000, lambda: memoryview(keyspace.get_pinned(b"large"))),
        "gets": (200_000, lambda: keyspace.get(b"large")),
        "snapshots": (100_000, lambda: keyspace.at(db.snapshot()).get(b"a")),
        "batches": (50_000, batch),
        "transactions": (20_000, transaction),
        "conflicts": (20_000, conflict),
        "merged items": (20_000, lambda: next(db.merged_items(keyspace, keyspace))),
        "changes": (1_000, changes),
        "failed loads": (2_000, failed_load),
        "keyspaces": (50_000, lambda: db.keyspace("main")),
        "arrays": (10_000, lambda: list(keyspace._scan_arrays(10))),
    }


class Last:
    """The last operand."""

    name = "test.last"

    def merge(self, key, base, operands):
        return operands[-1]


def test_nothing_grows(tmp_path):
    with small(tmp_path / "db") as db:
        keyspace = db.keyspace("main")
        keyspace.update({b"a": b"1", b"b": b"2", b"large": b"x" * 10000})
        db.flush()
        for name, (count, make) in makers(db, keyspace).items():
            does_not_grow(name, count, make)
    options = {"merge_operators": {"main": Last()}, "listener": lambda event: None, "create_if_missing": False}

    def refused():
        try:
            windrow.open(tmp_path / "missing", **options)
        except windrow.NotFoundError:
            pass

    # The threads of the listeners end a little later. A trace that ends meanwhile crashes CPython before 3.12.9 (gh-128679).
    does_not_grow("options with functions", 10_000, refused, is_traced=False)
    with windrow.open(tmp_path / "merges", merge_operators={"main": Last()}) as db:
        keyspace = db.keyspace("main")
        keyspace.merge(b"a", b"1")
        does_not_grow("merges in Python", 50_000, lambda: keyspace[b"a"])
    # What nobody closes is closed when it is dropped.
    does_not_grow("forgotten databases", 50, lambda: windrow.open(tmp_path / "other").keyspace("main"))
