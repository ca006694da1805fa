"""The change feed: its order, what a change has, waits, consumers that go on, fall behind and begin again."""

import signal
import threading
import time

import pytest

import windrow
from test_lifetime import in_child


@pytest.fixture
def db(tmp_path):
    with opened(tmp_path / "db") as db:
        yield db


def opened(path, **options):
    keyspace = {"memtable_bytes": 64 << 10}
    return windrow.open(path, keyspace=keyspace, merge_operators={"lists": "windrow.append.2c"}, **options)


def described(changes):
    """Changes as pairs of their kind, and their keyspaces or the tuples of their writes."""
    return [(it.kind, [tuple(write) for write in it.writes] or it.keyspaces) for it in changes]


def newest(db):
    with db.snapshot() as snapshot:
        return snapshot.sequence


def test_each_change_comes_once_and_in_order(db):
    consumer = db.consumer("copy")
    changes = consumer.changes()
    assert list(changes) == [] and consumer.name == "copy" and "copy" in repr(consumer)
    main, lists = db.keyspace("main"), db.keyspace("lists")
    main[b"a"] = b"1"
    before = time.time()
    with db.batch() as batch:
        batch.put(main, b"b", b"2")
        batch.put(main, b"c", b"3", ttl=60)
        batch.delete(main, b"a")
        batch.merge(lists, b"d", b"4")
        batch.delete_range(main[b"e":b"f"])
        batch.delete_range(main[b"g":])
    main.rename("people")
    db.keyspace("people").bulk_load([(b"h", b"5")])
    main[b"large"] = bytes(100_000)
    created, _, put, batch, renamed, loaded, large = all_changes = list(changes)
    assert [it.kind for it in all_changes] == [
        "keyspace_created", "keyspace_created", "batch", "batch", "keyspace_renamed", "tables_added", "batch",
    ]
    assert created.keyspaces == ["main"] and created.writes == () and created.first_sequence == created.sequence
    assert described([put]) == [("batch", [("put", "main", b"a", b"1", None, None)])]
    expires_at = batch.writes[1].expires_at
    assert before + 59 < expires_at < time.time() + 61
    assert [tuple(write) for write in batch.writes] == [
        ("put", "main", b"b", b"2", None, None),
        ("put", "main", b"c", b"3", None, expires_at),
        ("delete", "main", b"a", None, None, None),
        ("merge", "lists", b"d", b"4", None, None),
        ("delete_range", "main", b"e", None, b"f", None),
        ("delete_range", "main", b"g", None, None, None),
    ]
    assert batch.sequence == batch.first_sequence + 5 and batch.keyspaces == []
    assert batch.writes is batch.writes and batch.writes[0].value == b"2"
    assert renamed.keyspaces == ["main", "people"] and loaded.keyspaces == ["people"]
    assert large.writes[0] == windrow.Write("put", "people", b"large", bytes(100_000), None, None)
    assert "keyspace_renamed" in repr(renamed)
    with pytest.raises(windrow.InvalidArgumentError, match="no batch"):
        renamed.to_bytes()
    assert list(changes) == []

    # From within a batch it comes as a whole. Other feeds begin where they are told.
    again = list(db.changes(batch.first_sequence + 3))
    assert [it.sequence for it in again] == [it.sequence for it in all_changes[3:]]
    with pytest.raises(windrow.InvalidArgumentError):
        db.changes(newest(db) + 2)
    db.drop_keyspace("people")
    assert described(changes) == [("keyspace_dropped", ["people"])]


def test_a_feed_beside_writers_makes_an_equal_copy(db, tmp_path):
    main = db.keyspace("main")
    following = newest(db) + 1
    changes = db.changes(following, timeout=None)

    def write(writer):
        for number in range(200):
            key = b"%d" % (number % 50)
            match (number + writer) % 5:
                case 0:
                    main.delete(key)
                case 1:
                    main.prefix(key).clear()
                case _:
                    main[key] = b"%d %d" % (writer, number)

    def write_all():
        writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        main.put(b"last", b"one", ttl=1000)

    thread = threading.Thread(target=write_all)
    thread.start()
    with windrow.open(tmp_path / "copy") as copy:
        theirs = copy.keyspace("main")
        for change in changes:
            assert change.first_sequence == following
            following = change.sequence + 1
            copy.batch_from_bytes(change.to_bytes()).write()
            if change.writes[-1].key == b"last":
                break
        thread.join()
        assert following == newest(db) + 1
        assert dict(theirs) == dict(main)
        assert theirs.expires_at(b"last") == main.expires_at(b"last")


def test_a_wait_ends_with_its_time_or_a_change(db):
    keyspace = db.keyspace("main")
    changes = db.changes(newest(db) + 1, timeout=0.01)
    assert list(changes) == [] and changes.wait(0) is None and changes.wait(0.01) is None
    writer = threading.Timer(0.05, keyspace.put, (b"a", b"1"))
    writer.start()
    assert changes.wait().writes[0].key == b"a"
    writer.join()
    keyspace[b"b"] = b"2"
    keyspace[b"c"] = b"3"
    assert [it.writes[0].key for it in changes] == [b"b", b"c"]
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError):
            changes.wait(wrong)
    with pytest.raises(TypeError):
        changes.wait("long")


