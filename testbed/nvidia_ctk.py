"""Stands in for `nvidia-ctk cdi generate`: writes a CDI file for the simulated cards of a node.

    python -m testbed.nvidia_ctk --driver DIRECTORY --output /etc/cdi/nvidia.json

A simulated card has no device node of its own. A device that every machine has stands in for it,
under the name that the card would have, so that a container tells its card by name.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from gpupool.hardware.simdriver import NodeFiles, read_cards

DRIVER = "/usr/local/nvidia"  # in containers
KIND = "nvidia.com/gpu"


def cdi_spec(driver: NodeFiles) -> dict[str, object]:
    """As nvidia-ctk writes it for a real driver."""
    return {
        "cdiVersion": "0.5.0",
        "kind": KIND,
        "devices": [
            {
                "name": card.uuid,
                "containerEdits": {
                    "deviceNodes": [{"path": f"/dev/nvidia{number}", "hostPath": "/dev/zero"}]
                },
            }
            for number, card in enumerate(read_cards(driver))
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": "/dev/nvidiactl", "hostPath": "/dev/null"}],
            "mounts": [
                {
                    "hostPath": str(driver.directory),
                    "containerPath": DRIVER,
                    "options": ["rw", "nosuid", "nodev", "rbind"],
                }
            ],
        },
    }


def generate(driver: NodeFiles, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".new")
    unfinished.write_text(json.dumps(cdi_spec(driver)))
    unfinished.replace(target)  # readers never see half of it


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write a CDI file for simulated cards.")
    parser.add_argument("--driver", type=Path, required=True, help="directory of the driver")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    generate(NodeFiles(options.driver), options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
