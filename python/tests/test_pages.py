# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README and docs/ that need no other packages; and what runs them."""

import os
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import pages

Pages = pages.case(full=False)

GOOD = """
```console
$ echo one; echo two 3 4 five
> echo six
one
two ... five
six
$ seq 9
1
...
9
$ export STELE_TEST_PAGES=1
$ echo $STELE_TEST_PAGES
1
```
```python
print("a")
x = 1
```
```text
a
```
"""


class Runner(unittest.TestCase):
    """What is shown must be what is printed."""

    def page(self, text):
        with tempfile.TemporaryDirectory(dir=os.environ["TEST_DIR"]) as top:
            page = Path(top, "page.md")
            page.write_text(text)
            with unittest.mock.patch.dict(os.environ):
                return pages.run(page, False)

    def test_good(self):
        self.assertEqual(self.page(GOOD), (2, 0))
        self.assertEqual(self.page("```python full\n1/0\n```\n" + GOOD), (3, 1))

    def test_bad(self):
        for old, new in (
            ("one\ntwo", "two"), ("two ... five", "two ... seven"), ("$ seq 9", "$ seq 8"),
            ("$ seq 9", "$ seq 9; false"), ("$ export", "$ : export"), ('"a"', '"b"'), ("x = 1", "x = y"),
            ("```text\na\n```\n", ""), ("```text\na", "```text\n"), ("```python", "```ruby"),
            ("```python", "```python slow"), ("```text", "and\n```text"),
        ):  # fmt: skip
            self.assertIn(old, GOOD)
            with self.subTest(new), self.assertRaises((AssertionError, NameError, ValueError)):
                self.page(GOOD.replace(old, new, 1))
