"""ChangeLog: which nodes changed, in order. Readers keep their position and catch up from there."""

KEPT = 8192  # a reader that is further behind looks at everything again


class ChangeLog:
    __slots__ = ("_dropped", "_entries")

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        return self._dropped + len(self._entries)

    def append(self, node: int) -> None:
        self._entries.append(node)
        if len(self._entries) > 2 * KEPT:
            del self._entries[:KEPT]
            self._dropped += KEPT

    def since(self, position: int) -> list[int] | None:
        """The nodes that changed since; None: too long ago to tell."""
        start = position - self._dropped
        return self._entries[start:] if start >= 0 else None
