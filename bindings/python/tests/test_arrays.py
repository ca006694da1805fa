"""Entries as Arrow record batches."""

import sys

import pytest

import windrow


def test_batches_have_all_entries(db, keyspace):
    pyarrow = pytest.importorskip("pyarrow")
    entries = {b"p/%05d" % number: bytes([number % 256]) * (number % 40) for number in range(10000)}
    keyspace.update(entries)
    keyspace[b"q"] = b"large" * 100000
    db.flush()
    batches = list(keyspace.scan_arrays(rows=4096))
    assert [batch.num_rows for batch in batches] == [4096, 4096, 1809]
    for batch in batches:
        batch.validate(full=True)
    table = pyarrow.Table.from_batches(batches)
    assert table.schema.names == ["key", "value"]
    assert dict(zip(table["key"].to_pylist(), table["value"].to_pylist())) == {**entries, b"q": b"large" * 100000}
    part = keyspace.prefix(b"p/")[b"00100":b"00102"]
    (batch,) = part.scan_arrays()
    assert batch.column("key").to_pylist() == [b"00100", b"00101"]
    assert list(keyspace[b"z":].scan_arrays()) == []
    keyspace.clear()
    db.close()
    assert batch.column("value").to_pylist() == [bytes([100]) * 20, bytes([101]) * 21]


def test_a_large_column_is_cut(db, keyspace):
    pytest.importorskip("pyarrow")
    value = bytes(1 << 24)
    for number in range(6):
        keyspace[b"%d" % number] = value
    assert [batch.num_rows for batch in keyspace.scan_arrays()] == [4, 2]


def test_errors_come_before_the_first_batch(monkeypatch, db, keyspace):
    with pytest.raises(windrow.InvalidArgumentError):
        keyspace._scan_arrays(0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="needs pyarrow"):
        keyspace.scan_arrays()
