"""What would help a pod that waits, in the visitor's language.

The scheduler says it in English (`gpupool.scheduler.next_step`), with names and numbers in it."""

import re

from gpupool.console.words import Translate, word

_FORMS = (
    word(
        "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
        "or add a node."
    ),
    word("See why cards are out of use (gpupool gpu list), or add a node."),
    word("Request {other}, or add a node that offers {wanted}."),
    word("Request {most} or fewer cards, or add a node with {count}."),
    word("Request {most} or fewer units, or add a node with larger cards."),
)
_ASKS = (word("a share (aliyun.com/gpu-mem)"), word("a whole card (nvidia.com/gpu)"))


def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(form)))


_PATTERNS = tuple((_pattern(form), form) for form in _FORMS)


def step_words(t: Translate, said: str) -> str:
    """As it was said, if there are no words for it."""
    for pattern, form in _PATTERNS:
        if found := pattern.fullmatch(said):
            values = found.groupdict()
            return t(form, **{key: t(value) for key, value in values.items()})
    return said
