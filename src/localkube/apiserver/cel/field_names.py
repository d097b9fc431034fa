"""How expressions spell fields whose names are no names in CEL: `self.max__dash__size`. Pure."""

import re
from collections.abc import Container

_SIGNS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WORDS = {spelt.strip("_"): sign for sign, spelt in _SIGNS.items()}
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    }
)
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_SPELT = re.compile("__([^_]+)__")


def escaped(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    return _SIGN.sub(lambda match: _SIGNS[match[0]], name)


def unescaped(spelt: str) -> str:
    """The name itself if it is none that `escaped` makes."""
    if spelt[2:-2] in _RESERVED and spelt == f"__{spelt[2:-2]}__":
        return spelt[2:-2]
    return _SPELT.sub(lambda match: _WORDS.get(match[1], match[0]), spelt)


def name_in(fields: Container[object], spelt: str) -> str:
    """As it stands if it is there: keys of maps are not spelt out, and no type tells them apart."""
    return spelt if "__" not in spelt or spelt in fields else unescaped(spelt)
