"""The contract suite of all bindings: see `bindings/contract/README.md`."""

import json
import pathlib
import time

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


def time_to_live(step):
    """The time to live of a put, in seconds."""
    return step["ttl"] / 1000 if "ttl" in step else None


# What is bytes of a write.
BYTES = ("key", "value", "operand", "start", "end")


class Session:
    """Runs the steps of a history."""

    def __init__(self, path):
        self.path = path
        self.began = time.time()
        self.open()

    def open(self):
        self.db = windrow.open(
            self.path, merge_operators=SUITE["merge_operators"], lock_timeout=SUITE["lock_timeout"] / 1000
        )
        self.keyspaces = {name: self.db.keyspace(name) for name in ("main", "lists")}
        self.snapshots, self.transactions, self.savepoints = {}, {}, {}
        # With the numbers of the changes that were read last.
        self.consumers, self.read = {}, {}

    def view(self, step):
        view = self.keyspaces[step["keyspace"]]
        if "snapshot" in step:
            view = view.at(self.snapshots[step["snapshot"]])
        return view[decoded(step.get("start")) : decoded(step.get("end"))]

    def write(self, target, step):
        """A write to a batch or a transaction."""
        keyspace = self.view(step)
        if step["do"] == "put":
            target.put(keyspace, decoded(step["key"]), decoded(step["value"]), ttl=time_to_live(step))
        elif step["do"] == "delete":
            target.delete(keyspace, decoded(step["key"]))
        elif step["do"] == "merge":
            target.merge(keyspace, decoded(step["key"]), decoded(step["operand"]))
        else:
            target.delete_range(keyspace)

    def put(self, step):
        self.view(step).put(decoded(step["key"]), decoded(step["value"]), ttl=time_to_live(step))

    def delete(self, step):
        self.view(step).delete(decoded(step["key"]))

    def merge(self, step):
        self.view(step).merge(decoded(step["key"]), decoded(step["operand"]))

    def delete_range(self, step):
        self.view(step).clear()

    def put_if_absent(self, step):
        assert self.view(step).put_if_absent(decoded(step["key"]), decoded(step["value"])) is step["done"]

    def compare_and_swap(self, step):
        key, expected, value = (decoded(step[field]) for field in ("key", "expected", "value"))
        assert self.view(step).compare_and_swap(key, expected, value) is step["done"]

    def batch(self, step):
        with self.db.batch() as batch:
            for write in step["writes"]:
                self.write(batch, write)

    def get(self, step):
        key = decoded(step["key"])
        if "transaction" in step:
            transaction = self.transactions[step["transaction"]]
            get = transaction.get_for_update if "for_update" in step else transaction.get
            found = get(self.view(step), key)
        else:
            found = self.view(step).get(key)
        assert found == decoded(step["value"])

    def multi_get(self, step):
        found = self.view(step).get_many([decoded(key) for key in step["keys"]])
        assert found == [decoded(value) for value in step["values"]]

    def milliseconds(self, expiry):
        """The time to live of what expires then. It has whole hours, and no history takes as long."""
        return None if expiry is None else round((expiry - self.began) / 3600) * 3_600_000

    def expires_at(self, step):
        try:
            found = {"exists": True, "ttl": self.milliseconds(self.view(step).expires_at(decoded(step["key"])))}
        except KeyError:
            found = {"exists": False}
        assert found == {field: step[field] for field in ("exists", "ttl") if field in step}

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
        if step["isolation"] == "locking":
            transaction = self.db.locking_transaction()
        else:
            transaction = self.db.transaction(isolation=step["isolation"])
        self.transactions[step["transaction"]] = transaction

    def commit(self, step):
        self.transactions.pop(step["transaction"]).commit()

    def roll_back(self, step):
        self.transactions.pop(step["transaction"]).roll_back()

    def savepoint(self, step):
        self.savepoints[step["savepoint"]] = self.transactions[step["transaction"]].savepoint()

    def roll_back_to(self, step):
        self.transactions[step["transaction"]].roll_back_to(self.savepoints[step["savepoint"]])

    def prepare(self, step):
        self.transactions.pop(step["transaction"]).prepare(step["name"])

    def prepared_names(self, step):
        assert self.db.prepared_names() == step["names"]

    def commit_prepared(self, step):
        self.db.commit_prepared(step["name"])

    def roll_back_prepared(self, step):
        self.db.roll_back_prepared(step["name"])

    def consumer(self, step):
        self.consumers[step["name"]] = self.db.consumer(step["name"])

    def consumer_names(self, step):
        assert [consumer.name for consumer in self.db.consumers()] == step["names"]

    def changed(self, write):
        """A write of a change as the suite has it."""
        changed = {"do": write.kind, "keyspace": write.keyspace}
        if write.kind == "delete_range":
            return changed | {"start": write.key, "end": write.end}
        changed["key"] = write.key
        if write.kind != "delete":
            changed["operand" if write.kind == "merge" else "value"] = write.value
        if write.expires_at is not None:
            changed["ttl"] = self.milliseconds(write.expires_at)
        return changed

    def changes(self, step):
        with self.consumers[step["name"]].changes(timeout=0) as feed:
            changes = list(feed)
        self.read[step["name"]] = [change.sequence for change in changes]
        for change in changes:
            assert change.kind == "batch" and change.sequence + 1 - change.first_sequence == len(change.writes)
        expected = [
            [{name: decoded(value) if name in BYTES else value for name, value in write.items()} for write in change]
            for change in step["changes"]
        ]
        assert [[self.changed(write) for write in change.writes] for change in changes] == expected

    def acknowledge(self, step):
        consumer, sequence = self.consumers[step["name"]], self.read[step["name"]][step["count"] - 1]
        consumer.acknowledge(sequence)
        assert consumer.acknowledged() == sequence

    def remove_consumer(self, step):
        self.db.remove_consumer(step["name"])

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
