"""Errors and options."""

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
        assert table.name in str(damage.value.file) and damage.value.offset > 0
        assert len(db.verify()) > 0


def test_a_checkpoint_is_a_database(db, planets, tmp_path):
    db.checkpoint(tmp_path / "copy")
    db.persist()
    del planets[b"mars"]
    with windrow.open(tmp_path / "copy") as copy:
        assert copy.keyspace("main")[b"mars"] == b"2"
    with pytest.raises(windrow.AlreadyExistsError):
        db.checkpoint(tmp_path / "copy")
