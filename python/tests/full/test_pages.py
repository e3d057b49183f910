# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README and docs/, all of them."""

import pages

Pages = pages.case(full=True)
