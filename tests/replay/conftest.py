from pathlib import Path
from random import Random

import pytest

NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,16000,65536,2,T4
n1,32000,131072,4,V100
n2,64000,262144,8,A100
"""


@pytest.fixture
def nodes_file(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES, encoding="utf-8")
    return path


@pytest.fixture
def pods_file(tmp_path: Path) -> Path:
    draw = Random(1)
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time"]
    for at in range(60):
        cards, milli = draw.choice([(0, 0), (1, 1000), (1, 500), (1, 810), (1, 190), (4, 1000)])
        spec = draw.choice(["", "", "T4|V100", "A100"]) if cards == 1 else ""
        begin = draw.randrange(1000)
        lines.append(
            f"p{at},{draw.choice([1000, 4000])},4096,{cards},{milli},{spec},{begin},{begin + 500}"
        )
    path = tmp_path / "pods.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
