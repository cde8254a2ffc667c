"""Entry point of the zygote process."""

from .zygote import main

main()
