# SPDX-License-Identifier: Apache-2.0
"""What `stele` and `python -m stele` are: the command of this package, or of the system.

It lies beside the package, because importing anything of that imports all of it.
"""

import signal

# Whoever imports this becomes the command: Ctrl-C ends it as a command of C, without a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys


def main() -> None:
    """Become the command. Exit status 127: there is none."""
    command: str | None = os.path.join(os.path.dirname(__file__), "stele", "stele")
    if not (command and os.access(command, os.X_OK)):
        import shutil

        command = shutil.which("stele")
    if not command:
        print("stele: the command is not installed", file=sys.stderr)
        sys.exit(127)
    # Python ignores it, and what it becomes would: | head is no error.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execv(command, ["stele", *sys.argv[1:]])
