"""The command `sweetrl`, which is the same as `python -m sweetrl`."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process."""
    # Loading the rest takes time, in which Ctrl-C would end in a traceback; `interrupts.listen` takes over after that.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sweetrl.cli import main as command_line

    command_line.main()


if __name__ == "__main__":
    main()
