/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-target.c - a directory onto a file: what is refused, and what is left
 *
 * Loop devices, mounts and signatures of other programs: tests/cmd/build.t.
 */
#include "lib/image/copies.h"
#include "lib/image/image.h"
#include "lib/stele.h"
#include "lib/txn/claim.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char source[4096], target[4096];
static char lines[8192]; /* errors, one behind the other */
static uint64_t skipped_target;

static unsigned int busy_locks; /* how many more find the target locked */

int flock(int fd, int operation)
{
	if ((operation & LOCK_EX) && busy_locks) {
		busy_locks--;
		errno = EWOULDBLOCK;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void on_log(void *user, enum stele_log_level level, const char *line)
{
	size_t at = strlen(lines);

	(void)user;
	if (level != STELE_LOG_INFO)
		snprintf(lines + at, sizeof(lines) - at, "%s\n", line);
}

static bool said(const char *text)
{
	bool found = strstr(lines, text) != NULL;

	if (!found)
		diag("not in: %s", lines);
	return found;
}

static int build_to(const char *to, struct stele_build_opts opts,
		    struct stele_build_report *report)
{
	struct stele_build_report unwanted = {.size = sizeof(unwanted)};
	int ret;

	lines[0] = '\0';
	opts.size = sizeof(opts);
	opts.log = on_log;
	ret = stele_build(source, to, &opts, report ? report : &unwanted);
	skipped_target = (report ? report : &unwanted)->skipped[STELE_SKIP_TARGET];
	return ret;
}

static int build(struct stele_build_opts opts,
		 struct stele_build_report *report)
{
	return build_to(target, opts, report);
}

static struct stele_build_opts with_flags(uint32_t flags)
{
	return (struct stele_build_opts){.flags = flags};
}

static const struct stele_build_opts none;

static void write_file(const char *path, const char *data, size_t size)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		sysbail("cannot write %s", path);
}

static void make_source(void)
{
	char path[8300];

	snprintf(source, sizeof(source), "%s/source", test_tmpdir());
	snprintf(target, sizeof(target), "%s/target", test_tmpdir());
	if (mkdir(source, 0755))
		sysbail("cannot make the source");
	for (unsigned int i = 0; i < 200; i++) {
		char data[1000];

		snprintf(path, sizeof(path), "%s/%u", source, i % 10);
		mkdir(path, 0755);
		snprintf(path, sizeof(path), "%s/%u/%u", source, i % 10, i);
		memset(data, (int)i, sizeof(data));
		write_file(path, data, i * 5);
	}
}

static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? UINT64_MAX : (uint64_t)st.st_size;
}

static void *contents(const char *path, uint64_t *size)
{
	FILE *f = fopen(path, "r");
	void *data;

	*size = size_of(path);
	data = malloc(*size + 1);
	if (!f || !data || fread(data, 1, *size, f) != *size)
		sysbail("cannot read %s", path);
	fclose(f);
	return data;
}

static void test_new_file(void)
{
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_dataset *ds;

	is_int(0, build(none, &report), "a new file");
	is_uint(report.image_end, size_of(target), "is as large as the image");
	is_uint(report.image_end, report.target_size, "the report says so");
	is_string("v1", report.snapshot, "snapshot v1");
	is_uint(10, report.class_count, "ten classes");
	if (is_int(0, stele_dataset_open(target, NULL, &ds), "opens")) {
		is_uint(200, stele_dataset_count(ds), "200 samples");
		stele_dataset_close(ds);
	}
}

static void test_own_image(void)
{
	char path[5000];
	uint64_t size, again;
	void *before = contents(target, &size), *after;

	is_int(-EEXIST, build(none, NULL), "an image is not overwritten");
	ok(said("image, snapshots 'v1'"), "its snapshots are named");
	after = contents(target, &again);
	ok(size == again && !memcmp(before, after, size), "it is unchanged");
	free(before);
	free(after);
	is_int(0, build(with_flags(STELE_FORCE), NULL), "but by force");
	snprintf(path, sizeof(path), "%s@other.name", target);
	is_int(0, build_to(path, with_flags(STELE_FORCE), NULL),
	       "under another name");
	is_int(-EEXIST, build(none, NULL), "is an image again");
	ok(said("'other.name'"), "with that name");
}

static void test_unfinished(void)
{
	static const char zeros[4096];
	int fd = open(target, O_RDWR);

	/* What an interrupted build leaves, as far as recovery can tell. */
	if (fd < 0 || pwrite(fd, zeros, 4096, 0x2000) != 4096 ||
	    pwrite(fd, zeros, 4096, 0x101000) != 4096 ||
	    pwrite(fd, zeros, 4096, 0x1000) != 4096 ||
	    pwrite(fd, zeros, 4096, 0x100000) != 4096)
		sysbail("cannot damage the image");
	close(fd);
	is_int(-EEXIST, build(none, NULL), "unknown bytes are not overwritten");
	is_int(0, build(with_flags(STELE_FORCE), NULL), "but by force");
}

