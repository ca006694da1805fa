"""plyvel's interface (version 1.5) on Windrow: `from windrow import plyvel`.

A database is a folder of Windrow with the keyspace `default`. LevelDB's files are not read: copy the entries. What differs
from plyvel:

- Keys have 1 byte to 64 KiB; others are an `Error`, and so is the open of a database with an entry for the empty key.
- Keys are ordered by their bytes. A comparator is an `Error`, whatever its order.
- `paranoid_checks`, `verify_checksums`, `fill_cache`, `block_restart_interval` and `bloom_filter_bits=0` have no effect: all
  checks are always made, and there are always filters. Snappy is LZ4.
- Any object with a buffer is a key.
"""

import builtins
import os
from collections.abc import Iterator as _StandardIterator
from typing import Any, NoReturn, Self

import windrow
from windrow import _windrow

__version__ = "1.5.1"
__leveldb_version__ = "1.23"

_KEYSPACE = "default"


class Error(Exception):
    """The base of all errors."""


class IOError(Error, builtins.IOError):
    """A device or a lock has failed."""


class CorruptionError(Error):
    """Stored bytes are damaged."""


class IteratorInvalidError(Error):
    """The raw iterator is at no entry."""


def _fail(error: windrow.Error) -> NoReturn:
    """Raises plyvel's error for one of Windrow."""
    if isinstance(error, (windrow.ClosedError, windrow.ForkError)):
        raise RuntimeError(str(error)) from None
    if isinstance(error, windrow.CorruptionError):
        raise CorruptionError(str(error)) from error
    if isinstance(error, (OSError, windrow.LockedError, windrow.PoisonedError)):
        raise IOError(str(error)) from error
    raise Error(str(error)) from error


def _within(value: Any, least: int, most: int) -> int:
    """The number, or the nearest in range."""
    if not isinstance(value, int):
        raise TypeError(f"an integer is required, not {type(value).__name__}")
    return min(max(value, least), most)


def _folder(name: Any) -> str:
    if not isinstance(name, (str, bytes, os.PathLike)):
        raise TypeError("'name' arg must be a byte string or a unicode string")
    return os.fsdecode(name)


def _options(
    write_buffer_size: Any,
    max_open_files: Any,
    lru_cache_size: Any,
    block_size: Any,
    max_file_size: Any,
    compression: Any,
    bloom_filter_bits: Any,
    comparator: Any,
    comparator_name: Any,
) -> dict[str, bool | int]:
    """The options that are set, under the names that C callers' have in Rust."""
    if isinstance(compression, bytes):
        compression = compression.decode()
    if compression is not None and not isinstance(compression, str):
        raise TypeError("'compression' must be None or a string")
    if compression not in (None, "snappy"):
        raise ValueError("'compression' must be None or 'snappy'")
    if (comparator is None) != (comparator_name is None):
        raise ValueError("'comparator' and 'comparator_name' must be specified together")
    if comparator is not None:
        if not isinstance(comparator_name, bytes):
            raise TypeError("'comparator_name' must be bytes")
        if not callable(comparator):
            raise TypeError("custom comparator object must be callable")
        raise Error("Not implemented: Windrow orders keys by their bytes, and takes no comparator")
    options: dict[str, bool | int] = {"is_compressed": compression is not None}
    for name, value, most in (
        ("write_buffer_bytes", write_buffer_size, 1 << 62),
        ("open_files", max_open_files, 1 << 30),
        ("cache_bytes", lru_cache_size, 1 << 62),
        ("block_bytes", block_size, 1 << 62),
        ("file_bytes", max_file_size, 1 << 62),
        ("bits_per_key", bloom_filter_bits or None, 1 << 30),
    ):
        if value is not None:
            options[name] = _within(value, 0, most)
    return options


