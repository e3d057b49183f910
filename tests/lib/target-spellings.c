/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target-spellings.c - how a target is written, and what is no target
 *
 * One row per spelling: path, snapshot or pinned digest, or the error.
 */
#include "lib/device/target.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOWER "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define UPPER "00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff"
#define NAME63 \
	"n23456789012345678901234567890123456789012345678901234567890123"

static const uint8_t digest[STELE_DIGEST_SIZE] = {
	0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
	0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55,
	0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
};

static const struct {
	const char *text;
	int error;
	const char *path, *snapshot;
	bool pinned;
} spellings[] = {
	{"/dev/vdb", 0, "/dev/vdb", NULL, false},
	{"cats", 0, "cats", NULL, false},
	{"./cats.stele", 0, "./cats.stele", NULL, false},
	{"/dev/vdb@v1", 0, "/dev/vdb", "v1", false},
	{"cats@v1", 0, "cats", "v1", false},
	{"cats@1.0_rc-2", 0, "cats", "1.0_rc-2", false},
	{"cats@" NAME63, 0, "cats", NAME63, false},
	{"cats@" NAME63 "x", -EINVAL, NULL, NULL, false},
	{"cats@", -EINVAL, NULL, NULL, false},
	{"a@b/cats@", -EINVAL, NULL, NULL, false},
	{"a@b@", 0, "a@b", NULL, false},
	{"a@b@v1", 0, "a@b", "v1", false},
	{"a@@", 0, "a@", NULL, false},
	{"/mnt/a@b/cats", 0, "/mnt/a@b/cats", NULL, false},
	{"/mnt/a@b/cats@v1", 0, "/mnt/a@b/cats", "v1", false},
	{"/mnt/@v1", 0, "/mnt/", "v1", false},
	{"cats@sha256", 0, "cats", "sha256", false},
	{"cats@sha256:" LOWER, 0, "cats", NULL, true},
	{"/dev/vdb@sha256:" UPPER, 0, "/dev/vdb", NULL, true},
	{"cats@sha256:", -EINVAL, NULL, NULL, false},
	{"cats@sha256:0011", -EINVAL, NULL, NULL, false},
	{"cats@sha256:" LOWER "0", -EINVAL, NULL, NULL, false},
	{"cats@sha256:g0112233445566778899aabbccddeeff00112233445566778899"
	 "aabbccddeeff", -EINVAL, NULL, NULL, false},
	{"cats@sha256:0g112233445566778899aabbccddeeff00112233445566778899"
	 "aabbccddeeff", -EINVAL, NULL, NULL, false},
	{"cats@.hidden", -EINVAL, NULL, NULL, false},
	{"cats@-v", -EINVAL, NULL, NULL, false},
	{"cats@two words", -EINVAL, NULL, NULL, false},
	{"cats@v\xc3\xa9", -EINVAL, NULL, NULL, false},
	{"", -EINVAL, NULL, NULL, false},
	{NULL, -EINVAL, NULL, NULL, false},
	{"@", -EINVAL, NULL, NULL, false},
	{"@v1", -EINVAL, NULL, NULL, false},
#ifdef HAVE_LIBRBD
	{"rbd:pool/image", 0, "rbd:pool/image", NULL, false},
	{"rbd:pool/image@v1", 0, "rbd:pool/image", "v1", false},
	{"rbd:p/n/i?timeout=5@sha256:" LOWER, 0, "rbd:p/n/i?timeout=5", NULL,
	 true},
	{"rbd:pool/image@v 1", -EINVAL, NULL, NULL, false},
#else
	{"rbd:pool/image", -EOPNOTSUPP, NULL, NULL, false},
	{"rbd:pool/image@v1", -EOPNOTSUPP, NULL, NULL, false},
#endif
	{"rbd:pool", -EINVAL, NULL, NULL, false},
	{"./rbd:pool", 0, "./rbd:pool", NULL, false},
	{"rbd", 0, "rbd", NULL, false},
};

static char last_line[STELE_LOG_LINE_MAX];

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	(void)user, (void)level;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void check_spelling(size_t i)
{
	const char *text = spellings[i].text ? spellings[i].text : "(null)";
	struct stele_log log = {.fn = keep_line};
	struct stele_target target;

	last_line[0] = '\0';
	is_int(spellings[i].error,
	       stele_target_parse(spellings[i].text, &log, &target),
	       "'%s': result", text);
	is_string(spellings[i].path, target.path, "'%s': path", text);
	is_string(spellings[i].snapshot, target.snapshot, "'%s': snapshot",
		  text);
	ok(target.pinned == spellings[i].pinned, "'%s': pinned or not", text);
	if (spellings[i].pinned)
		is_blob(digest, target.digest, sizeof(digest), "'%s': digest",
			text);
	ok(!last_line[0] == !spellings[i].error,
	   "'%s': a message where it fails: %s", text, last_line);
	stele_target_release(&target);
	stele_target_release(&target);
}

int main(void)
{
	struct stele_target target;

	plan_lazy();
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
		check_spelling(i);
	is_int(0, stele_target_parse("cats@v1", NULL, &target),
	       "a log is not needed");
	stele_target_release(&target);
	return done();
}
