"""Entries as Arrow record batches. The rows of a batch come as two buffers for each column, which Arrow uses in place."""

import importlib
from collections.abc import Iterator
from typing import Any

from ._windrow import View


def scan(view: View, rows: int) -> Iterator[Any]:
    """The entries of a view in batches of at most `rows` rows."""
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError("scan_arrays() needs pyarrow: pip install 'windrow[arrow]'") from error
    return _batches(pyarrow, view._scan_arrays(rows))


def _batches(pyarrow: Any, chunks: Any) -> Iterator[Any]:
    schema = pyarrow.schema([("key", pyarrow.binary()), ("value", pyarrow.binary())])
    for count, *buffers in chunks:
        key_offsets, keys, value_offsets, values = map(pyarrow.py_buffer, buffers)
        columns = [
            pyarrow.Array.from_buffers(pyarrow.binary(), count, [None, offsets, column])
            for offsets, column in ((key_offsets, keys), (value_offsets, values))
        ]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)
