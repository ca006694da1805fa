"""What a list of backups is made of."""

from dataclasses import dataclass

from ._errors import Error


@dataclass(frozen=True)
class Backup:
    """A backup of a list. `error` says why it cannot be used; then the rest is 0."""

    number: int
    #: When it was made, in seconds since 1970.
    created: float = 0.0
    #: The newest sequence number that it holds.
    sequence: int = 0
    #: The files of the database.
    files: int = 0
    #: The bytes of these files.
    bytes: int = 0
    #: The bytes that no other backup needs.
    own_bytes: int = 0
    error: Error | None = None
