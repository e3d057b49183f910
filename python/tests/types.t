#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# types.t - what type checkers say of the package, and of a program that uses it
. "${0%/*}/../../tests/tap.sh"

requires test -x "$BUILD/venv/bin/mypy"

export PYRIGHT_PYTHON_IGNORE_WARNINGS=1 # of a newer version
checks() { (cd python && "$BUILD/venv/bin/$1" "${@:2}"); }

ok "mypy --strict" checks mypy --no-error-summary --cache-dir "$BUILD/python/mypy" \
	--python-executable "$BUILD/venv/bin/python"
if checks pyright --version >/dev/null 2>&1; then
	ok "pyright" checks pyright --pythonpath "$BUILD/venv/bin/python"
else
	skip_block 1 "needs pyright"
fi
done_testing
