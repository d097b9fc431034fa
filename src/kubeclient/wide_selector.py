"""WideSelector: a label selector of many keys or values. A match looks at the labels of the object,
not at all that the selector names: selectors may name thousands, and objects have few labels."""

from collections.abc import Iterable, Mapping


class WideSelector:
    __slots__ = ("_absent", "_needed", "_none_of", "_one_of")

    def __init__(
        self,
        *,
        one_of: Iterable[tuple[str, Iterable[str]]],  # of a key: all of them must hold
        none_of: Iterable[tuple[str, Iterable[str]]],
        present: Iterable[str],
        absent: Iterable[str],
    ) -> None:
        self._one_of: dict[str, frozenset[str]] = {}
        self._none_of: dict[str, set[str]] = {}
        for key, values in one_of:
            allowed = self._one_of.get(key)
            self._one_of[key] = (
                frozenset(values) if allowed is None else allowed.intersection(values)
            )
        for key, values in none_of:
            self._none_of.setdefault(key, set()).update(values)
        self._absent = frozenset(absent)
        self._needed = frozenset(present).union(self._one_of)

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self._needed) > len(labels) or not self._absent.isdisjoint(labels):
            return False
        if any(key not in labels for key in self._needed):
            return False
        if any(labels[key] not in values for key, values in self._one_of.items()):
            return False
        both = self._none_of.keys() & labels.keys()
        return not any(labels[key] in self._none_of[key] for key in both)
