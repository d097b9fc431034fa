"""localkube is worth having alone: it does not know which product it serves."""

import re
from pathlib import Path

import localkube

PACKAGE = Path(localkube.__file__).parent
WORDS = re.compile(rb"gpu|aliyun|nvidia|cuda", re.IGNORECASE)  # "cgpu" and "gpupool" have a "gpu"


def test_there_is_no_word_of_gpus_or_of_any_product_in_localkube() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {line.decode(errors='replace').strip()[:80]}"
        for path in sorted(PACKAGE.rglob("*"))
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".json", ".yaml"}
        for line in path.read_bytes().splitlines()
        if WORDS.search(line)
    ]
    assert not found
