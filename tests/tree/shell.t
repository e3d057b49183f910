#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# shell.t - shellcheck has nothing to say
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

requires shellcheck --version

for file in $(git ls-files '*.sh' '*.t' .ci/run); do
	ok "$file" shellcheck "$file"
done

done_testing
