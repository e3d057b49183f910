/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile-file.c - a profile's file comes back as it was saved, or not at all
 *
 * One row for each line and damage, with the checksum repaired; then every byte
 * changed, every length, bytes by chance, and what is no file.
 */
#include "format/crc32c.h"
#include "lib/node/profile.h"
#include "tests/image.h"
#include "tests/loop.h"
#include "tests/tap.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct stele_profile_source source = {
	.device = "Example SSD 9 (v/2) eui.0123",
	.facts = {.kernel = "6.18.5-test", .scheduler = "none",
		  .max_sectors_kb = 1280, .nr_requests = 1023},
};
static struct stele_profile profile = {
	.backend = "uring", .latency = 81.25e-6, .stream_rate = 2.5e9,
	.iops_max = 1234567.891, .bytes_max = 7.1e9, .kappa = 2.125,
	.residual = 0.0123, .depth = 22, .depth_max = 1023,
	.transfer_max = 524288, .gap = 5751, .p99_ns = 412345,
	.time = 1795000000,
};
static char file_path[PATH_MAX];

static bool near(double a, double b)
{
	return a > b * (1 - 1e-6) && a < b * (1 + 1e-6);
}

static bool same(const struct stele_profile *a, const struct stele_profile *b)
{
	return !strcmp(a->device, b->device) &&
	       !strcmp(a->backend, b->backend) &&
	       near(a->latency, b->latency) &&
	       near(a->stream_rate, b->stream_rate) &&
	       near(a->iops_max, b->iops_max) &&
	       near(a->bytes_max, b->bytes_max) && near(a->kappa, b->kappa) &&
	       near(a->residual, b->residual) && a->depth == b->depth &&
	       a->depth_max == b->depth_max &&
	       a->transfer_max == b->transfer_max && a->gap == b->gap &&
	       a->p99_ns == b->p99_ns && a->time == b->time;
}

static void write_file(const void *data, size_t size)
{
	FILE *file = fopen(file_path, "we");

	if (!file || fwrite(data, 1, size, file) != size || fclose(file))
		sysbail("cannot write '%s'", file_path);
}

/* Is it passed over? What was said: log. */
static bool is_ignored(struct test_log *log)
{
	struct stele_profile loaded;

	test_log_init(log);
	return stele_profile_load(&source, &log->log, &loaded) == -ENOENT;
}

static void check_round_trip(void)
{
	char dir[PATH_MAX];
	struct stele_profile loaded;
	struct test_log log;
	struct stat st;
	mode_t mask;

	ok(!stele_profile_any(), "no directory: nothing to look for");
	ok(is_ignored(&log) && !log.size, "no profile, and nothing to say");
	mask = umask(077);
	is_int(0, stele_profile_save(&profile, &source, NULL), "saves");
	umask(mask);
	ok(stele_profile_any(), "there may be some");
	ok(!stat(file_path, &st) && (st.st_mode & 0777) == 0644, "file is 0644");
	is_int(0, stele_profile_load(&source, NULL, &loaded), "loads");
	ok(same(&profile, &loaded), "the same");
	profile.depth = 23;
	is_int(0, stele_profile_save(&profile, &source, NULL), "saves again");
	is_int(0, stele_profile_load(&source, NULL, &loaded), "loads that");
	is_uint(23, loaded.depth, "the newer");
	snprintf(dir, sizeof(dir), "%s", file_path);
	*strrchr(dir, '/') = '\0';
	ok(command("test $(ls -A '%s' | wc -l) = 1", dir),
	   "nothing is left beside it");
	for (int i = 0; i < 2; i++) {
		ok(!stat(dir, &st) && (st.st_mode & 0777) == (geteuid() ? 0700 : 0755),
		   "root's directory is for all, a user's as the umask has it");
		*strrchr(dir, '/') = '\0';
	}
}

static void check_changes(void)
{
	static const struct {
		const char *what;
		struct stele_profile_facts facts;
	} rows[] = {
		{"kernel", {"6.18.6-test", "none", 1280, 1023}},
		{"scheduler", {"6.18.5-test", "bfq", 1280, 1023}},
		{"max_sectors_kb", {"6.18.5-test", "none", 512, 1023}},
		{"nr_requests", {"6.18.5-test", "none", 1280, 64}},
	};
	struct stele_profile loaded;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stele_profile_source now = source;
		struct test_log log;

		now.facts = rows[i].facts;
		test_log_init(&log);
		is_int(-ENOENT, stele_profile_load(&now, &log.log, &loaded),
		       "another %s: ignored", rows[i].what);
		ok(test_log_has(&log, rows[i].what) && log.text[0] == '3',
		   "said as information");
	}
}

/* ---- damage ------------------------------------------------------------------ */

