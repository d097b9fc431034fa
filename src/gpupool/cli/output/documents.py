"""Documents as text for programs: JSON or YAML. Pure."""

import json

from gpupool.cli.output.table import Document


def json_text(document: Document, *, one_line: bool = False) -> str:
    """`one_line`: one of many, each on a line of its own."""
    if one_line:
        return json.dumps(document, separators=(",", ":"))
    return json.dumps(document, indent=2)


def yaml_text(document: Document) -> str:
    from kubeclient.yaml_writing import dump_yaml

    return dump_yaml(document).rstrip("\n")
