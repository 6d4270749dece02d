"""Rows of a log that nobody decided, and processes that append them."""

from __future__ import annotations

import sys

from hybandits.service.log import ALL, Decision, Reward, Row, Store, open_store


def decision(number: int, event: str, *, time: int = 0) -> Row:
    content = Decision(
        event=event, user={"age": 0.5}, candidates=ALL, version=number - 1, n=2, arm="a", arm_version=1, chance=0.5,
        floor=0.05, distribution=[(0, 0.5)], policy="live", fingerprint="f",
    )  # fmt: skip
    return Row(number, time or number, content)


def reward(number: int, event: str, of: int, value: float = 1.0, *, late: bool = False) -> Row:
    return Row(number, number, Reward(event, of, value, late))


def append(store: Store, *rows: Row) -> None:
    with store.writing() as transaction:
        transaction.append(rows)


def append_many(address: str, name: str, transactions: int) -> None:
    """Append one to three rows in each of so many transactions."""
    store = open_store(address)
    for i in range(transactions):
        with store.writing() as transaction:
            first = transaction.last()[0] + 1
            transaction.append([decision(first + j, f"{name} {i} {j}") for j in range(1 + i % 3)])
    store.close()


def hold(address: str) -> None:
    """Append a row, say so, and never commit it."""
    with open_store(address).writing() as transaction:
        transaction.append([decision(transaction.last()[0] + 1, "never committed")])
        print("holding", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(sys.argv[2])
    else:
        append_many(sys.argv[2], sys.argv[3], int(sys.argv[4]))
