"""Money moves between accounts in transactions of several threads."""

import random
import tempfile
import threading

import windrow

ACCOUNTS = [b"ada", b"grace", b"alan"]

with tempfile.TemporaryDirectory() as folder, windrow.open(folder, durability="sync") as db:
    accounts = db.keyspace("accounts")
    accounts.update((name, b"100") for name in ACCOUNTS)

    def move(transaction: windrow.Transaction) -> None:
        giver, taker = random.sample(ACCOUNTS, 2)
        has = int(transaction.get(accounts, giver, b"0"))
        amount = random.randint(0, has)
        transaction.put(accounts, giver, b"%d" % (has - amount))
        transaction.put(accounts, taker, b"%d" % (int(transaction.get(accounts, taker, b"0")) + amount))

    def move_often() -> None:
        for _ in range(20):
            db.transact(move)

    threads = [threading.Thread(target=move_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(dict(accounts.items()))
    assert sum(int(money) for money in accounts.values()) == 300
