"""LabelColumns: the value of a label on every node, as a number; 0: the node has no such label.

A column is made when a pod first refers to its key. Numbers belong to one key, and stay the same as
long as its column exists.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from gpupool.engine.policies.policy import Ints

MOST_KEYS = 512  # then the oldest is dropped, and made again when needed


class LabelColumns:
    def __init__(self) -> None:
        self._columns: dict[str, Ints] = {}
        self._numbers: dict[str, dict[str, int]] = {}

    def column(self, key: str, nodes: Iterable[tuple[int, Mapping[str, str]]], size: int) -> Ints:
        found = self._columns.get(key)
        if found is None:
            if len(self._columns) >= MOST_KEYS:
                oldest = next(iter(self._columns))
                del self._columns[oldest], self._numbers[oldest]
            found = self._columns[key] = np.zeros(size, dtype=np.int32)
            numbers = self._numbers[key] = {}
            for index, labels in nodes:
                value = labels.get(key)
                if value is not None:
                    found[index] = numbers.setdefault(value, len(numbers) + 1)
        return found

    def numbers(self, key: str) -> Mapping[str, int]:
        """Numbers of the values that nodes have or had."""
        return self._numbers[key]

    def set_node(self, index: int, labels: Mapping[str, str]) -> None:
        for key, column in list(self._columns.items()):
            value = labels.get(key)
            numbers = self._numbers[key]
            column[index] = 0 if value is None else numbers.setdefault(value, len(numbers) + 1)
            if len(numbers) > 2 * len(column):  # most values are of nodes that are gone
                del self._columns[key], self._numbers[key]

    def grow(self, size: int) -> None:
        for key, column in self._columns.items():
            self._columns[key] = np.concatenate(
                [column, np.zeros(size - len(column), dtype=np.int32)]
            )
