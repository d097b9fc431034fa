"""Objects as YAML for people: without the book-keeping of the API server."""

import yaml

from kubeclient.objects import Obj
from kubeclient.yaml_writing import needs_quotes

# What the API server writes and nobody edits.
_OF_THE_SERVER = (
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "selfLink",
)


class _Dumper(yaml.CSafeDumper):
    """Texts of several lines are written as such, so that they can be read and edited; and what is
    there twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_of(obj: Obj) -> str:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return yaml_text({**obj, "metadata": metadata})


def editable_yaml(obj: Obj) -> str:
    """What a person may want to change."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _OF_THE_SERVER}
    return yaml_text({**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata})


def yaml_text(value: object) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000))
