"""Where the examples are: manifests that come with gpupool."""

from pathlib import Path

import gpupool


def known_examples() -> dict[str, Path]:
    """The manifests by name."""
    return {path.stem: path for path in sorted(_directory().glob("*.yaml"))}


def _directory() -> Path:
    """Inside the installed package; in a checkout, beside `src`."""
    package = Path(gpupool.__file__).parent
    inside = package / "examples"
    return inside if inside.exists() else package.parent.parent / "examples"
