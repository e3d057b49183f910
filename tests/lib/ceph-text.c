/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph-text.c - addresses in `ceph mon dump`, keys in keyrings
 *
 * What Ceph 16 printed, with monitors of both messengers, and what it does not
 * print.
 */
#include "lib/device/rbd/ceph_text.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                    \
	"epoch 1\nfsid 546e2805-0636-4789-87fc-bc376c527aad\n"  \
	"last_changed 2026-11-21T09:43:17.185333+0000\n"        \
	"min_mon_release 16 (pacific)\nelection_strategy: 1\n"

static void is_monitors(const char *wanted, const char *mode, const char *dump,
			bool secure, const char *what)
{
	const char *seen_mode = "?";
	char *seen = NULL;
	int err = stele_ceph_monitors(dump, strlen(dump), secure, &seen,
				      &seen_mode);

	is_int(wanted ? 0 : -EUCLEAN, err, "%s", what);
	is_string(wanted, seen, "%s: addresses", what);
	is_string(mode, seen_mode, "%s: mode", what);
	free(seen);
}

static void test_monitors(void)
{
	static const char both[] = HEAD
		"0: [v2:192.0.2.1:3300/0,v1:192.0.2.1:6789/0] mon.a\n"
		"1: [v2:[2001:db8::2]:3300/0,v1:[2001:db8::2]:6789/0] mon.b\n";

	is_monitors("192.0.2.2:10016", "prefer-crc",
		    HEAD "0: v2:192.0.2.2:10016/0 mon.a\n", false,
		    "one monitor, v2 alone");
	is_monitors("192.0.2.1:6789", NULL,
		    HEAD "0: v1:192.0.2.1:6789/0 mon.a", false,
		    "v1 alone, no newline");
	is_monitors("192.0.2.1:6789,[2001:db8::2]:6789", NULL, both, false,
		    "both, all kernels know v1");
	is_monitors("192.0.2.1:3300,[2001:db8::2]:3300", "secure", both, true,
		    "both, encrypted");
	is_monitors(NULL, NULL, HEAD "0: v1:192.0.2.1:6789/0 mon.a\n", true,
		    "v1 cannot encrypt");
	is_monitors("192.0.2.1:3300,192.0.2.2:3300", "prefer-crc", HEAD
		    "0: [v2:192.0.2.1:3300/0,v1:192.0.2.1:6789/0] mon.a\n"
		    "1: v2:192.0.2.2:3300/0 mon.b\n", false,
		    "one of them has no v1");
	is_monitors(NULL, NULL, HEAD
		    "0: v1:192.0.2.1:6789/0 mon.a\n"
		    "1: v2:192.0.2.2:3300/0 mon.b\n", false,
		    "nothing that all have");
	is_monitors(NULL, NULL, HEAD, false, "no monitors");
	is_monitors(NULL, NULL, "", false, "nothing at all");
	is_monitors(NULL, NULL, HEAD "0: v2:192.0.2.2:10016", false, "cut off");
}

static void is_key(const char *wanted, const char *text, const char *user,
		   const char *what)
{
	char *key = NULL;
	int err = stele_ceph_keyring_find(text, user, &key);

	is_int(wanted ? 0 : -ENOENT, err, "%s", what);
	if (wanted)
		is_string(wanted, key, "%s: the key", what);
	free(key);
}

static void test_keyring(void)
{
	static const char keyring[] = "[mon.]\n\tkey = MON==\n"
		"\tcaps mon = \"allow *\"\n[client.admin]\n\tkey = ADMIN==\n"
		"\tcaps mon = \"allow *\"\n[client.admin2]\nkey=OTHER==\r\n"
		"[osd.0]\n\tkey = OSD==\n";

	is_key("ADMIN==", keyring, "admin", "a user");
	is_key("OTHER==", keyring, "admin2", "whose name begins like that");
	is_key(NULL, keyring, "adm", "a part of a name");
	is_key(NULL, keyring, "0", "an OSD is no client");
	is_key(NULL, "", "admin", "empty");
	is_key(NULL, "[client.a]\n", "a", "no key");
	is_key(NULL, "[client.a]\nkey =\n", "a", "an empty key");
	is_key("X=", "[client.a]\n keyword = Y\n key = X=", "a", "at the end");
}

int main(void)
{
	plan_lazy();
	test_monitors();
	test_keyring();
	return done();
}
