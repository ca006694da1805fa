"""What changes and the list of consumers are made of."""

from dataclasses import dataclass
from typing import Literal, NamedTuple


class Write(NamedTuple):
    """A write of a batch that was committed."""

    kind: Literal["put", "delete", "merge", "delete_range"]
    #: The name that the keyspace had then.
    keyspace: str
    #: The key; that of the first entry of a range.
    key: bytes
    #: The value of a put, or the operand of a merge.
    value: bytes | None
    #: The key behind a range; `None` for a range without an end.
    end: bytes | None
    #: When the entry expires, in seconds since 1970; `None` if it never does.
    expires_at: float | None


@dataclass(frozen=True)
class ConsumerStats:
    """What a consumer holds."""

    name: str
    #: It has done with every change up to this sequence number.
    acknowledged: int
    #: Whether it has fallen behind: it holds nothing, and changes behind its place may be gone.
    is_behind: bool
    #: The bytes on disk that are there for consumers alone.
    held_bytes: int
