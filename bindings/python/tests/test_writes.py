"""Batches and transactions."""

import threading

import pytest

import windrow


def test_a_batch_is_written_at_the_end_of_its_block(db, planets):
    moons = db.keyspace("moons")
    with db.batch() as batch:
        batch.put(planets, b"pluto", b"5")
        batch.delete(planets, b"earth")
        batch.put(moons, b"luna", b"earth", ttl=60)
        batch.delete_range(planets[b"j":b"n"])
        batch.put(moons.prefix(b"of/"), b"mars", b"phobos")
        assert len(batch) == 5 and b"pluto" not in planets
    assert list(planets) == [b"pluto", b"venus"]
    assert dict(moons) == {b"luna": b"earth", b"of/mars": b"phobos"}
    with pytest.raises(RuntimeError), db.batch() as batch:
        batch.put(planets, b"ceres", b"0")
        raise RuntimeError
    assert b"ceres" not in planets
    batch.clear()
    batch.write(durability="sync")
    batch.put(planets, b"ceres", b"0")
    copy = db.batch_from_bytes(batch.to_bytes())
    copy.write()
    assert planets[b"ceres"] == b"0"


def test_merges_fold_operands(tmp_path):
    with windrow.open(tmp_path, merge_operators={"counts": "windrow.add_u64.wrapping"}) as db:
        counts = db.keyspace("counts")
        for number in range(1, 5):
            counts.merge(b"visits", number.to_bytes(8, "little"))
        with db.batch() as batch:
            batch.merge(counts, b"visits", (100).to_bytes(8, "little"))
        db.transact(lambda transaction: transaction.merge(counts, b"visits", (1000).to_bytes(8, "little")))
        assert int.from_bytes(counts[b"visits"], "little") == 1110
        with pytest.raises(windrow.InvalidArgumentError):
            db.keyspace("other").merge(b"a", b"b")
    with pytest.raises(windrow.InvalidArgumentError, match="no merge operator"):
        windrow.open(tmp_path, merge_operators={"counts": "mine"})


def test_a_transaction_sees_its_writes_and_commits(db, planets):
    with db.transaction() as transaction:
        transaction.put(planets, b"pluto", b"5")
        transaction.delete(planets, b"earth")
        transaction.delete_range(planets[b"m":b"n"])
        assert transaction.get(planets, b"pluto") == b"5"
        assert transaction.get(planets, b"earth", b"gone") == b"gone"
        assert list(transaction.keys(planets)) == [b"jupiter", b"pluto", b"venus"]
        assert next(transaction.items(planets, reverse=True)) == (b"venus", b"0")
        savepoint = transaction.savepoint()
        transaction.put(planets, b"ceres", b"0")
        transaction.roll_back_to(savepoint)
        assert b"pluto" not in planets
    assert list(planets) == [b"jupiter", b"pluto", b"venus"]
    for use in (transaction.commit, lambda: transaction.get(planets, b"pluto")):
        with pytest.raises(windrow.ClosedError):
            use()
    transaction.roll_back()


def test_an_iterator_of_a_transaction_turns_and_sees_later_writes(db, planets):
    with db.transaction() as transaction:
        names = transaction.keys(planets[b"f":])
        assert next(names) == b"jupiter"
        transaction.put(planets, b"kepler", b"0")
        assert next(names) == b"kepler" and names.prev() == b"kepler" and names.prev() == b"jupiter"
        with pytest.raises(StopIteration):
            names.prev()
    with pytest.raises(windrow.ClosedError):
        next(names)


def test_an_exception_rolls_back(db, planets):
    with pytest.raises(RuntimeError), db.transaction() as transaction:
        transaction.put(planets, b"pluto", b"5")
        raise RuntimeError
    assert b"pluto" not in planets


def test_a_conflict_names_its_key_and_transact_tries_again(db, planets):
    transaction = db.transaction()
    moons = transaction.get(planets, b"mars")
    transaction.put(planets, b"mars", moons + b"!")
    planets[b"mars"] = b"0"
    with pytest.raises(windrow.ConflictError) as conflict:
        transaction.commit()
    assert (conflict.value.keyspace, conflict.value.key) == ("main", b"mars")
    tries = []

    def work(transaction):
        tries.append(transaction.get(planets, b"mars"))
        if len(tries) < 3:
            planets[b"mars"] = b"%d" % len(tries)
        transaction.put(planets, b"mars", b"done")
        return len(tries)

    assert db.transact(work) == 3
    assert tries == [b"0", b"1", b"2"] and planets[b"mars"] == b"done"
    with pytest.raises(ZeroDivisionError):
        db.transact(lambda transaction: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        db.transact(lambda transaction: transaction.roll_back() or 1 / 0)
    with pytest.raises(windrow.InvalidArgumentError):
        db.transaction(isolation="dirty")


def test_the_exception_of_the_work_survives_a_close(tmp_path):
    db = windrow.open(tmp_path)
    with pytest.raises(ZeroDivisionError):
        db.transact(lambda transaction: db.close() or 1 / 0)


def test_snapshot_isolation_covers_written_keys_only(db, planets):
    with db.transaction(isolation="snapshot") as transaction:
        transaction.get(planets, b"mars")
        planets[b"mars"] = b"0"
        transaction.put(planets, b"pluto", b"5")
    assert planets[b"pluto"] == b"5"


def test_locks_make_others_wait(db, planets):
    holder = db.locking_transaction()
    assert holder.get_for_update(planets, b"mars") == b"2"
    with pytest.raises(windrow.TimedOutError) as late:
        db.locking_transaction(timeout=0).put(planets, b"mars", b"3")
    assert late.value.key == b"mars" and isinstance(late.value, TimeoutError)

    def add(transaction):
        moons = int(transaction.get_for_update(planets, b"mars"))
        transaction.put(planets, b"mars", b"%d" % (moons + 1))

    threads = [threading.Thread(target=db.transact, args=(add,), kwargs={"locking": True}) for _ in range(4)]
    for thread in threads:
        thread.start()
    holder.put(planets, b"mars", b"10")
    holder.commit()
    for thread in threads:
        thread.join()
    assert planets[b"mars"] == b"14"
    with db.locking_transaction() as first, db.locking_transaction() as second:
        assert first.get_for_share(planets, b"earth") == second.get_for_share(planets, b"earth") == b"1"


def test_all_increments_of_threads_count(db, keyspace):
    keyspace[b"count"] = b"0"

    def count():
        for _ in range(50):
            keyspace.change(b"count", lambda old: b"%d" % (int(old) + 1))
            db.transact(lambda it: it.put(keyspace, b"count", b"%d" % (int(it.get(keyspace, b"count")) + 1)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keyspace[b"count"] == b"400"