/* Cut short behind the wipe, and before the build's own superblocks. */
static void test_taken(void)
{
	const struct stele_log quiet = {0};
	const struct stele_build_opts older = {.flags = STELE_FORCE,
					       .label = "older"};
	struct stele_copies copies;
	const struct stele_claim_opts want = {.needed = 4 << 20, .force = true};
	struct stele_claim claim;
	struct stele_image image;

	is_int(0, build(older, NULL), "an image");
	if (stele_claim_open(&claim, target, &want, &quiet))
		bail("cannot claim '%s'", target);
	is_int(0, stele_claim_take(&claim), "is taken");
	is_int(-EINPROGRESS, stele_image_load(claim.dev, NULL, &image),
	       "and unfinished from then on");
	is_int(0, stele_copies_read(claim.dev, &copies), "its mirrors");
	is_string("'older': 'v1'", copies.copy[2].sb.label,
		  "are sound, and say what was there");
	stele_claim_drop(&claim, true);
	if (stele_claim_open(&claim, target, &want, &quiet))
		bail("cannot claim '%s' again", target);
	is_int(0, stele_claim_take(&claim), "is taken once more");
	is_int(0, stele_copies_read(claim.dev, &copies), "as it had come no further");
	is_string("'older': 'v1'", copies.copy[2].sb.label, "it is not forgotten");
	stele_claim_drop(&claim, true);
	is_int(0, build(with_flags(STELE_FORCE), NULL), "built again");
}

/* What there is of the target when it was taken, but for any superblock or segment. */
static void take_and_cut(bool force)
{
	static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;
	const struct stele_log quiet = {0};
	const struct stele_claim_opts want = {.needed = 4 << 20, .force = force};
	struct stele_claim claim;
	uint64_t size;
	char *taken;

	if (stele_claim_open(&claim, target, &want, &quiet) || stele_claim_take(&claim))
		bail("cannot take '%s'", target);
	taken = contents(target, &size);
	stele_claim_drop(&claim, true);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		memset(taken + offsets[i], 0, 4096);
	if (size > STELE_DATA_OFFSET)
		memset(taken + STELE_DATA_OFFSET, 0, size - STELE_DATA_OFFSET);
	write_file(target, taken, size);
	free(taken);
}

/* Cut short before any superblock: said to be what it is, unless there was an image. */
static void test_begun(void)
{
	struct stele_image *image;

	unlink(target);
	take_and_cut(false);
	is_int(-EINPROGRESS, stele_image_open(target, NULL, &image),
	       "a writer that has only begun");
	is_int(-EEXIST, build(none, NULL), "is not overwritten");
	ok(said("unfinished image"), "as what it is");
	is_int(0, build(with_flags(STELE_FORCE), NULL), "but by force");
	take_and_cut(true);
	is_int(-EBADMSG, stele_image_open(target, NULL, &image),
	       "one that had begun over an image: that is gone");
	is_int(-EEXIST, build(none, NULL), "is not overwritten");
	ok(said("lost its superblocks"), "and nobody says that nothing is lost");
	unlink(target);
}

static void test_foreign(void)
{
	uint64_t size;
	void *after;

	write_file(target, "precious", 8);
	is_int(-EEXIST, build(none, NULL), "somebody's file");
	after = contents(target, &size);
	ok(size == 8 && !memcmp(after, "precious", 8), "is unchanged");
	free(after);
	is_int(0, build(with_flags(STELE_FORCE), NULL), "but by force");
	write_file(target, "", 0);
	is_int(0, build(none, NULL), "an empty file is nobody's");
	unlink(target);
}

static void test_sizes(void)
{
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_build_opts opts = none;

	is_int(0, build(with_flags(STELE_DRY_RUN), &report), "dry run");
	is_uint(UINT64_MAX, size_of(target), "makes no file");
	opts.file_size = report.image_end - 4096;
	is_int(-ENOSPC, build(opts, NULL), "a size that is too small");
	ok(said("bytes, the image needs"), "both sizes are told");
	is_uint(UINT64_MAX, size_of(target), "no file is left");
	opts.file_size = report.image_end + 1;
	is_int(-EINVAL, build(opts, NULL), "an odd size");
	is_uint(UINT64_MAX, size_of(target), "no file is left");
	opts.file_size = report.image_end + 4096 * 100;
	is_int(0, build(opts, &report), "a size with room");
	is_uint(opts.file_size, size_of(target), "is the file's");
	opts = with_flags(STELE_DRY_RUN);
	is_int(-EEXIST, build(opts, &report), "dry run over an image");
	ok(said("holds a Stele image"), "refuses as a build does");
	opts = with_flags(STELE_DRY_RUN | STELE_FORCE);
	is_int(0, build(opts, &report), "dry run by force");
	ok(said("which would be overwritten"), "says what is lost");
	is_uint(report.image_end, report.target_size, "tells the new size");
	is_int(0, stele_verify(target, NULL, NULL), "the image is sound");
	is_int(0, build_to(NULL, opts, NULL), "dry run of no target");
	unlink(target);
}

