#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# package.t - the Python package: its tests, each a line of TAP
. "${0%/*}/../../tests/tap.sh"

python=$BUILD/venv/bin/python
requires test -x "$python"
requires test -e "$BUILD/python/done"

trap - EXIT # run.py says how many there were
PYTHONPATH=$BUILD/python RICH=$BUILD/tests/cmd/rich TEST_DIR=$tmp \
	"$python" -X faulthandler python/tests/run.py
result=$?
rm -rf "$tmp"
exit $result
