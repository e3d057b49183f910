#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install.sh PACKAGE... - by apt, and nothing that comes with them is started
#
# Packages of Ceph, mdadm and others start services when they are installed, unless
# a policy says no (invoke-rc.d(8)); tests need programs only. Files are not synced one
# by one: that halves the time, and after a crash one would install again anyway.
set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q install -y --no-install-recommends \
	-o Dpkg::Options::=--force-unsafe-io "$@"
