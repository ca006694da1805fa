"""Backups: what they hold, what a list says, damage, closes and forks."""

import gc
import threading
import time

import pytest

import windrow
from test_lifetime import in_child


@pytest.fixture
def backups(tmp_path):
    with windrow.Backups(tmp_path / "backups") as opened:
        yield opened


def restored(backups, path, *number):
    """The entries of the keyspace `main` of a backup."""
    backups.restore(path, *number)
    with windrow.open(path, read_only=True) as db:
        return dict(db.keyspace("main"))


def test_a_restore_gives_the_state_of_its_backup(db, keyspace, backups, tmp_path):
    keyspace[b"a"] = b"1"
    assert db.backup(backups) == 1
    keyspace[b"b"] = b"2"
    assert db.backup(backups) == 2
    keyspace.clear()
    assert restored(backups, tmp_path / "1", 1) == {b"a": b"1"}
    assert restored(backups, tmp_path / "2") == {b"a": b"1", b"b": b"2"}
    with pytest.raises(windrow.AlreadyExistsError):
        backups.restore(tmp_path / "1")
    with pytest.raises(windrow.NotFoundError, match="backup 3"):
        backups.restore(tmp_path / "3", 3)
    assert not (tmp_path / "3").exists() or not any((tmp_path / "3").iterdir())


def test_a_list_says_what_each_backup_is(db, keyspace, backups):
    assert backups.list() == []
    began = time.time()
    for number in range(3):
        keyspace[b"a"] = b"%d" % number
        db.backup(backups)
    listed = backups.list()
    assert [it.number for it in listed] == [1, 2, 3]
    assert all(began - 1 < it.created < time.time() + 1 for it in listed)
    sequences = [it.sequence for it in listed]
    assert sequences == sorted(set(sequences))
    assert all(it.files > 0 and it.bytes > it.own_bytes and it.error is None for it in listed)
    assert backups.path.name == "backups" and "backups" in repr(backups)


def test_backups_are_removed_by_count_age_and_number(db, backups):
    with pytest.raises(windrow.NotFoundError, match="no backups"):
        backups.restore("unused")
    for _ in range(4):
        db.backup(backups)
    assert backups.remove_older(3600) == []
    assert backups.keep_newest(3) == [1]
    backups.remove(3)
    with pytest.raises(windrow.NotFoundError):
        backups.remove(3)
    assert [it.number for it in backups.list()] == [2, 4]
    with pytest.raises(windrow.InvalidArgumentError):
        backups.keep_newest(0)
    with pytest.raises(OverflowError):
        backups.keep_newest(-1)
    with pytest.raises(ValueError):
        backups.remove_older(-1)
    time.sleep(0.01)
    assert backups.remove_older(0) == [2]


def test_damage_is_named_by_the_check_the_list_and_a_restore(db, keyspace, backups, tmp_path):
    keyspace[b"a"] = b"1"
    db.backup(backups)
    db.backup(backups)
    assert backups.verify() == []
    manifest = tmp_path / "backups" / "000001.backup"
    content = bytearray(manifest.read_bytes())
    content[20] ^= 1
    manifest.write_bytes(content)
    (sentence,) = backups.verify()
    assert "000001.backup" in sentence
    assert backups.verify(2) == [] and backups.verify(1) == [sentence]
    first, second = backups.list()
    assert isinstance(first.error, windrow.CorruptionError) and first.bytes == 0 and second.error is None
    with pytest.raises(windrow.CorruptionError, match="backup 1"):
        backups.restore(tmp_path / "restored", 1)
    assert restored(backups, tmp_path / "restored") == {b"a": b"1"}


def test_a_folder_belongs_to_one_that_writes_or_to_readers(db, backups, tmp_path):
    path = tmp_path / "backups"
    for read_only in (False, True):
        with pytest.raises(windrow.LockedError):
            windrow.Backups(path, read_only=read_only)
    db.backup(backups)
    backups.close()
    backups.close()
    for call in (backups.list, backups.verify, lambda: db.backup(backups), lambda: backups.keep_newest(1)):
        with pytest.raises(windrow.ClosedError, match="backups have been closed"):
            call()
    with windrow.Backups(path, read_only=True) as one, windrow.Backups(path, read_only=True) as other:
        assert one.list() == other.list() != []
        with pytest.raises(windrow.ReadOnlyError):
            db.backup(one)
        with pytest.raises(windrow.ReadOnlyError):
            other.remove(1)
    with pytest.raises(windrow.NotFoundError):
        windrow.Backups(tmp_path / "missing", read_only=True)
    # Without a close the garbage collector lets others have the folder.
    windrow.Backups(path).list()
    gc.collect()
    windrow.Backups(path).close()


def test_a_closed_database_has_no_new_backups(db, backups):
    db.close()
    with pytest.raises(windrow.ClosedError, match="database"):
        db.backup(backups)
    assert backups.list() == []


def test_calls_of_several_threads_take_turns(db, keyspace, backups, tmp_path):
    keyspace.update((b"%04d" % number, b"x" * 100) for number in range(1000))
    made, failures = [], []

    def use(number):
        try:
            made.append(db.backup(backups))
            backups.restore(tmp_path / f"restored {number}")
        except windrow.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and sorted(made) == [1, 2, 3, 4]


def test_a_close_waits_for_the_call_that_runs(db, keyspace, tmp_path):
    keyspace.update((b"%04d" % number, b"x" * 1000) for number in range(1000))
    db.flush()
    path = tmp_path / "backups"
    # It reads a megabyte in about half a second.
    backups = windrow.Backups(path, bytes_per_second=2 << 20)
    outcomes = []

    def make():
        try:
            outcomes.append(db.backup(backups))
        except windrow.ClosedError:
            outcomes.append(None)

    thread = threading.Thread(target=make)
    thread.start()
    time.sleep(0.05)
    backups.close()
    # The folder is free at once, whether the backup came first or the close.
    with windrow.Backups(path) as again:
        thread.join()
        assert [it.number for it in again.list()] == [number for number in outcomes if number]


def test_a_child_of_a_fork_cannot_use_or_free_them(db, backups, tmp_path):
    db.backup(backups)

    def work():
        for call in (backups.list, lambda: backups.restore(tmp_path / "restored"), lambda: db.backup(backups)):
            with pytest.raises(windrow.ForkError):
                call()
        backups.close()

    assert in_child(work)
    with pytest.raises(windrow.LockedError):
        windrow.Backups(tmp_path / "backups")
    assert [it.number for it in backups.list()] == [1]
