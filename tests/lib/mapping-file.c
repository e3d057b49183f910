/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping-file.c - a mapping's file comes back as it was saved, or not at all
 *
 * One row per line and damage; then every byte flipped, every length, and bytes
 * by chance: an error, never a crash.
 */
#include "lib/node/mapping.h"
#include "tests/fixture/image.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIXTEEN "1111111111111111"
#define DIGEST	"2222222222222222222222222222222222222222222222222222222222222222"

/* What describe() is in a file. */
static const char cats[] = "stele mapping 1\n"
			   "name = cats\n"
			   "target = /dev/none\n"
			   "snapshot = v1\n"
			   "digest = " DIGEST "\n"
			   "uuid = " SIXTEEN SIXTEEN "\n"
			   "samples = 7\n"
			   "via = device\n"
			   "read_only = yes\n"
			   "was_read_only = yes\n"
			   "device = 7:1\n"
			   "sequence = 9\n"
			   "size = 1048576\n"
			   "time = 1763812345\n";

static void map_path(const char *name, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s", stele_mapping_dir(), name);
}

static void write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd;

	map_path(name, path);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		sysbail("cannot write '%s'", path);
	close(fd);
}

static void is_file(const char *name, const char *wanted, const char *what)
{
	char path[PATH_MAX], text[8192] = "";
	int fd;

	map_path(name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		sysbail("cannot read '%s'", path);
	close(fd);
	is_string(wanted, text, "%s", what);
}

static void describe(struct stele_mapping *mapping)
{
	*mapping = (struct stele_mapping){
		.info = {.name = "cats", .snapshot = "v1", .via = "device",
			 .sample_count = 7, .time = 1763812345,
			 .read_only = true},
		.identity = {.rdev = 0x701, .size = 1 << 20, .sequence = 9},
		.access = {.others = 0044, .group = getegid()},
		.was_read_only = true,
		.target = "/dev/none",
	};
	memset(mapping->info.uuid, 0x11, sizeof(mapping->info.uuid));
	memset(mapping->info.digest, 0x22, sizeof(mapping->info.digest));
}

/* Save, load, and compare what is not compared elsewhere. */
static void comes_back(const struct stele_mapping *saved, const char *what)
{
	struct stele_mapping loaded;

	is_int(0, stele_mapping_save(saved, NULL), "%s: saved", what);
	is_int(0, stele_mapping_load(saved->info.name, NULL, &loaded),
	       "%s: loaded", what);
	is_string(saved->target, loaded.target ? loaded.target : "", "its target");
	is_string(saved->info.via, loaded.info.via, "how it is read");
	is_blob(&saved->identity, &loaded.identity, sizeof(loaded.identity),
		"its identity");
	ok(saved->attached == loaded.attached &&
		   saved->info.pinned == loaded.info.pinned &&
		   saved->info.read_only == loaded.info.read_only &&
		   saved->was_read_only == loaded.was_read_only,
	   "its flags");
	is_int(saved->info.time, loaded.info.time, "its time");
	ok(loaded.info.target == loaded.target, "one target");
	stele_mapping_release(&loaded);
	stele_mapping_release(&loaded);
	stele_mapping_remove(saved->info.name);
}

static void check_round_trip(void)
{
	struct stele_mapping saved, loaded;
	char path[PATH_MAX];
	struct stat st;
	mode_t mask;

	describe(&saved);
	is_int(-ENOENT, stele_mapping_load("cats", NULL, &loaded),
	       "no directory: no mapping");
	is_int(-ENOENT, stele_mapping_remove("cats"), "nor one to remove");
	mask = umask(077);
	is_int(0, stele_mapping_save(&saved, NULL), "saves");
	umask(mask);
	is_int(-EEXIST, stele_mapping_save(&saved, NULL), "never over another");
	map_path("cats", path);
	ok(!stat(path, &st) && (st.st_mode & 0777) == 0644,
	   "who may read the target may read the file");
	ok(!stat(stele_mapping_dir(), &st) &&
		   (st.st_mode & 0777) == (geteuid() ? 0700 : 0755),
	   "root's directory is for all, a user's as the umask has it");
	ok(command("test $(ls -A '%s' | wc -l) = 1", stele_mapping_dir()),
	   "nothing is left beside it");
	is_file("cats", cats, "a person can read it");
	is_int(0, stele_mapping_load("cats", NULL, &loaded), "loads");
	is_string("cats", loaded.info.name, "name");
	is_string("v1", loaded.info.snapshot, "snapshot");
	is_blob(saved.info.uuid, loaded.info.uuid, 16, "uuid");
	is_blob(saved.info.digest, loaded.info.digest, 32, "digest");
	is_uint(7, loaded.info.sample_count, "sample count");
	stele_mapping_release(&loaded);
	stele_mapping_remove("cats");
	comes_back(&saved, "a device");
}

static void check_kinds_of_target(void)
{
	struct stele_mapping saved;

	describe(&saved);
	saved.identity = (struct stele_identity){.fsdev = 0xfe00, .inode = 1,
						 .size = UINT64_MAX};
	saved.target = "/a b\n\\012\x7f\xc3\xa9\t=";
	saved.info.read_only = saved.was_read_only = false;
	saved.info.pinned = true;
	saved.info.time = -5;
	comes_back(&saved, "a file with an odd name");
	saved.identity = (struct stele_identity){
		.size = 1,
		.storage = {.cluster = "c1", .pool = 2, .image = "i1", .snap = 3},
	};
	saved.target = "rbd:p/i?user=u";
	strcpy(saved.info.via, "librbd");
	comes_back(&saved, "RBD");
	saved.identity.rdev = 0xfb00;
	saved.attached = true;
	strcpy(saved.info.via, "krbd");
	comes_back(&saved, "krbd");
}

/* ---- damage ------------------------------------------------------------------ */

static const struct {
	const char *what, *old, *new; /* in `cats` */
	int error;
} damages[] = {
	{"another kind of file", "stele mapping 1", "stele profile 1", -EBADMSG},
	{"a NUL's neighbour", "cats", "c\001ts", -EBADMSG},
	{"a carriage return", "cats\n", "cats\r\n", -EBADMSG},
	{"an older version", "mapping 1\n", "mapping 0\n", -EOPNOTSUPP},
	{"a newer version", "mapping 1\n", "mapping 2\n", -EOPNOTSUPP},
	{"a version with more behind it", "mapping 1\n", "mapping 1 \n", -EOPNOTSUPP},
	{"another name", "= cats", "= dogs", -EUCLEAN},
	{"an empty name", "= cats", "= ", -EUCLEAN},
	{"no name", "name = cats\n", "", -EUCLEAN},
	{"a bad name", "= cats", "= .cats", -EUCLEAN},
	{"a bad snapshot", "= v1", "= v/1", -EUCLEAN},
	{"a snapshot of 64 bytes", "= v1",
	 "= vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv", -EUCLEAN},
	{"no target", "target = /dev/none\n", "", -EUCLEAN},
	{"an empty target", "/dev/none", "", -EUCLEAN},
	{"a relative target", "/dev/none", "dev/none", -EUCLEAN},
	{"RBD without a cluster", "/dev/none", "rbd:p/i", -EUCLEAN},
	{"an escape of nothing", "/dev/none", "/dev/\\", -EUCLEAN},
	{"an escape of 0", "/dev/none", "/dev/\\000", -EUCLEAN},
	{"an escape cut short", "/dev/none", "/dev/\\12", -EUCLEAN},
	{"an escape of a plain byte", "/dev/none", "/dev/\\101", -EUCLEAN},
	{"an escape out of range", "/dev/none", "/dev/\\777", -EUCLEAN},
	{"a digest too short", "2\nuuid", "\nuuid", -EUCLEAN},
	{"a digest too long", "2\nuuid", "22\nuuid", -EUCLEAN},
	{"a digest of capitals", "22\nuuid", "AA\nuuid", -EUCLEAN},
	{"a digest of no digits", "22\nuuid", "x2\nuuid", -EUCLEAN},
	{"a sign", "samples = 7", "samples = +7", -EUCLEAN},
	{"a zero in front", "samples = 7", "samples = 07", -EUCLEAN},
	{"no number", "samples = 7", "samples = x", -EUCLEAN},
	{"what is left out", "samples = 7", "samples = 0", -EUCLEAN},
	{"a number of 65 bits", "samples = 7", "samples = 18446744073709551616",
	 -EUCLEAN},
	{"no way to read", "via = device", "via = ", -EUCLEAN},
	{"two words", "via = device", "via = de vice", -EUCLEAN},
	{"a long word", "via = device", "via = devicedevicedevice", -EUCLEAN},
	{"a flag that is off", "read_only = yes\nwas", "read_only = no\nwas",
	 -EUCLEAN},
	{"a flag of a flag", "\nread_only = yes", "", -EUCLEAN},
	{"attached, and no RBD", "device = 7", "attached = yes\ndevice = 7",
	 -EUCLEAN},
	{"neither device nor file", "device = 7:1\n", "", -EUCLEAN},
	{"device and file", "7:1\n", "7:1\ninode = 5\n", -EUCLEAN},
	{"device and filesystem", "7:1\n", "7:1\nfilesystem = 8:1\n", -EUCLEAN},
	{"half a device", "7:1", "7", -EUCLEAN},
	{"too much device", "7:1", "7:1:1", -EUCLEAN},
	{"a cluster of nothing", "time", "cluster = c\ntime", -EUCLEAN},
	{"a pool of no cluster", "time", "pool = 1\ntime", -EUCLEAN},
	{"an image of no cluster", "time", "image = i\ntime", -EUCLEAN},
	{"an RBD snapshot of nothing", "time", "rbd_snapshot = 1\ntime", -EUCLEAN},
	{"a path of a cluster", "time",
	 "cluster = c\nimage = i\nrbd_snapshot = 1\ntime", -EUCLEAN},
	{"an unknown line", "time", "colour = red\ntime", -EUCLEAN},
	{"an unknown line at the end", "5\n", "5\ncolour = red\n", -EUCLEAN},
	{"a line twice", "samples = 7\n", "samples = 7\nsamples = 7\n", -EUCLEAN},
	{"the last line twice", "time = 1763812345\n",
	 "time = 1763812345\ntime = 1763812345\n", -EUCLEAN},
	{"lines in disorder", "sequence = 9\nsize = 1048576\n",
	 "size = 1048576\nsequence = 9\n", -EUCLEAN},
	{"an empty line", "samples", "\nsamples", -EUCLEAN},
	{"an empty line at the end", "2345\n", "2345\n\n", -EUCLEAN},
	{"a comment", "samples", "# x\nsamples", -EUCLEAN},
	{"a blank too many", "samples = ", "samples =  ", -EUCLEAN},
	{"a blank at the end", "samples = 7", "samples = 7 ", -EUCLEAN},
	{"no last line", "time = 1763812345\n", "", -EUCLEAN},
	{"no last newline", "2345\n", "2345", -EUCLEAN},
};

static void replace(char *text, const char *old, const char *new)
{
	const char *at = strstr(cats, old);

	if (!at)
		bail("no '%s'", old);
	sprintf(text, "%.*s%s%s", (int)(at - cats), cats, new,
		at + strlen(old));
}

static int load_text(const char *text, struct test_log *log)
{
	struct stele_mapping mapping;
	int err;

	write_file("cats", text);
	test_log_init(log);
	err = stele_mapping_load("cats", &log->log, &mapping);
	ok(!err == !!mapping.target, "a target, or none");
	stele_mapping_release(&mapping);
	return err;
}

static void check_damages(void)
{
	char text[2 * sizeof(cats)];
	struct test_log log;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		replace(text, damages[i].old, damages[i].new);
		is_int(damages[i].error, load_text(text, &log), "%s",
		       damages[i].what);
		ok(test_log_has(&log, "bad mapping"), "%s: said",
		   damages[i].what);
	}
	is_int(0, load_text(cats, &log), "undamaged");
}

