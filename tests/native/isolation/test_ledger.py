"""What the limiter remembers of each allocation, and the work that this takes."""

import subprocess
from pathlib import Path

from native import build
from tests.native.simulated import compile_c

HOOKS = build.HERE / "isolation" / "hooks"


def test_a_context_ends_in_about_the_work_of_freeing_its_memory_piece_by_piece(
    tmp_path: Path,
) -> None:
    """Instructions are counted, which depend on nothing else. A search of the whole table for each
    allocation would take fifty times the work, while all other threads wait."""
    program = tmp_path / "ledger_steps"
    source = Path(__file__).with_name("ledger_steps.c")
    compile_c(source, program, f"-I{HOOKS}", str(HOOKS / "ledger.c"))
    done = subprocess.run(
        [program, "500", "3"], capture_output=True, text=True, check=True, timeout=100
    )
    piece_by_piece, at_once = map(int, done.stdout.split())
    assert at_once < 3 * piece_by_piece
