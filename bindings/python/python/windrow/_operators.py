"""What a merge operator in Python is."""

from typing import Protocol


class MergeOperator(Protocol):
    """How a keyspace folds operands into values: for `merge_operators` of `windrow.open`.

    The functions are called by any thread, any number of times for the same operands, so the result depends on the arguments
    only, and for as long as the data lives. They make no calls of the database. An exception is a `MergeError` of the reads of
    this key, and loses nothing. An operator may also have `partial_merge(key, operands)`, which returns one operand with the
    effect of all operands, at least two, oldest first, on any base; or `None` if there is none.
    """

    @property
    def name(self) -> str:
        """The name, of 1 to 255 bytes, which the database records: later opens must give an operator of this name."""

    def merge(self, key: bytes, base: bytes | None, operands: list[bytes], /) -> bytes:
        """The value of `key` after all `operands`, oldest first, were applied to `base`, or to no value."""