/* A target of PATH_MAX bytes is none; neither is a file of any size. */
static void check_limits(void)
{
	static char text[STELE_MAPPING_SIZE_MAX + 2], path[PATH_MAX + 1];
	struct test_log log;

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	replace(text, "/dev/none", path);
	is_int(-EUCLEAN, load_text(text, &log), "a target too long");
	path[PATH_MAX - 1] = '\0';
	replace(text, "/dev/none", path);
	is_int(0, load_text(text, &log), "one that is not");
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, cats, sizeof(cats) - 1);
	is_int(-EBADMSG, load_text(text, &log), "a file too large");
}

/* In memory that ends where the file does: reading past it would crash. */
static int decode(const char *text, size_t size)
{
	size_t room = (size + 4095) & ~(size_t)4095;
	char *pages = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct stele_mapping mapping;
	const char *why = NULL;
	int err;

	if (pages == MAP_FAILED || mprotect(pages + room, 4096, PROT_NONE))
		sysbail("mmap");
	memcpy(pages + room - size, text, size);
	err = stele_mapping_decode(pages + room - size, size, "cats", &mapping,
				   &why);
	stele_mapping_release(&mapping);
	munmap(pages, room + 4096);
	return err && !why ? 0 : err;
}

static void check_each_byte(void)
{
	const size_t size = sizeof(cats) - 1;
	size_t taken = 0;
	char copy[sizeof(cats)];

	memcpy(copy, cats, sizeof(cats));
	for (size_t i = 0; i < size; i++) {
		copy[i] = '\0';
		taken += decode(copy, size) == 0;
		copy[i] = cats[i];
	}
	is_uint(0, taken, "a NUL anywhere: refused");
	for (size_t cut = 0; cut < size; cut++)
		taken += decode(cats, cut) == 0;
	is_uint(0, taken, "cut short anywhere: refused");
	srand(1);
	for (int i = 0; i < 20000; i++) { /* must not crash, whatever it says */
		memcpy(copy, cats, size);
		for (int j = rand() % 4; j >= 0; j--)
			copy[16 + rand() % (int)(size - 16)] = (char)rand();
		decode(copy, size);
	}
	ok(true, "20000 times bytes by chance");
}

