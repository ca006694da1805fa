"""The contract suite of all bindings: see `bindings/contract/README.md`."""

import json
import pathlib

import pytest

import windrow

SUITE = json.loads((pathlib.Path(__file__).parents[2] / "contract" / "suite.json").read_text())


def decoded(found):
    """Bytes of the suite."""
    if found is None:
        return None
    if isinstance(found, dict):
        return bytes.fromhex(found["byte"]) * found["times"]
    return bytes.fromhex(found)


class Session:
    """Runs the steps of a history."""

    def __init__(self, path):
        self.path = path
        self.open()

    def open(self):
        self.db = windrow.open(self.path, merge_operators=SUITE["merge_operators"])
        self.keyspaces = {name: self.db.keyspace(name) for name in ("main", "lists")}
        self.snapshots, self.transactions, self.savepoints = {}, {}, {}

    def view(self, step):
        view = self.keyspaces[step["keyspace"]]
        if "snapshot" in step:
            view = view.at(self.snapshots[step["snapshot"]])
        return view[decoded(step.get("start")) : decoded(step.get("end"))]

    def write(self, target, step):
        """A write to a batch or a transaction."""
        keyspace = self.view(step)
        if step["do"] == "put":
            target.put(keyspace, decoded(step["key"]), decoded(step["value"]))
        elif step["do"] == "delete":
            target.delete(keyspace, decoded(step["key"]))
        elif step["do"] == "merge":
            target.merge(keyspace, decoded(step["key"]), decoded(step["operand"]))
        else:
            target.delete_range(keyspace)

    def put(self, step):
        self.view(step).put(decoded(step["key"]), decoded(step["value"]))

    def delete(self, step):
        self.view(step).delete(decoded(step["key"]))

    def merge(self, step):
        self.view(step).merge(decoded(step["key"]), decoded(step["operand"]))

    def delete_range(self, step):
        self.view(step).clear()

    def batch(self, step):
        with self.db.batch() as batch:
            for write in step["writes"]:
                self.write(batch, write)

    def get(self, step):
        key = decoded(step["key"])
        if "transaction" in step:
            found = self.transactions[step["transaction"]].get(self.view(step), key)
        else:
            found = self.view(step).get(key)
        assert found == decoded(step["value"])

    def scan(self, step):
        view, reverse = self.view(step), step["reverse"]
        if "transaction" in step:
            found = self.transactions[step["transaction"]].items(view, reverse=reverse)
        else:
            found = reversed(view.items()) if reverse else iter(view.items())
        assert list(found) == [(decoded(key), decoded(value)) for key, value in step["entries"]]

    def neighbors(self, step):
        keys = iter(self.view(step))
        for field, move in (("before", keys.prev), ("after", keys.__next__)):
            keys.seek(decoded(step["key"]))
            try:
                found = move()
            except StopIteration:
                found = None
            assert found == decoded(step[field])

    def snapshot(self, step):
        self.snapshots[step["snapshot"]] = self.db.snapshot()

    def release(self, step):
        self.snapshots.pop(step["snapshot"]).close()

    def begin(self, step):
        self.transactions[step["transaction"]] = self.db.transaction(isolation=step["isolation"])

    def commit(self, step):
        self.transactions.pop(step["transaction"]).commit()

    def roll_back(self, step):
        self.transactions.pop(step["transaction"]).roll_back()

    def savepoint(self, step):
        self.savepoints[step["savepoint"]] = self.transactions[step["transaction"]].savepoint()

    def roll_back_to(self, step):
        self.transactions[step["transaction"]].roll_back_to(self.savepoints[step["savepoint"]])

    def flush(self, step):
        self.db.flush()

    def compact(self, step):
        self.view(step).compact()

    def close(self, step):
        self.db.close()

    def reopen(self, step):
        self.db.close()
        self.open()

    def open_again(self, step):
        windrow.open(self.path)

    def run(self, step):
        if "transaction" in step and step["do"] in ("put", "delete", "merge", "delete_range"):
            self.write(self.transactions[step["transaction"]], step)
        else:
            getattr(self, step["do"])(step)


@pytest.mark.parametrize("history", SUITE["histories"], ids=lambda history: history["name"])
def test_the_answers_are_those_of_the_suite(history, tmp_path):
    session = Session(tmp_path)
    for step in history["steps"]:
        if "error" in step:
            with pytest.raises(getattr(windrow, step["error"] + "Error")):
                session.run(step)
        else:
            session.run(step)
    session.db.close()
