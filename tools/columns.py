"""Makes src/localkube/apiserver/tables/columns.json from the recorded tables.

    python3 -m tools.columns

Column definitions are facts about kube-apiserver; tests/conformance/record/tables.py records them.
"""

import json
from pathlib import Path
from typing import Any

from localkube.apiserver.tables.rows import ROWS

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests/conformance/fixtures/tables.json"
REQUESTS = ROOT / "tests/conformance/fixtures/requests.json"
TARGET = ROOT / "src/localkube/apiserver/tables/columns.json"
# Its two columns are those of every kind that the server has no printer for.
DEFAULT = "rbac.authorization.k8s.io/roles"


def _scales() -> dict[str, Any]:
    """No resource that can be listed, so it was recorded with the requests."""
    requests = json.loads(REQUESTS.read_text())
    found = next(each for each in requests if each["name"] == "table: of a scale")
    return {"columns": found["response"]["columnDefinitions"]}


def main() -> None:
    recorded = json.loads(RECORDED.read_text()) | {"autoscaling/scales": _scales()}
    descriptions: dict[str, int] = {}
    columns = {}
    for resource, table in sorted({**recorded, "": recorded[DEFAULT]}.items()):
        if resource and resource not in ROWS:
            continue
        columns[resource] = [
            [
                column["name"],
                column["type"],
                column["format"],
                descriptions.setdefault(column["description"], len(descriptions)),
                column["priority"],
            ]
            for column in table["columns"]
        ]
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in columns.items())
    texts = ",\n".join(f"  {json.dumps(text, ensure_ascii=False)}" for text in descriptions)
    TARGET.write_text(f'{{\n "columns": {{\n{lines}\n }},\n "descriptions": [\n{texts}\n ]\n}}\n')
    print(f"{TARGET.name}: {len(columns)} resources, {len(descriptions)} descriptions")


if __name__ == "__main__":
    main()
