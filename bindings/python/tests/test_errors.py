"""Errors and options."""

import pathlib

import pytest

import windrow


def test_each_error_is_an_error_of_windrow():
    for name in windrow.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(windrow, name), windrow.Error)
    for kind, standard in (
        (windrow.InvalidArgumentError, ValueError),
        (windrow.NotFoundError, LookupError),
        (windrow.NoSpaceError, OSError),
        (windrow.IoError, OSError),
        (windrow.TimedOutError, TimeoutError),
        (windrow.ClosedError, ValueError),
        (windrow.ForkError, RuntimeError),
    ):
        assert issubclass(kind, standard)


def test_opens_fail_with_the_kind_of_the_fault(tmp_path):
    folder = tmp_path / "db"
    with pytest.raises(windrow.NotFoundError):
        windrow.open(folder, create_if_missing=False)
    with windrow.open(str(folder)) as db:
        assert db.path == folder
        with pytest.raises(windrow.LockedError):
            windrow.open(folder)
    with pytest.raises(windrow.AlreadyExistsError):
        windrow.open(folder, error_if_exists=True)
    with windrow.open(folder, read_only=True) as db, pytest.raises(windrow.NotFoundError):
        db.keyspace("main")
    (tmp_path / "file").write_text("text")
    with pytest.raises(windrow.Error):
        windrow.open(tmp_path / "file")
    with pytest.raises(TypeError):
        windrow.open(5)
    windrow.destroy(folder)
    with pytest.raises(windrow.NotFoundError):
        windrow.open(folder, read_only=True)


def test_a_wrong_option_is_named(tmp_path):
    for options, message in (
        ({"colour": 5}, "colour: there is no such option"),
        ({"durability": "never"}, 'durability: "never" is not one of buffered, sync'),
        ({"cache_bytes": "much"}, 'cache_bytes: "much" is not a whole number'),
        ({"background_threads": 0}, "background_threads must be from 1 to 1024"),
        ({"keyspace": {"scaling": 7}}, "scaling must be above 0"),
        ({"keyspace": {"preset": "fast"}}, '"fast" is not one of balanced'),
    ):
        with pytest.raises(windrow.InvalidArgumentError, match=message):
            windrow.open(tmp_path / "db", **options)
    with pytest.raises(TypeError):
        windrow.open(tmp_path / "db", cache_bytes=[1])
    with pytest.raises(OverflowError):
        windrow.open(tmp_path / "db", cache_bytes=-1)


def test_options_reach_the_database(tmp_path):
    options = {"durability": "sync", "memory_budget": 64 << 20, "lock_timeout": 0.01, "keyspace": {"medium_from": "never"}}
    with windrow.open(tmp_path, **options) as db:
        keyspace = db.keyspace("main")
        assert keyspace.options()["medium_from"] == 2**64 - 1
        holder = db.locking_transaction()
        holder.put(keyspace, b"a", b"1")
        with pytest.raises(windrow.TimedOutError):
            db.locking_transaction().put(keyspace, b"a", b"2")
        with pytest.raises(windrow.InvalidArgumentError):
            keyspace.put(b"b", b"", durability="never")


def test_damage_names_its_file(tmp_path):
    with windrow.open(tmp_path) as db:
        db.keyspace("main").update((b"%05d" % number, b"x" * 64) for number in range(2000))
        db.flush()
    table = next(tmp_path.glob("*.table"))
    content = bytearray(table.read_bytes())
    content[len(content) // 3] ^= 1
    table.write_bytes(content)
    with windrow.open(tmp_path) as db:
        with pytest.raises(windrow.CorruptionError) as damage:
            list(db.keyspace("main").items())
        assert damage.value.file == pathlib.Path(table.name) and damage.value.offset > 0
        assert len(db.verify()) > 0


def damage(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_in_front_of_damage_is_read(tmp_path, reverse):
    entries = [(b"%05d" % number, bytes([number % 251]) * 64) for number in range(2000)]
    with windrow.open(tmp_path) as db:
        db.keyspace("main").update(entries)
        db.flush()
    table = next(tmp_path.glob("*.table"))
    damage(table, table.stat().st_size // 2)
    expected = entries[::-1] if reverse else entries
    with windrow.open(tmp_path) as db:
        keyspace = db.keyspace("main")
        # One entry at a time, so that nothing is read ahead of it.
        with db.transaction() as transaction:
            one_by_one = []
            with pytest.raises(windrow.CorruptionError):
                for entry in transaction.items(keyspace, reverse=reverse):
                    one_by_one.append(entry)
        assert 0 < len(one_by_one) < 2000 and one_by_one == expected[: len(one_by_one)]
        items = (reversed if reverse else iter)(keyspace.items())
        ahead = []
        for _ in range(2):
            with pytest.raises(windrow.CorruptionError):
                for entry in items:
                    ahead.append(entry)
        assert ahead == one_by_one
        items = (reversed if reverse else iter)(keyspace.items())
        assert items.take(3000) == one_by_one
        with pytest.raises(windrow.CorruptionError):
            items.take(3000)
        if not reverse:
            scan = keyspace._scan_arrays(3000)
            assert next(scan)[0] == len(one_by_one)
            for _ in range(2):
                with pytest.raises(windrow.CorruptionError):
                    next(scan)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_damaged_value_is_passed(tmp_path, reverse):
    entries = [(b"%02d" % number, b"value %02d" % number * 1000) for number in range(20)]
    options = {"medium_from": 100, "large_from": 1000}
    with windrow.open(tmp_path, keyspace=options) as db:
        db.keyspace("main").update(entries)
        db.flush()
    holder = next(path for path in tmp_path.iterdir() if b"value 11" * 2 in path.read_bytes())
    damage(holder, holder.read_bytes().index(b"value 11" * 2) + 100)
    expected = [entry for entry in entries if entry[0] != b"11"]
    if reverse:
        expected.reverse()
    before = 8 if reverse else 11
    with windrow.open(tmp_path) as db:
        keyspace = db.keyspace("main")
        walk = reversed if reverse else iter
        items, read = walk(keyspace.items()), []
        with pytest.raises(windrow.CorruptionError):
            read.extend(items.take(before))
            next(items)
        read.extend(items)
        assert read == expected
        items = walk(keyspace.items())
        assert items.take(20) == expected[:before]
        with pytest.raises(windrow.CorruptionError):
            items.take(20)
        assert items.take(20) == expected[before:]
        items.seek(b"12" if reverse else b"11")
        assert items.prev() == (entries[12] if reverse else entries[10])
        assert len(list(walk(keyspace.keys()))) == 20
        with db.transaction() as transaction:
            items, read, errors = transaction.items(keyspace, reverse=reverse), [], 0
            for _ in range(2):
                try:
                    read.extend(items)
                except windrow.CorruptionError:
                    errors += 1
            assert read == expected and errors == 1
        if not reverse:
            scan = keyspace._scan_arrays(100)
            assert next(scan)[0] == 11
            with pytest.raises(windrow.CorruptionError):
                next(scan)
            assert [chunk[0] for chunk in scan] == [8]


def test_a_checkpoint_is_a_database(db, planets, tmp_path):
    db.checkpoint(tmp_path / "copy")
    db.persist()
    del planets[b"mars"]
    with windrow.open(tmp_path / "copy") as copy:
        assert copy.keyspace("main")[b"mars"] == b"2"
    with pytest.raises(windrow.AlreadyExistsError):
        db.checkpoint(tmp_path / "copy")
