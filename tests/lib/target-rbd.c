/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target-rbd.c - how an RBD image is written, and what is none
 *
 * One row per spelling; what is taken apart is written again in one way, which
 * is a spelling of the same. Then nonsense, made of what means something here.
 */
#include "lib/device/target.h"
#include "lib/device/target_rbd.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONSENSE 20000

static const struct {
	const char *text;
	int error;
	const char *path, *snapshot; /* path: as it is written again */
} spellings[] = {
	{"rbd:p/i", 0, "rbd:p/i", NULL},
	{"rbd:p/n/i", 0, "rbd:p/n/i", NULL},
	{"rbd:p/i@v1", 0, "rbd:p/i", "v1"},
	{"rbd:p/n/i@v1", 0, "rbd:p/n/i", "v1"},
	{"rbd:p/i@", 0, "rbd:p/i", ""},
	{"rbd:p/i?user=u@", 0, "rbd:p/i?user=u", ""},
	{"rbd:my pool/an image", 0, "rbd:my pool/an image", NULL},
	{"rbd:p/i?conf=/etc/c.conf", 0, "rbd:p/i?conf=/etc/c.conf", NULL},
	{"rbd:p/i?conf=/etc/c.conf@v1", 0, "rbd:p/i?conf=/etc/c.conf", "v1"},
	{"rbd:p/i@v1?conf=/etc/c.conf", 0, "rbd:p/i?conf=/etc/c.conf", "v1"},
	{"rbd:p/i@sha256:00?user=u", 0, "rbd:p/i?user=u", "sha256:00"},
	{"rbd:p/i?timeout=5&user=u", 0, "rbd:p/i?user=u&timeout=5", NULL},
	{"rbd:p/i?connections=16&timeout=86400&user=u&conf=c", 0,
	 "rbd:p/i?conf=c&user=u&timeout=86400&connections=16", NULL},
	{"rbd:p/i?timeout=007", 0, "rbd:p/i?timeout=7", NULL},
	{"rbd:p/i?conf=/a%40b", 0, "rbd:p/i?conf=/a%40b", NULL},
	{"rbd:p/i?conf=/%61%26%25?=b", 0, "rbd:p/i?conf=/a%26%25?=b", NULL},
	{"rbd:p/i?conf=%2fx%2F", 0, "rbd:p/i?conf=/x/", NULL},
	{"rbd:", -EINVAL, NULL, NULL},
	{"rbd:p", -EINVAL, NULL, NULL},
	{"rbd:p/", -EINVAL, NULL, NULL},
	{"rbd:/i", -EINVAL, NULL, NULL},
	{"rbd:p//i", -EINVAL, NULL, NULL},
	{"rbd:p/n/", -EINVAL, NULL, NULL},
	{"rbd:p/n/i/", -EINVAL, NULL, NULL},
	{"rbd:p/n/i/x", -EINVAL, NULL, NULL},
	{"rbd:p/i\n", -EINVAL, NULL, NULL},
	{"rbd:?user=u", -EINVAL, NULL, NULL},
	{"rbd:@v1", -EINVAL, NULL, NULL},
	{"rbd:p@v1/i", -EINVAL, NULL, NULL},
	{"rbd:p/i@v1@v2", -EINVAL, NULL, NULL},
	{"rbd:p/i@v1?user=u@v2", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=a@b@", -EINVAL, NULL, NULL},
	{"rbd:p/i?", -EINVAL, NULL, NULL},
	{"rbd:p/i?user", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=", -EINVAL, NULL, NULL},
	{"rbd:p/i?User=u", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=u&", -EINVAL, NULL, NULL},
	{"rbd:p/i?&user=u", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=u&user=u", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=1&timeout=1", -EINVAL, NULL, NULL},
	{"rbd:p/i?pool=q", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=0", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=-1", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=+1", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=1s", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=86401", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=4294967297", -EINVAL, NULL, NULL},
	{"rbd:p/i?timeout=99999999999999999999", -EINVAL, NULL, NULL},
	{"rbd:p/i?connections=0", -EINVAL, NULL, NULL},
	{"rbd:p/i?connections=17", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=%", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=%4", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=%4g", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=%00", -EINVAL, NULL, NULL},
	{"rbd:p/i?user=%0a", -EINVAL, NULL, NULL},
};

static unsigned int lines;

static void count_line(void *user, enum stele_log_level level, const char *line)
{
	(void)user, (void)level, (void)line;
	lines++;
}

static const struct stele_log counting = {.fn = count_line};

/* As stele_target_parse() does it: *path is what is written again, or NULL. */
static int take(const char *text, char **path, char **snapshot)
{
	struct stele_rbd_name name;
	char *plain;
	int err = stele_rbd_divide(text, &counting, &plain, snapshot);

	*path = NULL;
	if (!err)
		err = stele_rbd_name_parse(plain, &counting, &name);
	if (!err) {
		*path = stele_rbd_name_format(&name);
		stele_rbd_name_release(&name);
	} else {
		free(*snapshot);
		*snapshot = NULL;
	}
	free(plain);
	return err;
}

static void check_spelling(size_t i)
{
	const char *text = spellings[i].text;
	char *path, *snapshot, *again, *none;

	lines = 0;
	is_int(spellings[i].error, take(text, &path, &snapshot), "'%s'", text);
	is_string(spellings[i].path, path, "'%s': path", text);
	is_string(spellings[i].snapshot, snapshot, "'%s': snapshot", text);
	ok(!lines == !spellings[i].error, "'%s': one message if it fails", text);
	if (path) {
		is_int(0, take(path, &again, &none), "'%s' is a path", path);
		is_string(path, again, "'%s' stays what it is", path);
		free(again);
		free(none);
	}
	free(path);
	free(snapshot);
}

/* What is taken must be written so that it is taken as the same. */
static void check_nonsense(void)
{
	static const char *const words[] = {
		"rbd:", "p", "/",	"i",  "@",	     "?", "&", "=",
		"%",	"%40", "user=", "u",  "timeout=",    "9", "0", "conf=",
		"\x7f", "\n",  " ",	"\xff", "connections=", "",
	};
	const size_t count = sizeof(words) / sizeof(words[0]);
	unsigned int taken = 0, bad = 0, silent = 0;
	uint64_t seed = 1;

	for (int i = 0; i < NONSENSE; i++) {
		char text[512] = "rbd:p/i", *path, *snapshot, *again, *none;

		for (int j = 0; j < 12; j++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			strcat(text, words[(seed >> 33) % count]);
		}
		lines = 0;
		if (take(text, &path, &snapshot)) {
			silent += lines != 1;
			continue;
		}
		taken++;
		bad += take(path, &again, &none) || strcmp(path, again) || none;
		free(again);
		free(none);
		free(path);
		free(snapshot);
	}
	ok(taken > 10, "%u of %d lines of nonsense are targets", taken, NONSENSE);
	is_uint(0, bad, "and are written as such");
	is_uint(0, silent, "the others give one message each");
}

int main(void)
{
	char *text = malloc(STELE_RBD_TARGET_MAX + 2), *path, *snapshot;

	plan_lazy();
	if (!text)
		bail("no memory");
	ok(stele_path_is_rbd("rbd:") && !stele_path_is_rbd("./rbd:p/i") &&
		   !stele_path_is_rbd("rbd") && !stele_path_is_rbd("RBD:p/i"),
	   "what begins like one");
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
		check_spelling(i);
	memset(text, 'x', STELE_RBD_TARGET_MAX + 1);
	memcpy(text, "rbd:p/", 6);
	text[STELE_RBD_TARGET_MAX + 1] = '\0';
	is_int(-EINVAL, take(text, &path, &snapshot), "one that is too long");
	text[STELE_RBD_TARGET_MAX] = '\0';
	is_int(0, take(text, &path, &snapshot), "one that is just short enough");
	free(path);
	free(snapshot);
	free(text);
	check_nonsense();
	return done();
}
