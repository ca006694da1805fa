"""Closes, threads, forks, copies: what objects of a database must not do, and that the interpreter goes on meanwhile."""

import copy
import gc
import os
import pickle
import sys
import threading
import time

import pytest

import windrow


def objects(db):
    """One object of each class, and a call of it."""
    keyspace = db.keyspace("main")
    keyspace[b"a"] = b"1"
    batch, snapshot, transaction = db.batch(), db.snapshot(), db.transaction()
    batch.put(keyspace, b"b", b"2")
    transaction.put(keyspace, b"c", b"3")
    view, names, pairs = keyspace.at(snapshot), iter(keyspace), transaction.items(keyspace)
    consumer, changes = db.consumer("one"), db.changes(1)
    return {
        consumer: consumer.acknowledged,
        changes: changes.wait,
        consumer.changes: lambda: consumer.acknowledge(0),
        consumer.acknowledge: consumer.changes,
        db: db.keyspace_names,
        keyspace.prefix: lambda: keyspace[b"a"],
        batch: batch.write,
        snapshot: lambda: keyspace.at(snapshot),
        view.prefix: lambda: view.get(b"a"),
        names: names.__next__,
        transaction: lambda: transaction.get(keyspace, b"a"),
        pairs: pairs.__next__,
        keyspace.items(): lambda: list(keyspace.items()),
        transaction.commit: transaction.commit,
        keyspace.put: lambda: keyspace.put(b"a", b"1"),
        keyspace.scan_arrays: lambda: next(keyspace._scan_arrays(5)),
    }


def test_use_after_close_is_an_error_in_each_thread(db):
    calls = objects(db)
    db.close()
    db.close()
    assert db.closed
    failures = []

    def use():
        for call in calls.values():
            with pytest.raises(windrow.ClosedError):
                call()
            failures.append(call)

    use()
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(failures) == 2 * len(calls)


def test_a_close_beside_other_threads_is_an_error_there(tmp_path):
    db = windrow.open(tmp_path)
    keyspace = db.keyspace("main")
    keyspace.update((b"%04d" % number, b"x" * 200) for number in range(1000))
    outcomes = []

    def use(work):
        try:
            while True:
                work()
        except windrow.ClosedError:
            outcomes.append(work)

    def scan():
        for _ in keyspace.items():
            pass

    works = [scan, scan, lambda: keyspace.put(b"a", b"1"), lambda: db.transact(lambda it: it.put(keyspace, b"b", b"2"))]
    threads = [threading.Thread(target=use, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    db.close()
    for thread in threads:
        thread.join()
    assert len(outcomes) == len(works)
    with windrow.open(tmp_path) as db:
        assert db.verify() == []


def test_the_last_object_closes_the_database(tmp_path):
    names = iter(windrow.open(tmp_path).keyspace("main"))
    with pytest.raises(windrow.LockedError):
        windrow.open(tmp_path)
    del names
    gc.collect()
    windrow.open(tmp_path).close()


def test_nothing_is_pickled_or_copied(db):
    for each in [*objects(db), db.keyspace("main"), db.keyspace("main").at(db.snapshot())]:
        if type(each).__module__.startswith("windrow"):
            for refuse in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="cannot be pickled or copied: it belongs to what this process has open"):
                    refuse(each)


def in_child(work):
    """Runs `work` in the child of a fork. Returns whether it has passed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            gc.collect()
            code = 0
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def test_a_child_of_a_fork_gets_errors_and_the_parent_goes_on(tmp_path):
    db = windrow.open(tmp_path / "parent")
    calls = objects(db)
    keyspace = db.keyspace("main")

    def work():
        for call in calls.values():
            with pytest.raises(windrow.ForkError):
                call()
        db.close()
        calls.clear()
        with windrow.open(tmp_path / "child") as own:
            own.keyspace("main")[b"a"] = b"1"

    assert in_child(work)
    assert in_child(lambda: db.__exit__(None, None, None))
    keyspace[b"d"] = b"4"
    db.flush()
    assert keyspace[b"a"] == b"1" and db.verify() == []
    db.close()
    with windrow.open(tmp_path / "parent") as db:
        assert dict(db.keyspace("main")) == {b"a": b"1", b"d": b"4"}
    with windrow.open(tmp_path / "child") as db:
        assert in_child(lambda: None) and db.keyspace("main")[b"a"] == b"1"


def test_a_fork_is_counted_before_objects_of_other_threads_are_freed(tmp_path):
    # The engine's lock on the folder is taken while the parent lives: a child that closed the database would free it.
    holder, ready, end = threading.local(), threading.Event(), threading.Event()

    def hold():
        holder.names = iter(windrow.open(tmp_path).keyspace("main"))
        next(holder.names, None)
        ready.set()
        end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    assert in_child(lambda: None)
    with pytest.raises(windrow.LockedError):
        windrow.open(tmp_path)
    text = (tmp_path / "LOCK").read_text()
    assert text.startswith(f"{os.getpid()} ")
    end.set()
    thread.join()
    del holder
    gc.collect()
    windrow.open(tmp_path).close()


def test_a_fork_inside_of_a_call_is_an_error_there(tmp_path):
    with windrow.open(tmp_path) as db:
        keyspace = db.keyspace("main")
        keyspace[b"a"] = b"1"

        def fork_in(call):
            child = []

            def fork(*_):
                child.append(os.fork())
                return b"2"

            def keys():
                yield fork()

            code = 1
            try:
                call(fork, keys)
            except windrow.ForkError:
                code = 0
            finally:
                if child[0] == 0:
                    os._exit(code)
            return os.waitpid(child[0], 0)[1] == 0

        assert fork_in(lambda fork, keys: keyspace.change(b"a", fork))
        assert fork_in(lambda fork, keys: keyspace.get_many(keys()))
        assert fork_in(lambda fork, keys: keyspace.update((key, b"") for key in keys()))
        assert fork_in(lambda fork, keys: db.transact(fork))
        assert dict(keyspace) == {b"a": b"2", b"2": b""}


def test_each_close_waits_for_the_end(tmp_path):
    for number in range(20):
        db = windrow.open(tmp_path / str(number))
        db.keyspace("main").update((b"%05d" % key, b"x" * 100) for key in range(2000))
        failures = []

        def close():
            db.close()
            try:
                windrow.open(tmp_path / str(number), read_only=True).close()
            except windrow.LockedError as error:
                failures.append(error)

        threads = [threading.Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


def test_other_threads_run_while_a_call_waits(db, keyspace):
    holder = db.locking_transaction()
    holder.put(keyspace, b"a", b"1")
    waiter = db.locking_transaction(timeout=60)
    wait = threading.Thread(target=waiter.put, args=(keyspace, b"a", b"2"))
    wait.start()
    # The waiter holds the lock of its transaction; the interpreter is free.
    for number in range(1000):
        keyspace[b"b"] = b"%d" % number
    holder.commit()
    wait.join()
    with pytest.raises(windrow.ConflictError):
        keyspace[b"a"] = b"3"
        waiter.commit()