static int stop_writing(void *user, const struct stele_progress *progress)
{
	(void)user;
	return progress->phase == STELE_PHASE_WRITE;
}

static void test_failed(void)
{
	struct stele_build_opts opts = {.progress = stop_writing};

	is_int(-ECANCELED, build(opts, NULL), "stopped");
	is_uint(UINT64_MAX, size_of(target), "a new file is gone");
	write_file(target, "", 0);
	is_int(-ECANCELED, build(opts, NULL), "stopped over an empty file");
	is_uint(0, size_of(target), "which is empty again");
	is_int(0, build(none, NULL), "now an image");
	opts.flags = STELE_FORCE;
	is_int(-ECANCELED, build(opts, NULL), "stopped over an image");
	is_int(-EEXIST, build(none, NULL), "which stays");
	ok(said("holds a Stele image"), "and is whole");
	is_int(0, build(with_flags(STELE_FORCE), NULL), "and replaced");
	unlink(target);
}

static void test_in_source(void)
{
	char inside[5000];

	snprintf(inside, sizeof(inside), "%s/image", source);
	is_int(0, build_to(inside, none, NULL), "a file within the source");
	is_int(0, build_to(inside, with_flags(STELE_FORCE), NULL),
	       "once more");
	is_uint(1, skipped_target, "it is no sample of itself");
	unlink(inside);
}

static void test_busy(void)
{
	struct stele_device *dev;

	if (build(none, NULL))
		bail("cannot build");
	if (stele_device_open_file(target, STELE_DEVICE_WRITE |
				   STELE_DEVICE_EXCL, NULL, NULL, &dev))
		bail("cannot open the target");
	is_int(-EBUSY, build(with_flags(STELE_FORCE), NULL),
	       "a target that is open, even by force");
	is_int(-EEXIST, build(none, NULL), "without it that is not what is said first");
	stele_device_close(dev);
	unlink(target);
}

/* As after a build that was killed: the kernel closes its files a bit later. */
static void test_released(void)
{
	write_file(target, "", 0);
	busy_locks = 3;
	is_int(0, build(none, NULL), "a target that is let go soon");
	is_uint(0, busy_locks, "was asked for until then");
	unlink(target);
}

static void test_arguments(void)
{
	struct stele_build_opts opts;
	uint8_t more[sizeof(opts) + 1] = {0};
	struct stele_build_opts *longer = (struct stele_build_opts *)more;

	is_int(-EINVAL, build(with_flags(1u << 20), NULL), "unknown flag");
	opts = (struct stele_build_opts){.label_from = STELE_LABEL_FROM_NONE + 1};
	is_int(-EINVAL, build(opts, NULL), "unknown origin of labels");
	opts = (struct stele_build_opts){.granule = 32};
	is_int(-EINVAL, build(opts, NULL), "odd granule");
	opts = (struct stele_build_opts){.order = 2};
	is_int(-EINVAL, build(opts, NULL), "unknown order");
	opts = (struct stele_build_opts){.memory_size = 1000};
	is_int(-EINVAL, build(opts, NULL), "no memory to speak of");
	opts = (struct stele_build_opts){.label = "two\nlines"};
	is_int(-EINVAL, build(opts, NULL), "label of two lines");
	is_int(-EINVAL, build_to(NULL, none, NULL), "no target");
	is_int(-EINVAL, build_to("x@bad name", none, NULL), "bad snapshot");
	is_int(-EINVAL, build_to("rbd:pool", none, NULL), "no RBD image");
	longer->size = sizeof(more);
	more[sizeof(opts)] = 1;
	is_int(-E2BIG, stele_build(source, target, longer, NULL),
	       "options of a newer header");
	setenv("SOURCE_DATE_EPOCH", "yesterday", 1);
	is_int(-EINVAL, build(none, NULL), "a time that is none");
	unsetenv("SOURCE_DATE_EPOCH");
	is_int(-ENOENT, stele_build("/no/such", target, NULL, NULL),
	       "no source");
	is_uint(UINT64_MAX, size_of(target), "no file was made");
}

static void test_time(void)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *image;

	setenv("SOURCE_DATE_EPOCH", "1234567890", 1);
	is_int(0, build(none, NULL), "with a time from the environment");
	unsetenv("SOURCE_DATE_EPOCH");
	if (stele_image_open(target, NULL, &image))
		bail("cannot open");
	stele_image_info(image, &info);
	is_int(1234567890, info.create_time, "which is the image's");
	is_int(1234567890, info.commit_time, "and its commit's");
	stele_image_close(image);
	unlink(target);
}

int main(void)
{
	char run[4200];

	plan_lazy();
	snprintf(run, sizeof(run), "%s/run", test_tmpdir());
	setenv("STELE_RUN_DIR", run, 1);
	unsetenv("SOURCE_DATE_EPOCH");
	make_source();
	test_new_file();
	test_own_image();
	test_unfinished();
	test_taken();
	test_begun();
	test_foreign();
	test_sizes();
	test_failed();
	test_in_source();
	test_busy();
	test_released();
	test_arguments();
	test_time();
	return done();
}
