"""What all tests share: an open database in a folder of its own, and a keyspace of it."""

import windrow
import pytest


@pytest.fixture
def db(tmp_path):
    with windrow.open(tmp_path / "db") as opened:
        yield opened


@pytest.fixture
def keyspace(db):
    return db.keyspace("main")


@pytest.fixture
def planets(keyspace):
    keyspace.update({b"earth": b"1", b"jupiter": b"97", b"mars": b"2", b"venus": b"0"})
    return keyspace
