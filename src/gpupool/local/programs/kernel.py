"""A kernel of a notebook, which all who look (nvidia-smi and the like) see as `python3`.

Jupyter starts kernels by the path of its own Python, which is one of this machine and of no image.
Jupyter runs this file by its path, so that a file of the user with the name of a package of ours is
not taken for it.
"""

import contextlib
import sys

_TITLE = "python3"


def main() -> None:
    # The directory of this file: nothing in it is for users.
    del sys.path[0]
    # The kernel of Linux may refuse it; the program can do without.
    with contextlib.suppress(OSError, ImportError):
        from localkube.kubelet.programs.run_module import call_itself

        call_itself(_TITLE)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
