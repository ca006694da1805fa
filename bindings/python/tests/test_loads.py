"""Bulk loads, merged iterators and prepared transactions."""

import os
import threading

import pytest

import windrow


def numbers(count, first=0):
    for number in range(first, first + count):
        yield b"%06d" % number, b"v" * (number % 300)


def test_bulk_loads(db, keyspace):
    for count in (0, 1, 10_000):
        assert keyspace.bulk_load(numbers(count)) == count
        assert len(keyspace) == count
        keyspace.clear()
    assert keyspace.bulk_load(dict(numbers(1000))) == 1000
    assert keyspace[b"000299"] == b"v" * 299
    copy = db.keyspace("copy")
    assert copy.bulk_load(keyspace) == 1000 and copy == keyspace
    part = db.keyspace("parts").prefix(b"part/")
    assert part.bulk_load([(b"a", bytearray(b"1")), (memoryview(b"b"), b"2")]) == 2
    assert dict(db.keyspace("parts")) == {b"part/a": b"1", b"part/b": b"2"}
    with pytest.raises(windrow.InvalidArgumentError):
        db.keyspace("parts")[b"b":].bulk_load([(b"a", b"1")])


def test_entries_in_any_order_are_sorted(keyspace):
    pairs = [(b"%06d" % (number * 7919 % 2500), b"%d" % number) for number in range(5000)]
    with pytest.raises(windrow.InvalidArgumentError):
        keyspace.bulk_load(pairs)
    assert not keyspace
    assert keyspace.bulk_load_unsorted(pairs, memory_bytes=16 << 10) == 2500
    assert keyspace[b"000000"] == b"2500"


def test_a_load_that_fails_loads_nothing(db, keyspace):
    def source(before, failure):
        yield from numbers(before)
        failure()
        yield from numbers(100_000, before)

    def fail():
        raise ZeroDivisionError

    for before in (0, 1, 5000):
        with pytest.raises(ZeroDivisionError):
            keyspace.bulk_load(source(before, fail))
        with pytest.raises(TypeError):
            keyspace.bulk_load([*numbers(before), ("text", b"")])
        # The load ends long before the source does.
        with pytest.raises(windrow.InvalidArgumentError):
            keyspace.bulk_load((b"same", b"x" * 1000) for _ in range(10_000))
        for wait in (db.close, db.wait_idle):
            with pytest.raises(windrow.InvalidArgumentError, match="source of a bulk load"):
                keyspace.bulk_load(source(before, wait))
    assert not keyspace
    db.wait_idle()
    keyspace.bulk_load(numbers(10))
    assert len(keyspace) == 10


def test_a_source_may_load_and_close_other_databases(tmp_path, keyspace):
    def source():
        with windrow.open(tmp_path / "other") as other:
            entries = other.keyspace("main")
            entries.bulk_load(numbers(1000))
            yield from entries.items()

    assert keyspace.bulk_load(source()) == 1000


def test_a_close_by_another_thread_ends_a_load(tmp_path):
    db = windrow.open(tmp_path)
    main = db.keyspace("main")
    closer = threading.Thread(target=db.close)

    def source():
        yield from numbers(2000)
        closer.start()
        while not db.closed:
            pass
        yield from numbers(100_000, 2000)

    with pytest.raises(windrow.ClosedError):
        main.bulk_load(source())
    closer.join()
    with windrow.open(tmp_path) as again:
        assert not again.keyspace("main")


def test_a_fork_in_a_source_harms_nothing(keyspace):
    children = []

    def source():
        yield from numbers(2000)
        children.append(os.fork())
        yield from numbers(2000, 2000)

    try:
        loaded = keyspace.bulk_load(source())
    except windrow.ForkError:
        os._exit(0 if children == [0] else 1)
    except BaseException:
        os._exit(2)
    if children == [0]:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert loaded == len(keyspace) == 4000


def test_merged_items_are_those_of_all_keyspaces(db, keyspace):
    other = db.keyspace("other")
    keyspace.update({b"a": b"1", b"b": b"2", b"d": b"4"})
    other.update({b"b": b"9", b"c": b"x" * 5000})

    def found(**options):
        return [(one is other, key, value[:1]) for one, key, value in db.merged_items(keyspace, other, **options)]

    everything = [
        (False, b"a", b"1"), (False, b"b", b"2"), (True, b"b", b"9"), (True, b"c", b"x"), (False, b"d", b"4")
    ]  # fmt: skip
    assert found() == everything
    assert found(reverse=True) == everything[::-1]
    assert found(start=b"b", stop=b"d") == everything[1:4]
    assert list(db.merged_items()) == []
    other.update((b"n%05d" % number, b"v" * 100) for number in range(2000))
    assert len(found()) == 2005
    with db.merged_items(keyspace, other) as items:
        assert next(items)[1] == b"a"
    assert list(items) == []
    for part in (keyspace[b"a":], keyspace.prefix(b"a")):
        with pytest.raises(windrow.InvalidArgumentError, match="whole keyspaces"):
            db.merged_items(part)
    items = db.merged_items(keyspace)
    db.close()
    with pytest.raises(windrow.ClosedError):
        next(items)


def test_prepared_transactions_survive_an_open(tmp_path):
    with windrow.open(tmp_path) as db:
        main = db.keyspace("main")
        for key, name in ((b"a", "first"), (b"b", "second")):
            transaction = db.transaction()
            transaction.put(main, key, b"1")
            transaction.prepare(name)
            with pytest.raises(windrow.ClosedError):
                transaction.prepare(name)
        transaction = db.transaction()
        transaction.put(main, b"c", b"1")
        with pytest.raises(windrow.AlreadyExistsError):
            transaction.prepare("first")
        with pytest.raises(windrow.ConflictError):
            main[b"a"] = b"2"
    with windrow.open(tmp_path) as db:
        main = db.keyspace("main")
        assert db.prepared_names() == ["first", "second"] and not main
        db.commit_prepared("first", durability="sync")
        db.roll_back_prepared("second")
        assert dict(main) == {b"a": b"1"}
        for end in (db.commit_prepared, db.roll_back_prepared):
            with pytest.raises(windrow.NotFoundError, match="first"):
                end("first")
        main[b"b"] = b"2"


def test_put_if_absent(keyspace):
    assert keyspace.put_if_absent(b"a", b"1") and not keyspace.put_if_absent(b"a", b"2")
    assert keyspace[b"a"] == b"1"
    assert keyspace.prefix(b"b/").put_if_absent(b"a", b"2") and keyspace[b"b/a"] == b"2"
    with pytest.raises(windrow.InvalidArgumentError):
        keyspace[b"b":].put_if_absent(b"a", b"1")
