# SPDX-License-Identifier: Apache-2.0
"""python -m stele: the stele command."""

from stele_command import main

if __name__ == "__main__":
    main()
