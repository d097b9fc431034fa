"""Objects as YAML for people: without the book-keeping of server-side apply."""

import yaml

from kubeclient.objects import Obj


def yaml_of(obj: Obj) -> str:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    shown = {**obj, "metadata": metadata}
    return str(yaml.dump(shown, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True))