class _Readable:
    """What databases, prefixed databases and snapshots read by."""

    _view: windrow.View

    def get(self, key: Any, default: Any = None, *, verify_checksums: Any = False, fill_cache: Any = True) -> Any:
        """The value of `key`, or `default`."""
        try:
            return self._view.get(key, default)
        except windrow.Error as error:
            _fail(error)

    def __iter__(self) -> "Iterator":
        return self.iterator()

    def iterator(
        self,
        *,
        reverse: Any = False,
        start: Any = None,
        stop: Any = None,
        include_start: Any = True,
        include_stop: Any = False,
        prefix: Any = None,
        include_key: Any = True,
        include_value: Any = True,
        verify_checksums: Any = False,
        fill_cache: Any = True,
    ) -> "Iterator":
        """An iterator over the entries of a range, or with a prefix."""
        if prefix is not None and (start is not None or stop is not None):
            raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
        # The first key behind another one is that key with a zero.
        start = start if start is None or include_start else _copy(start) + b"\0"
        stop = _copy(stop) + b"\0" if stop is not None and include_stop else stop
        try:
            view = self._view[start:stop] if prefix is None else self._view._under(prefix)
            return Iterator(view, reverse, include_key, include_value)
        except windrow.Error as error:
            _fail(error)

    def raw_iterator(self, *, verify_checksums: Any = False, fill_cache: Any = True) -> "RawIterator":
        """LevelDB's own iterator."""
        try:
            return RawIterator(self._view)
        except windrow.Error as error:
            _fail(error)


class _Writable(_Readable):
    """What databases and prefixed databases write by."""

    _view: windrow.Keyspace
    _db: windrow.Database
    #: What `_view` leaves out of the keys of `_keyspace`.
    _prefix: bytes
    _keyspace: windrow.Keyspace

    def put(self, key: Any, value: Any, *, sync: Any = False) -> None:
        """Sets the value of `key`."""
        try:
            self._view.put(key, value, durability="sync" if sync else None)
        except windrow.Error as error:
            _fail(error)

    def delete(self, key: Any, *, sync: Any = False) -> None:
        """Removes `key`."""
        try:
            self._view.delete(key, durability="sync" if sync else None)
        except windrow.Error as error:
            _fail(error)

    def write_batch(self, *, transaction: Any = False, sync: Any = False) -> "WriteBatch":
        """An empty batch."""
        return WriteBatch(self._db, self._keyspace, self._prefix, transaction, sync)

    def snapshot(self) -> "Snapshot":
        """The present state."""
        try:
            return Snapshot(self._view.at(self._db.snapshot()))
        except windrow.Error as error:
            _fail(error)


