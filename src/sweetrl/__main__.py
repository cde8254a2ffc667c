"""`python -m sweetrl` is the same as `sweetrl`."""

from sweetrl.cli.main import main

main()