/* ---- things that are no files ------------------------------------------------ */

static void check_kinds(void)
{
	struct stele_mapping mapping;
	struct test_log log;
	char path[PATH_MAX];

	is_int(-EBADMSG, load_text("", &log), "an empty file");
	map_path("dir", path);
	mkdir(path, 0755);
	is_int(-EBADMSG, stele_mapping_load("dir", NULL, &mapping),
	       "a directory");
	map_path("fifo", path);
	mkfifo(path, 0644);
	is_int(-EBADMSG, stele_mapping_load("fifo", NULL, &mapping), "a FIFO");
	write_file("cats", cats);
	map_path("link", path);
	if (symlink("cats", path))
		sysbail("cannot link '%s'", path);
	test_log_init(&log);
	is_int(-EBADMSG, stele_mapping_load("link", &log.log, &mapping),
	       "a symbolic link");
	ok(test_log_has(&log, "symbolic link"), "which is said");
	is_int(-EINVAL, stele_mapping_load("../cats", NULL, &mapping),
	       "a path");
	is_int(-EINVAL, stele_mapping_load(".cats", NULL, &mapping),
	       "a hidden file");
	is_int(-EINVAL, stele_mapping_load("", NULL, &mapping), "no name");
}

int main(void)
{
	char dir[PATH_MAX];

	plan_lazy();
	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	setenv(STELE_RUN_DIR_ENV, dir, 1);
	check_round_trip();
	check_kinds_of_target();
	check_damages();
	check_limits();
	check_each_byte();
	check_kinds();
	return done();
}
