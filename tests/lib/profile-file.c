/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile-file.c - a profile's file comes back as it was saved, or not at all
 *
 * One row for each line and damage, with the checksum repaired; then every byte
 * changed, every length, bytes by chance, and what is no file.
 */
#include "format/crc32c.h"
#include "lib/node/profile.h"
#include "tests/fixture/image.h"
#include "tests/device/loop.h"
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
	.backend = "uring", .depth = 22, .host = "node7", .target = "/dev/nvme0n1@v 1",
	.time = 1795000000, .slots_size = UINT64_C(5) << 30, .mean_size = 75000,
	.point_count = 3,
	.points = {{4096, 1, 12000, 49152000, 81250, 95000, false},
		   {4096, 2, 22000, 90112000, 83000, 99000, true},
		   {0, 32, 6553.6, 491520000, 182500, 412345, false}},
};
static char file_path[PATH_MAX];

static bool same(const struct stele_profile *a, const struct stele_profile *b)
{
	bool points = a->point_count == b->point_count;

	for (uint32_t i = 0; points && i < a->point_count; i++) {
		const struct stele_tune_point *x = &a->points[i], *y = &b->points[i];

		points = x->size == y->size && x->depth == y->depth &&
			 x->reads_per_second == y->reads_per_second &&
			 x->bytes_per_second == y->bytes_per_second &&
			 x->p50_ns == y->p50_ns && x->p99_ns == y->p99_ns &&
			 x->noisy == y->noisy;
	}
	return points && !strcmp(a->device, b->device) &&
	       !strcmp(a->backend, b->backend) && !strcmp(a->host, b->host) &&
	       !strcmp(a->target, b->target) && a->depth == b->depth &&
	       a->slots_size == b->slots_size && a->mean_size == b->mean_size &&
	       a->time == b->time;
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
	struct stele_profile loaded = {.size = sizeof(loaded)};

	test_log_init(log);
	return stele_profile_load(&source, &log->log, &loaded) == -ENOENT;
}

static void check_round_trip(void)
{
	char dir[PATH_MAX];
	struct stele_profile loaded = {.size = sizeof(loaded)};
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
	struct stele_profile loaded = {.size = sizeof(loaded)};

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
	{"a line less", "mean_size = 75000\n", ""},
	{"a line twice", "mean_size = 75000\n",
	 "mean_size = 75000\nmean_size = 75000\n"},
	{"a line more", "points = 3\n", "points = 3\nx = 1\n"},
	{"another name", "slots_size", "slots_sise"},
	{"no blank", "mean_size = ", "mean_size="},
	{"a negative number", "nr_requests = 1023", "nr_requests = -1023"},
	{"no number", "nr_requests = 1023", "nr_requests = many"},
	{"nothing", "nr_requests = 1023", "nr_requests = "},
	{"a fraction", "nr_requests = 1023", "nr_requests = 1023.0"},
	{"a leading zero", "nr_requests = 1023", "nr_requests = 01023"},
	{"a leading blank", "nr_requests = 1023", "nr_requests =  1023"},
	{"hexadecimal", "nr_requests = 1023", "nr_requests = 0x3ff"},
	{"a huge number", "nr_requests = 1023", "nr_requests = 9999999999999999999999"},
	{"a number over 60 bits", "nr_requests = 1023", "nr_requests = 1152921504606846977"},
	{"depth 0", "depth = 23", "depth = 0"},
	{"depth over its limit", "depth = 23", "depth = 4097"},
	{"depth over 32 bits", "depth = 23", "depth = 4294967319"},
	{"no mean_size", "mean_size = 75000", "mean_size = 0"},
	{"no time", "time = 2026-11-18T11:06:40Z", "time = yesterday"},
	{"no such time", "time = 2026-11-18", "time = 2026-11-32"},
	{"another time zone", "11:06:40Z", "11:06:40+01:00"},
	{"a point less than said", "points = 3", "points = 2"},
	{"a point more than said", "points = 3", "points = 4"},
	{"too many points", "points = 3", "points = 129"},
	{"no heading", "size depth bytes/s p50_ns p99_ns noisy\n", ""},
	{"a column less", "4096 1 49152000 81250 95000 0", "4096 1 49152000 81250 95000"},
	{"a column more", "4096 1 49152000 81250 95000 0", "4096 1 49152000 81250 95000 0 0"},
	{"no throughput", "4096 1 49152000", "4096 1 0"},
	{"a throughput of nonsense", "4096 1 49152000", "4096 1 nan"},
	{"a point at depth 0", "4096 1 49152000", "4096 0 49152000"},
	{"a point too deep", "4096 1 49152000", "4096 4097 49152000"},
	{"more than noisy", "90112000 83000 99000 1", "90112000 83000 99000 2"},
	{"no backend", "backend = uring", "backend = "},
	{"backend of two words", "backend = uring", "backend = u ring"},
	{"backend too long", "= uring", "= uringuringuringuringuringuringuring"},
	{"a carriage return", "host = node7\n", "host = node7\r\n"},
	{"host of two words", "host = node7", "host = node 7"},
	{"no target", "target = /dev/nvme0n1@v 1", "target = "},
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
	damage(text, "= 75000", "= 75001", out);
	write_file(out, strlen(out));
	ok(!is_ignored(&log), "what is as we would write it: loads");
}

static void check_each_byte(const char *text)
{
	size_t size = strlen(text), taken = 0;
	char copy[STELE_PROFILE_SIZE_MAX];
	struct stele_profile_facts facts;
	struct stele_profile loaded = {.size = sizeof(loaded)};
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
