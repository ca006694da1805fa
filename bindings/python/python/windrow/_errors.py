"""The exceptions of Windrow. Each kind of error has a class, and `Error` is the base of all."""

import pathlib


class Error(Exception):
    """An error of Windrow. Its message is one sentence."""

    #: The file that the error is about, if it is about one.
    file: pathlib.Path | None = None
    #: The offset in `file` of the damage or of the failed read, if it is known.
    offset: int | None = None
    #: The name of the keyspace of a conflict, a deadlock or a lock that was not free in time.
    keyspace: str | None = None
    #: The key of such an error.
    key: bytes | None = None


class InvalidArgumentError(Error, ValueError):
    """The arguments or options of the call are wrong: correct the call."""


class NotFoundError(Error, LookupError):
    """The database or keyspace does not exist, or was dropped."""


class AlreadyExistsError(Error):
    """The database exists already, or the folder of a checkpoint is not empty."""


class LockedError(Error):
    """This or another process has the database open."""


class NoSpaceError(Error, OSError):
    """The disk or a quota is full: nothing was lost; free space and try again."""


class IoError(Error, OSError):
    """The operating system reported an error."""


class CorruptionError(Error):
    """Stored bytes are damaged."""


class UnsupportedError(Error):
    """The data needs a newer version of Windrow or a feature that is off."""


class PoisonedError(Error):
    """An earlier write or sync failed, and it is unknown what is durable. Reads continue, writes fail: reopen the database."""


class ClosedError(Error, ValueError):
    """The database, iterator, snapshot or transaction has been closed."""


class ReadOnlyError(Error):
    """The database is open for reading only."""


class ConflictError(Error):
    """Another write came in between: nothing was written; try the transaction again."""


class DeadlockError(Error):
    """The transaction and others wait for each other's locks: roll it back, and try it again."""


class TimedOutError(Error, TimeoutError):
    """A lock was not free in time: roll the transaction back and try it again."""


class MergeError(Error):
    """The operands of a key could not be folded. Nothing is lost."""


class FellBehindError(Error):
    """Changes that were asked for are not kept any more: begin again with a snapshot and the changes behind it."""


class ForkError(Error, RuntimeError):
    """The database was opened before a fork of the process, and this is the child."""


class InternalError(Error, RuntimeError):
    """A bug in Windrow. The message says what happened."""
