"""Windrow: an embedded, ordered, persistent key-value store.

A database is a folder of named keyspaces. A keyspace is a mutable mapping from bytes to bytes, in the order of keys:

    import windrow

    with windrow.open("folder") as db:
        planets = db.keyspace("planets")
        planets[b"earth"] = b"one moon"
        for name, moons in planets[b"e":b"f"].items():
            print(name, moons)

Keys have 1 byte to 64 KiB, values up to 1 GiB. Each call is atomic, and so are a batch and a transaction. All objects may
be used by all threads. Calls that may wait release the interpreter's lock. Every error of Windrow is an `Error`.
"""

import collections.abc
import copyreg
from typing import NoReturn

from ._backups import Backup
from ._changes import ConsumerStats, Write
from ._errors import (
    AlreadyExistsError,
    ClosedError,
    ConflictError,
    CorruptionError,
    DeadlockError,
    Error,
    FellBehindError,
    ForkError,
    InternalError,
    InvalidArgumentError,
    IoError,
    LockedError,
    MergeError,
    NoSpaceError,
    NotFoundError,
    PoisonedError,
    ReadOnlyError,
    TimedOutError,
    UnsupportedError,
)
from ._operators import MergeOperator
from ._windrow import (
    Backups,
    Batch,
    Change,
    Changes,
    Consumer,
    Database,
    Entries,
    Iterator,
    Keyspace,
    MergedItems,
    Savepoint,
    Secondary,
    Snapshot,
    Transaction,
    Value,
    View,
    destroy,
    open,
)

__all__ = [
    "AlreadyExistsError",
    "Backup",
    "Backups",
    "Batch",
    "Change",
    "Changes",
    "ClosedError",
    "ConflictError",
    "Consumer",
    "ConsumerStats",
    "CorruptionError",
    "Database",
    "DeadlockError",
    "Entries",
    "Error",
    "FellBehindError",
    "ForkError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Iterator",
    "Keyspace",
    "LockedError",
    "MergeError",
    "MergeOperator",
    "MergedItems",
    "NoSpaceError",
    "NotFoundError",
    "PoisonedError",
    "ReadOnlyError",
    "Savepoint",
    "Secondary",
    "Snapshot",
    "TimedOutError",
    "Transaction",
    "UnsupportedError",
    "Value",
    "View",
    "Write",
    "destroy",
    "open",
]

collections.abc.Mapping.register(View)
collections.abc.MutableMapping.register(Keyspace)


def _refuse_to_pickle(it: object) -> NoReturn:
    kind = type(it).__name__
    raise TypeError(f"a windrow.{kind} cannot be pickled or copied: it belongs to what this process has open")


for _kind in (
    Backups,
    Batch,
    Changes,
    Consumer,
    Database,
    Entries,
    Iterator,
    Keyspace,
    MergedItems,
    Savepoint,
    Secondary,
    Snapshot,
    Transaction,
    Value,
    View,
):
    copyreg.pickle(_kind, _refuse_to_pickle)