static const struct {
	const char *what, *from, *to; /* from "": in front */
} damages[] = {
	{"version", "profile 1", "profile 2"},
	{"another device", "Example", "Exampel"},
	{"no device", "device = Example SSD 9 (v/2) eui.0123", "device = "},
	{"device not printable", "SSD", "S\tD"},
	{"a line less", "kappa = 2.125000\n", ""},
	{"a line twice", "kappa = 2.125000\n",
	 "kappa = 2.125000\nkappa = 2.125000\n"},
	{"a line more", "p99_ns = 412345\n", "p99_ns = 412345\nx = 1\n"},
	{"another name", "kappa", "kappe"},
	{"no blank", "kappa = ", "kappa="},
	{"a negative number", "= 2.125000", "= -2.12500"},
	{"no number", "= 2.125000", "= nan"},
	{"an exponent", "= 2.125000", "= 2.1e+00"},
	{"a comma", "= 2.125000", "= 2,125000"},
	{"too few decimals", "= 2.125000", "= 2.125"},
	{"a leading zero", "= 2.125000", "= 02.125000"},
	{"zero", "kappa = 2.125000", "kappa = 0.000000"},
	{"no latency", "latency_us = 81.250000", "latency_us = 0.000000"},
	{"a huge number", "= 2.125000", "= 9999999999999999999999.000000"},
	{"depth 0", "depth = 23", "depth = 0"},
	{"depth over its limit", "depth = 23", "depth = 4097"},
	{"depth over 32 bits", "depth = 23", "depth = 4294967319"},
	{"no depth_max", "depth_max = 1023", "depth_max = 0"},
	{"no transfer_max", "transfer_max = 524288", "transfer_max = 0"},
	{"transfer_max over its limit", "= 524288", "= 524288000"},
	{"no backend", "backend = uring", "backend = "},
	{"backend of two words", "backend = uring", "backend = u ring"},
	{"backend too long", "= uring", "= uringuringuringuringuringuringuring"},
	{"a carriage return", "time = 1795000000\n", "time = 1795000000\r\n"},
	{"a line in front", "", "\n"},
};

/* `from` replaced, and the checksum made good. */
static void damage(const char *text, const char *from, const char *to,
		   char out[2 * STELE_PROFILE_SIZE_MAX])
{
	const char *at = strstr(text, from);
	size_t size;

	if (!at)
		bail("there is no '%s'", from);
	size = (size_t)sprintf(out, "%.*s%s%s", (int)(at - text), text, to,
			       at + strlen(from));
	size = (size_t)(strstr(out, "crc32c") - out);
	sprintf(out + size, "crc32c = %08x\n", stele_crc32c(0, out, size));
}

static void check_damages(const char *text)
{
	char out[2 * STELE_PROFILE_SIZE_MAX];
	struct test_log log;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		damage(text, damages[i].from, damages[i].to, out);
		write_file(out, strlen(out));
		ok(is_ignored(&log), "%s: ignored", damages[i].what);
		ok(test_log_has(&log, "2 bad profile"), "%s: said",
		   damages[i].what);
	}
	damage(text, "2.125000", "2.125001", out);
	write_file(out, strlen(out));
	ok(!is_ignored(&log), "what is as we would write it: loads");
}

static void check_each_byte(const char *text)
{
	size_t size = strlen(text), taken = 0;
	char copy[STELE_PROFILE_SIZE_MAX];
	struct stele_profile_facts facts;
	struct stele_profile loaded;
	const char *why;

	memcpy(copy, text, size + 1);
	for (size_t i = 0; i < size; i++) {
		copy[i] ^= 1;
		taken += !stele_profile_decode(copy, size, &loaded, &facts, &why);
		copy[i] ^= 1;
	}
	is_uint(0, taken, "any byte changed: refused");
	for (size_t i = 0; i < size; i++)
		taken += !stele_profile_decode(copy, i, &loaded, &facts, &why);
	is_uint(0, taken, "any length: refused");
	srand(1);
	for (int i = 0; i < 20000; i++) { /* must not crash, whatever it says */
		char wild[2 * STELE_PROFILE_SIZE_MAX];

		memcpy(copy, text, size + 1);
		for (int j = rand() % 4; j >= 0; j--)
			copy[(size_t)rand() % (size - 18)] = (char)(1 + rand() % 255);
		damage(copy, "crc32c", "crc32c", wild);
		stele_profile_decode(wild, strlen(wild), &loaded, &facts, &why);
	}
	ok(true, "20000 times bytes by chance");
}

static void check_kinds(void)
{
	char big[3 * STELE_PROFILE_SIZE_MAX];
	struct test_log log;

	memset(big, 'x', sizeof(big));
	write_file(big, sizeof(big));
	ok(is_ignored(&log) && log.size, "a large file: ignored, said");
	write_file("", 0);
	ok(is_ignored(&log) && log.size, "an empty file");
	unlink(file_path);
	mkdir(file_path, 0755);
	ok(is_ignored(&log) && log.size, "a directory");
	rmdir(file_path);
	mkfifo(file_path, 0644);
	ok(is_ignored(&log) && log.size, "a FIFO");
	unlink(file_path);
	ok(is_ignored(&log) && !log.size, "gone: nothing to say");
}

/* What a full disk says, too: here it is a limit of the process. */
static void check_no_room(void)
{
	struct rlimit limit, none;
	struct test_log log;
	int err;

	getrlimit(RLIMIT_FSIZE, &limit);
	none = (struct rlimit){0, limit.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &none);
	test_log_init(&log);
	err = stele_profile_save(&profile, &source, &log.log);
	setrlimit(RLIMIT_FSIZE, &limit);
	is_int(-EFBIG, err, "no room: the error is the file's own");
	ok(test_log_has(&log, "cannot save profile"), "said");
	is_int(-1, access(file_path, F_OK), "and nothing is there");
}

int main(void)
{
	char dir[PATH_MAX], text[STELE_PROFILE_SIZE_MAX];

	plan_lazy();
	snprintf(dir, sizeof(dir), "%s/a/b", test_tmpdir());
	setenv(STELE_STATE_DIR_ENV, dir, 1);
	strcpy(profile.device, source.device);
	if (stele_profile_file(profile.device, file_path, sizeof(file_path)))
		bail("no path");
	check_round_trip();
	check_changes();
	stele_profile_encode(&profile, &source.facts, text);
	check_damages(text);
	check_each_byte(text);
	check_kinds();
	check_no_room();
	return done();
}
