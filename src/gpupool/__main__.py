"""`python -m gpupool`: the same as the command `gpupool`."""

from gpupool.cli.main import main

main()