class DB(_Writable):
    """A database."""

    def __init__(
        self,
        name: Any,
        *,
        create_if_missing: Any = False,
        error_if_exists: Any = False,
        paranoid_checks: Any = None,
        write_buffer_size: Any = None,
        max_open_files: Any = None,
        lru_cache_size: Any = None,
        block_size: Any = None,
        block_restart_interval: Any = None,
        max_file_size: Any = None,
        compression: Any = "snappy",
        bloom_filter_bits: Any = 0,
        comparator: Any = None,
        comparator_name: Any = None,
    ) -> None:
        self._name = name
        options = _options(
            write_buffer_size,
            max_open_files,
            lru_cache_size,
            block_size,
            max_file_size,
            compression,
            bloom_filter_bits,
            comparator,
            comparator_name,
        )
        if create_if_missing:
            options["error_if_exists"] = bool(error_if_exists)
        folder = _folder(name)
        try:
            self._db, self._view = _windrow._open_leveldb(folder, create_if_missing=bool(create_if_missing), **options)
        except windrow.NotFoundError as error:
            # LevelDB takes its lock before it looks.
            if os.path.isdir(folder) and not os.access(folder, os.W_OK):
                raise IOError(f"{folder}/LOCK: Permission denied") from error
            _fail(error)
        except windrow.Error as error:
            _fail(error)
        if error_if_exists and not create_if_missing:
            self._db.close()
            raise Error(f"{folder}: exists (error_if_exists is true)")
        self._keyspace, self._prefix = self._view, b""

    @property
    def name(self) -> Any:
        """The name that the database was opened by."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""
        return self._db.closed

    def close(self) -> None:
        """Closes the database."""
        try:
            self._db.close()
        except windrow.Error as error:
            _fail(error)

    def __repr__(self) -> str:
        return f"<plyvel.DB with name {self._name!r}{' (closed)' if self.closed else ''} at {hex(id(self))}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def prefixed_db(self, prefix: Any) -> "PrefixedDB":
        """The entries with a prefix, without it."""
        return PrefixedDB(db=self, prefix=prefix)

    def get_property(self, name: bytes) -> bytes | None:
        """A property of LevelDB by its name: `leveldb.stats`, `leveldb.sstables`, `leveldb.num-files-at-level<N>` and
        `leveldb.approximate-memory-usage`."""
        if not isinstance(name, bytes):
            raise TypeError("'name' must be bytes")
        try:
            levels = self._levels()
            if name == b"leveldb.approximate-memory-usage":
                return b"%d" % sum(self._db.memory().values())
        except windrow.Error as error:
            _fail(error)
        if name in (b"leveldb.stats", b"leveldb.sstables"):
            lines = ["level files bytes"]
            lines += [f"{number:5} {level['files']:5} {level['bytes']}" for number, level in enumerate(levels)]
            return "\n".join(lines).encode() + b"\n"
        level = name.removeprefix(b"leveldb.num-files-at-level")
        if level == name or not level.isdigit():
            return None
        return b"%d" % (levels[int(level)]["files"] if int(level) < len(levels) else 0)

    def _levels(self) -> list[dict[str, Any]]:
        """The levels of the tree."""
        keyspaces = self._db.stats()["keyspaces"]
        return [level for keyspace in keyspaces if keyspace["name"] == _KEYSPACE for level in keyspace["levels"]]

    def compact_range(self, *, start: Any = None, stop: Any = None) -> None:
        """Compacts the entries of a range."""
        try:
            self._view[start:stop].compact()
        except windrow.Error as error:
            _fail(error)

    def approximate_size(self, start: Any, stop: Any) -> int:
        """About how many bytes of files hold the entries of a range."""
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges: Any) -> list[int]:
        """The same for each range, a pair of keys."""
        for start, stop in ranges:
            if not isinstance(start, bytes) or not isinstance(stop, bytes):
                raise TypeError("Start and stop of range must be byte strings")
        try:
            return [self._view[start:stop].approximate_size() for start, stop in ranges]
        except windrow.Error as error:
            _fail(error)


class PrefixedDB(_Writable):
    """The entries of a database with a prefix, without it."""

    def __init__(self, *, db: DB, prefix: Any, _over: "PrefixedDB | None" = None) -> None:
        self.db = db
        self.prefix: bytes = prefix if _over is None else _over.prefix + prefix
        self._prefix = _copy(self.prefix)
        self._db, self._keyspace = db._db, db._keyspace
        try:
            self._view = db._view.prefix(self.prefix)
        except windrow.Error as error:
            _fail(error)

    def __repr__(self) -> str:
        return f"<plyvel.PrefixedDB with prefix {self.prefix!r} at {hex(id(self))}>"

    def prefixed_db(self, prefix: Any) -> "PrefixedDB":
        """The entries with another prefix behind this one."""
        return PrefixedDB(db=self.db, prefix=prefix, _over=self)


class WriteBatch:
    """Writes that take effect as one."""

    def __init__(
        self, db: windrow.Database, keyspace: windrow.Keyspace, prefix: bytes, transaction: Any, sync: Any
    ) -> None:
        self._db = db
        self._keyspace = keyspace
        self._prefix = prefix
        self._transaction = transaction
        self._sync = sync
        # With the keys of the keyspace, because `append` takes writes with another prefix.
        self._writes: list[tuple[bytes, bytes | None]] = []
        self._check()

    def _check(self) -> None:
        if self._db.closed:
            raise RuntimeError("Database is closed")

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""
        self._check()
        self._writes.append((self._prefix + _copy(key), _copy(value)))

    def delete(self, key: Any) -> None:
        """Removes `key`."""
        self._check()
        self._writes.append((self._prefix + _copy(key), None))

    def clear(self) -> None:
        """Removes all writes from the batch."""
        self._check()
        self._writes.clear()

    def append(self, source: "WriteBatch") -> None:
        """Adds the writes of another batch, with the prefix that they have there."""
        self._check()
        if not isinstance(source, WriteBatch):
            raise TypeError("a WriteBatch is required")
        self._writes.extend(source._writes)

    def approximate_size(self) -> int:
        """About how many bytes the batch adds to the log."""
        self._check()
        return 12 + sum(4 + len(key) + len(value or b"") for key, value in self._writes)

    def write(self) -> None:
        """Writes all of it. The batch keeps its content."""
        try:
            batch = self._db.batch()
            for key, value in self._writes:
                if value is None:
                    batch.delete(self._keyspace, key)
                else:
                    batch.put(self._keyspace, key, value)
            batch.write(durability="sync" if self._sync else None)
        except windrow.Error as error:
            _fail(error)

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        self._check()
        if not self._transaction or kind is None:
            self.write()
        self.clear()


def _copy(given: Any) -> bytes:
    return given if type(given) is bytes else bytes(memoryview(given))


class Snapshot(_Readable):
    """A state of a database that does not change."""

    def __init__(self, view: windrow.View) -> None:
        self._at: windrow.View | None = view

    @property
    def _view(self) -> windrow.View:  # type: ignore[override]
        if self._at is None:
            raise RuntimeError("Database or snapshot is closed")
        return self._at

    def close(self) -> None:
        """Gives the snapshot up."""
        self._at = None

    release = close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Closing:
    """What both iterators have."""

    _iterator: windrow.Iterator[Any]

    def close(self) -> None:
        """Closes the iterator."""
        self._iterator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Iterator(_Closing):
    """An iterator over a range, which goes both ways."""

    def __init__(self, view: windrow.View, reverse: Any, include_key: Any, include_value: Any) -> None:
        entries: windrow.Entries[Any]
        if include_value:
            entries = view.items() if include_key else view.values()
        else:
            entries = view.keys()
        self._iterator = reversed(entries) if reverse else iter(entries)
        self._is_empty = not include_key and not include_value

    def __iter__(self) -> _StandardIterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            found = next(self._iterator)
        except windrow.Error as error:
            _fail(error)
        return None if self._is_empty else found

    def prev(self) -> Any:
        """Steps back."""
        try:
            found = self._iterator.prev()
        except windrow.Error as error:
            _fail(error)
        return None if self._is_empty else found

    def seek(self, target: Any) -> None:
        """Moves before the key `target`, or before the first key that is greater."""
        try:
            self._iterator.seek(target)
        except windrow.Error as error:
            _fail(error)

    def seek_to_start(self) -> None:
        """Moves before the first entry."""
        try:
            self._iterator.seek_to_first()
        except windrow.Error as error:
            _fail(error)

    def seek_to_stop(self) -> None:
        """Moves behind the last entry."""
        try:
            self._iterator.seek_to_last()
        except windrow.Error as error:
            _fail(error)


class RawIterator(_Closing):
    """LevelDB's own iterator: it is at an entry, or at none."""

    def __init__(self, view: windrow.View) -> None:
        # It stands behind the entry that this object is at.
        self._iterator = iter(view.items())
        self._entry: tuple[bytes, bytes] | None = None

    def _step(self, forward: bool) -> tuple[bytes, bytes] | None:
        try:
            entry: tuple[bytes, bytes] = next(self._iterator) if forward else self._iterator.prev()
            return entry
        except StopIteration:
            return None
        except windrow.Error as error:
            _fail(error)

    def _go_back(self) -> None:
        """Moves to the entry before the place of the iterator."""
        self._entry = self._step(False)
        if self._entry is not None:
            self._step(True)

    def _at(self) -> tuple[bytes, bytes]:
        if not self.valid():
            raise IteratorInvalidError
        assert self._entry is not None
        return self._entry

    def valid(self) -> bool:
        """Whether it is at an entry."""
        try:
            self._iterator.take(0)
        except windrow.Error as error:
            _fail(error)
        return self._entry is not None

    def seek_to_first(self) -> None:
        """Moves to the first entry."""
        try:
            self._iterator.seek_to_first()
        except windrow.Error as error:
            _fail(error)
        self._entry = self._step(True)

    def seek_to_last(self) -> None:
        """Moves to the last entry."""
        try:
            self._iterator.seek_to_last()
        except windrow.Error as error:
            _fail(error)
        self._go_back()

    def seek(self, target: Any) -> None:
        """Moves to the first entry whose key is `target` or greater."""
        try:
            self._iterator.seek(target)
        except windrow.Error as error:
            _fail(error)
        self._entry = self._step(True)

    def next(self) -> None:
        """Moves to the next entry."""
        self._at()
        self._entry = self._step(True)

    def prev(self) -> None:
        """Moves to the previous entry."""
        self._at()
        self._step(False)
        self._go_back()

    def key(self) -> bytes:
        """The key of the entry."""
        return self._at()[0]

    def value(self) -> bytes:
        """The value of the entry."""
        return self._at()[1]

    def item(self) -> tuple[bytes, bytes]:
        """Both."""
        return self._at()


def repair_db(name: Any, **options: Any) -> None:
    """Opens the database, which recovers it, and checks every block and value. Damage is an error, and nothing is removed."""
    with DB(name, **options) as db:
        try:
            damage = db._db.verify()
        except windrow.Error as error:
            _fail(error)
    if damage:
        raise CorruptionError(damage[0])


def destroy_db(name: Any) -> None:
    """Removes the database, and its folder if nothing else is in it."""
    try:
        _windrow._destroy_leveldb(_folder(name))
    except windrow.Error as error:
        _fail(error)
