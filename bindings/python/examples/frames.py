"""Entries as a table of Arrow, and from there as a data frame of polars or pandas, if they are installed."""

import importlib.util
import tempfile

import windrow

if importlib.util.find_spec("pyarrow") is None:
    raise SystemExit("needs pyarrow")

import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: E402
import pyarrow.compute  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: E402

with tempfile.TemporaryDirectory() as folder, windrow.open(folder) as db:
    visits = db.keyspace("visits")
    visits.update((b"2026-01-%02d/%04d" % (day, visit), b"/page") for day in range(1, 29) for visit in range(100))
    january = visits.prefix(b"2026-01-")
    table = pyarrow.Table.from_batches(january[b"07/":b"14/"].scan_arrays())
    days = pyarrow.compute.binary_slice(table["key"], 0, 2)
    print(table.num_rows, "visits on days", days.unique().to_pylist())
    if importlib.util.find_spec("polars"):
        import polars  # type: ignore[import-not-found, unused-ignore]

        print(polars.from_arrow(table))
    if importlib.util.find_spec("pandas"):
        print(table.to_pandas().describe())
