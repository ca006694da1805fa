"""What plyvel does and its own tests do not try."""

import pytest

import windrow
from windrow import plyvel


@pytest.fixture
def db(tmp_path):
    with plyvel.DB(str(tmp_path / "db"), create_if_missing=True) as opened:
        yield opened


def test_a_batch_is_empty_after_its_block(db):
    batch = db.write_batch()
    with batch:
        batch.put(b"a", b"1")
    db.put(b"a", b"2")
    with batch:
        batch.put(b"b", b"1")
    assert dict(db) == {b"a": b"2", b"b": b"1"}
    with pytest.raises(RuntimeError, match="block"), db.write_batch(transaction=True) as batch:
        batch.put(b"a", b"3")
        raise RuntimeError("block")
    batch.write()
    assert db.get(b"a") == b"2"
    batch.put(b"c", b"1")
    batch.write()
    db.delete(b"c")
    batch.write()
    assert db.get(b"c") == b"1"


def test_appended_writes_keep_their_prefix(db):
    first, second = db.prefixed_db(b"1/"), db.prefixed_db(b"2/").prefixed_db(b"x/")
    batch, other = first.write_batch(), second.write_batch()
    batch.put(b"a", b"1")
    other.put(b"a", b"2")
    other.delete(b"b")
    db.put(b"2/x/b", b"")
    batch.append(other)
    whole = db.write_batch()
    whole.append(batch)
    whole.put(b"c", b"3")
    other.append(whole)
    other.write()
    assert dict(db) == {b"1/a": b"1", b"2/x/a": b"2", b"c": b"3"}
    with pytest.raises(TypeError):
        batch.append(None)


def test_a_batch_of_a_closed_database_is_an_error(db):
    batch, other = db.write_batch(), db.write_batch()
    batch.put(b"a", b"1")
    db.close()
    for use in (
        batch.__enter__,
        lambda: batch.__exit__(None, None, None),
        lambda: batch.append(other),
        batch.approximate_size,
        batch.write,
        batch.clear,
        lambda: batch.delete(b"a"),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_keys_are_no_integers(db):
    db.put(b"\0\0", b"1")
    for options in (
        {"start": 1, "include_start": False},
        {"start": 1},
        {"stop": 2, "include_stop": True},
        {"stop": 2},
        {"prefix": 1},
    ):
        with pytest.raises(TypeError):
            db.iterator(**options)
    for key in (5, "a", None):
        with pytest.raises(TypeError):
            db.write_batch().put(key, b"")
    assert list(db.iterator(start=bytearray(b"\0"), stop=memoryview(b"\0\0"), include_stop=True)) == [(b"\0\0", b"1")]


def test_options_hold_for_a_database_that_exists(tmp_path):
    plyvel.DB(str(tmp_path), create_if_missing=True, block_size=16 << 10).close()
    with plyvel.DB(str(tmp_path), write_buffer_size=512 << 20, compression=None, bloom_filter_bits=14) as db:
        options = db._view.options()
        assert (options["memtable_bytes"], options["block_bytes"]) == (512 << 20, 4 << 10)
        assert (options["compression"], options["bits_per_key"]) == ("none", 14)
    for size in (-(1 << 70), 0, 1 << 70):
        sizes = dict.fromkeys(("write_buffer_size", "max_open_files", "lru_cache_size", "block_size", "max_file_size"), size)
        plyvel.DB(str(tmp_path), **sizes).close()


def test_the_folder_goes_with_its_database_alone(tmp_path):
    folder = tmp_path / "db"
    plyvel.destroy_db(str(folder))
    for _ in range(2):
        plyvel.DB(str(folder), create_if_missing=True).close()
        plyvel.destroy_db(str(folder))
        assert not folder.exists()
    with plyvel.DB(str(folder), create_if_missing=True) as db:
        with pytest.raises(plyvel.IOError):
            plyvel.destroy_db(str(folder))
        db.put(b"a", b"1")
    (folder / "other").touch()
    plyvel.destroy_db(str(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["LOCK", "other"]


def test_a_database_with_the_empty_key_is_refused(tmp_path):
    path = tmp_path / "db"
    plyvel.DB(str(path), create_if_missing=True).close()
    # As the libraries for C and Node write it.
    with windrow.open(path) as db:
        db.keyspace("leveldb.empty-key")[b"\0"] = b"value"
    with pytest.raises(plyvel.Error, match="empty key"):
        plyvel.DB(str(path))
    with windrow.open(path) as db:
        del db.keyspace("leveldb.empty-key")[b"\0"]
    plyvel.DB(str(path)).close()
