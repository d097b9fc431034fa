"""Writes YAML that every reader reads as it was meant.

Readers differ in what they take for a number, a truth value or a date: versions 1.1 and 1.2 of YAML
do, and the readers of Python, Go (kubectl), Ruby and JavaScript each go beyond them.
"""

import re

import yaml

# Blanks in numbers are left out before: readers allow them in different places.
_BLANKS = str.maketrans("", "", "_,")
_NOT_TEXT = re.compile(
    r"""
      [-+]?0x[0-9a-f]+ | [-+]?0o[0-7]+ | [-+]?0b[01]+
    | [-+]?(\.[0-9]+ | [0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?
    | [-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?              # in base 60: 12:30
    | [-+]?\.(inf|nan)?
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}((t|[ \t]+)[0-9].*)?
    | y | n | yes | no | on | off | true | false | null | ~
    | :.+                                                # a symbol of Ruby
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def needs_quotes(text: str) -> bool:
    """Whether some reader would take the text for something else: 1e3, 0X1F, 1_000, 12:30, y."""
    return _NOT_TEXT.fullmatch(text.translate(_BLANKS)) is not None


class _Dumper(yaml.CSafeDumper):
    """What is there twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump_yaml(value: object, *, allow_unicode: bool = False) -> str:
    """Plain data, its keys in their order."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode))
