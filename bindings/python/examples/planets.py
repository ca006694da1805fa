"""A keyspace as an ordered mapping."""

import tempfile

import windrow

with tempfile.TemporaryDirectory() as folder, windrow.open(folder) as db:
    planets = db.keyspace("planets")
    planets.update({b"earth": b"1", b"jupiter": b"97", b"mars": b"2", b"venus": b"0"})
    planets[b"saturn"] = b"274"
    print("from e to k:", dict(planets[b"e":b"k"].items()))
    print("last:", planets.last(), "backward:", list(reversed(planets)))

    with db.snapshot() as snapshot:
        before = planets.at(snapshot)
    with db.batch() as batch:
        batch.delete(planets, b"earth")
        batch.put(planets, b"pluto", b"5")
    print("now:", list(planets), "before:", list(before))

    names = iter(planets)
    assert next(names) == names.prev() == b"jupiter"
