"""Windrow beside plyvel, rocksdict and py-lmdb: puts, gets and scans of small entries, in turns.

All libraries do the same rounds, one after the other, so that a disturbance of the machine meets all of them. A figure is
the median of its rounds. Writes are not synced by any of them: `plyvel`, `rocksdict` and Windrow append to a log, and LMDB
commits each put, or 1000 at once for `put many`, without a sync.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

VALUE = bytes(range(100))


class Windrow:
    """The package itself."""

    def __init__(self, folder: str) -> None:
        import windrow

        self.db = windrow.open(folder)
        self.keyspace = self.db.keyspace("main")
        self.get, self.put = self.keyspace.get, self.keyspace.put

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self.keyspace.update(entries)

    def scan(self) -> Iterable[Any]:
        return self.keyspace.items()

    def settle(self) -> None:
        self.db.flush()
        self.db.wait_idle()

    def close(self) -> None:
        self.db.close()


class Plyvel:
    """plyvel, or Windrow by plyvel's interface."""

    module = "plyvel"

    def __init__(self, folder: str) -> None:
        plyvel = __import__(self.module, fromlist=["DB"])
        self.db = plyvel.DB(folder, create_if_missing=True, bloom_filter_bits=10, compression=None)
        self.get, self.put = self.db.get, self.db.put

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        with self.db.write_batch() as batch:
            for key, value in entries:
                batch.put(key, value)

    def scan(self) -> Iterable[Any]:
        return self.db.iterator()

    def settle(self) -> None:
        self.db.compact_range()

    def close(self) -> None:
        self.db.close()


class WindrowPlyvel(Plyvel):
    """Windrow by plyvel's interface."""

    module = "windrow.plyvel"


class Rocksdict:
    """RocksDB."""

    def __init__(self, folder: str) -> None:
        import rocksdict

        self.module = rocksdict
        self.db = rocksdict.Rdict(folder, options=rocksdict.Options(raw_mode=True))
        self.get, self.put = self.db.get, self.db.put

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        batch = self.module.WriteBatch(raw_mode=True)
        for key, value in entries:
            batch.put(key, value)
        self.db.write(batch)

    def scan(self) -> Iterable[Any]:
        return self.db.items()

    def settle(self) -> None:
        self.db.flush()

    def close(self) -> None:
        self.db.close()


class Lmdb:
    """py-lmdb: each get and put in a transaction of its own."""

    def __init__(self, folder: str) -> None:
        import lmdb

        self.db = lmdb.open(folder, map_size=1 << 32, sync=False, metasync=False)

    def get(self, key: bytes) -> Any:
        with self.db.begin(buffers=False) as transaction:
            return transaction.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        with self.db.begin(write=True) as transaction:
            transaction.put(key, value)

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        with self.db.begin(write=True) as transaction:
            for key, value in entries:
                transaction.put(key, value)

    def scan(self) -> Iterable[Any]:
        with self.db.begin() as transaction:
            yield from transaction.cursor()

    def settle(self) -> None:
        self.db.sync(True)

    def close(self) -> None:
        self.db.close()


LIBRARIES = {
    "windrow": Windrow,
    "windrow.plyvel": WindrowPlyvel,
    "plyvel": Plyvel,
    "rocksdict": Rocksdict,
    "lmdb": Lmdb,
}


def seconds(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", action="store_true", help="count the time of the calling thread on a processor only")
    arguments = parser.parse_args()
    clock = time.thread_time if arguments.busy else time.perf_counter
    count, rounds = arguments.entries, arguments.rounds
    keys = [b"key-%012d" % number for number in range(count)]
    opened: dict[str, Any] = {}
    folders = []
    for name, library in LIBRARIES.items():
        folder = tempfile.mkdtemp()
        folders.append(folder)
        try:
            opened[name] = library(folder)
        except ImportError:
            print(f"{name} is not installed")
    figures: dict[str, dict[str, list[float]]] = {}

    def measure(what: str, operations: int, work: Callable[[Any], Any]) -> None:
        names = list(opened)
        random.shuffle(names)
        for name in names:
            took = seconds(lambda: work(opened[name]), clock)
            figures.setdefault(what, {}).setdefault(name, []).append(took / operations * 1e6)

    def put(library: Any, chosen: list[bytes]) -> None:
        for key in chosen:
            library.put(key, VALUE)

    def put_many(library: Any) -> None:
        for start in range(0, count, 1000):
            library.put_many((key, VALUE) for key in keys[start : start + 1000])

    def get(library: Any, chosen: list[bytes]) -> None:
        for key in chosen:
            if library.get(key) != VALUE:
                raise SystemExit("a wrong answer")

    def scan(library: Any) -> None:
        if sum(1 for _ in library.scan()) != count:
            raise SystemExit("a wrong number of entries")

    for _ in range(rounds):
        chosen = random.sample(keys, count // 5)
        measure("put many", count, put_many)
        measure("put", len(chosen), lambda library: put(library, chosen))
        measure("get, just written", len(chosen), lambda library: get(library, chosen))
        for library in opened.values():
            library.settle()
        measure("get", len(chosen), lambda library: get(library, chosen))
        measure("scan", count, scan)
    width = max(map(len, opened)) + 2
    print(f"microseconds for an operation, median of {rounds}; in brackets: how many times as long as Windrow")
    print(" " * 20 + "".join(f"{name:>{width + 8}}" for name in opened))
    for what, by_name in figures.items():
        base = statistics.median(by_name["windrow"])
        cells = [f"{statistics.median(by_name[name]):.2f} ({statistics.median(by_name[name]) / base:.2f})" for name in opened]
        print(f"{what:20}" + "".join(f"{cell:>{width + 8}}" for cell in cells))
    for library in opened.values():
        library.close()
    for folder in folders:
        shutil.rmtree(folder)


main()
