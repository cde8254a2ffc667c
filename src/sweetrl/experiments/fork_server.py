"""Makes the process that imports it end with its parent, and on Ctrl-C without a traceback; for warm workers alone.

Stages are forked from a process that imports this before anything else: Python's fork server looks at Ctrl-C and at the
end of the run only when it has loaded everything, which takes seconds.
"""

import signal

from sweetrl.experiments.processes import die_with_parent

die_with_parent()
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
