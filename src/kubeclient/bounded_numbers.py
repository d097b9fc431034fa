"""Whole numbers in texts that others write."""

_DIGITS = 18  # fit 64 bits


def bounded_number(text: str, digits: int = _DIGITS) -> int | None:
    """In ASCII digits alone, as Kubernetes writes them; None: it is none, or has more digits.

    int() reads other scripts, spaces and underscores as well, and raises an error of its own from
    4,300 digits on, also for a text that consists of nothing but digits."""
    is_one = 0 < len(text) <= digits and text.isascii() and text.isdigit()
    return int(text) if is_one else None


def first_digits(digits: str) -> int:
    """For numbers of which more digits mean no more, such as percentages."""
    return int(digits.lstrip("0")[:_DIGITS] or "0")
