# SPDX-License-Identifier: Apache-2.0
"""python -m stele: the stele command, of this package or of the system."""

import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Become the command. Exit status 127: there is none."""
    own = Path(__file__).with_name("stele")
    command = str(own) if os.access(own, os.X_OK) else shutil.which("stele")
    if not command:
        print("stele: the command is not installed", file=sys.stderr)
        sys.exit(127)
    os.execv(command, ["stele", *sys.argv[1:]])


if __name__ == "__main__":
    main()
