#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# full.t - the package with what people train with, each the real one (requirements.txt)
. "${0%/*}/../../../tests/tap.sh"

python=$BUILD/venv-full/bin/python
requires test -x "$python"
requires test -e "$BUILD/python/done"

trap - EXIT # run.py says how many there were
PYTHONPATH=$BUILD/python:$PWD/python/tests/full PYTHONDONTWRITEBYTECODE=1 TEST_DIR=$tmp \
	"$python" -X faulthandler -W ignore python/tests/run.py --in python/tests/full "$@"
result=$?
rm -rf "$tmp"
exit $result