def test_other_threads_run_while_one_waits(db):
    keyspace = db.keyspace("main")
    changes = db.changes(newest(db) + 1)
    seen = []
    waiting = threading.Thread(target=lambda: seen.append(changes.wait()))
    waiting.start()
    assert sum(range(100_000)) > 0 and seen == []
    keyspace[b"a"] = b"1"
    waiting.join()
    assert seen[0].writes[0].key == b"a"


@pytest.mark.parametrize("close", ["database", "changes"])
def test_a_close_ends_a_wait(db, close):
    changes = db.consumer("one").changes(timeout=None)
    ended = []

    def wait():
        try:
            for _ in changes:
                pass
        except windrow.ClosedError as error:
            ended.append(error)

    waiting = [threading.Thread(target=wait) for _ in range(2)]
    for thread in waiting:
        thread.start()
    time.sleep(0.02)
    (db if close == "database" else changes).close()
    for thread in waiting:
        thread.join()
    assert len(ended) == 2
    changes.close()
    with pytest.raises(windrow.ClosedError):
        changes.wait(0)


def test_a_signal_ends_a_wait(db, keyspace):
    changes = db.changes(newest(db) + 1)

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            changes.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    keyspace[b"a"] = b"1"
    assert changes.wait().writes[0].key == b"a"


def test_a_consumer_goes_on_after_an_open(tmp_path):
    def numbers(changes, count):
        seen = []
        for change in changes:
            seen += [int(write.key) for write in change.writes]
            if len(seen) >= count:
                break
        return seen, change.sequence

    with opened(tmp_path / "db") as db:
        consumer = db.consumer("copy")
        keyspace = db.keyspace("main")
        for number in range(3000):
            keyspace[b"%06d" % number] = bytes(100)
        db.flush()
        changes = consumer.changes()
        seen, place = numbers(changes, 1000)
        assert seen == list(range(1000))
        consumer.acknowledge(place)
        assert numbers(changes, 500)[0] == list(range(1000, 1500))
    # What was not acknowledged comes again.
    with opened(tmp_path / "db") as db:
        (stats,) = db.consumers()
        assert (stats.name, stats.acknowledged, stats.is_behind) == ("copy", place, False) and stats.held_bytes > 0
        consumer = db.consumer("copy")
        assert consumer.acknowledged() == place
        seen, last = numbers(consumer.changes(), 10_000)
        assert seen == list(range(1000, 3000))
        with pytest.raises(windrow.InvalidArgumentError):
            consumer.acknowledge(last + 1)
        consumer.acknowledge(last)
        assert list(consumer.changes()) == []
        db.remove_consumer("copy")
        for call in (consumer.acknowledged, consumer.changes, lambda: db.remove_consumer("copy")):
            with pytest.raises(windrow.NotFoundError):
                call()
        with pytest.raises(windrow.InvalidArgumentError):
            db.consumer("")


def test_a_consumer_falls_behind_and_begins_again(tmp_path):
    events = []
    limits = {"change_retention_bytes": 200 << 10, "change_retention_idle": 3600.0}
    with opened(tmp_path / "db", listener=events.append, **limits) as db:
        consumer = db.consumer("copy")
        changes = consumer.changes()
        keyspace = db.keyspace("main")
        while not db.consumers()[0].is_behind:
            for number in range(300):
                keyspace[b"%d" % number] = bytes(200)
            db.flush()
        calls = [
            lambda: changes.wait(0),
            lambda: next(changes),
            consumer.changes,
            lambda: consumer.acknowledge(1),
            lambda: db.changes(1),
        ]
        for call in calls:
            with pytest.raises(windrow.FellBehindError, match="snapshot"):
                call()

        db.remove_consumer("copy")
        consumer = db.consumer("copy")
        keyspace[b"before"] = b"1"
        with db.snapshot() as snapshot:
            copy = dict(keyspace.at(snapshot))
            noted = snapshot.sequence
        with pytest.raises(windrow.ClosedError):
            snapshot.sequence
        keyspace[b"after"] = b"2"
        for change in consumer.changes():
            if change.sequence > noted:
                assert [write.key for write in change.writes] == [b"after"]
                copy.update((write.key, write.value) for write in change.writes)
            consumer.acknowledge(change.sequence)
        assert copy == dict(keyspace)
    behind = [it for it in events if it["event"] == "consumer_fell_behind"]
    assert [it["consumer"] for it in behind] == ["copy"]


def test_a_change_outlives_its_feed_and_its_database(tmp_path):
    with opened(tmp_path / "db") as db:
        with db.consumer("one").changes() as changes:
            db.keyspace("main")[b"a"] = b"1"
            created, put = changes
    assert created.keyspaces == ["main"] and put.writes[0].value == b"1"
    with pytest.raises(windrow.ClosedError):
        next(changes)


def test_a_child_of_a_fork_has_no_feed(db):
    consumer = db.consumer("one")
    changes = consumer.changes(timeout=None)

    def in_the_child():
        for call in (changes.wait, lambda: next(changes), consumer.changes, lambda: consumer.acknowledge(0), db.consumers):
            with pytest.raises(windrow.ForkError):
                call()
        changes.close()

    assert in_child(in_the_child)
    db.keyspace("main")
    assert changes.wait().keyspaces == ["main"]
