/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open-names.c - what a target's name opens: paths, snapshots, pins, mappings
 *
 * An image of two snapshots, on a file and, as root, on loop devices; mapped,
 * unmapped, replaced under its mapping.
 */
#include "lib/node/mapping.h"
#include "lib/read/dataset.h"
#include "tests/fixture/image.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COUNT	   200
#define IMAGE_SIZE (UINT64_C(4) << 20)

static struct test_image image;
static uint8_t *bytes; /* of the image */
static struct test_log log_;

/* Snapshots "v1", all, and "v2", without the first two; label "test". */
static void make_image(void)
{
	static const uint64_t gone[] = {0, 1};
	const struct test_ref less = {0, gone, 2};
	struct test_sample *samples = test_samples(COUNT, 3000, 1);
	const struct test_segment segment = {.samples = samples,
					     .count = COUNT};
	struct stele_device *dev;

	if (stele_device_open_memory(IMAGE_SIZE, 512, &dev) ||
	    test_image_begin(&image, dev, IMAGE_SIZE) ||
	    test_image_segment(&image, &segment) ||
	    test_image_snapshot(&image, "v1", NULL, 0) ||
	    test_image_snapshot(&image, "v2", &less, 1) ||
	    test_image_commit(&image))
		bail("cannot make an image");
	dev = test_image_end(&image);
	bytes = malloc(IMAGE_SIZE);
	memcpy(bytes, stele_device_memory(dev), IMAGE_SIZE);
	stele_device_close(dev);
	free(samples);
}

static void put_image(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);

	if (fd < 0 || pwrite(fd, bytes, IMAGE_SIZE, 0) != IMAGE_SIZE ||
	    fsync(fd))
		sysbail("cannot write '%s'", path);
	close(fd);
}

static int open_it(const char *target, struct stele_dataset **ds)
{
	test_log_init(&log_);
	*ds = NULL;
	return stele_dataset_open(target,
				  &STELE_OPTS(stele_open_opts,
					      .log = log_.log.fn,
					      .log_user = log_.log.user),
				  ds);
}

/* Opens as `snapshot`, or fails as `error` says. */
static void opens(const char *target, int error, const char *snapshot)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;

	is_int(error, open_it(target, &ds), "open '%.60s'", target);
	if (ds)
		stele_dataset_info(ds, &info);
	is_string(snapshot, info.snapshot, "is snapshot '%s'", snapshot);
	stele_dataset_close(ds);
}

static const char *pin(const char *path, int snapshot, bool wrong)
{
	static char text[PATH_MAX + 128];
	int used = snprintf(text, sizeof(text), "%s@sha256:", path);

	for (int i = 0; i < STELE_DIGEST_SIZE; i++)
		used += sprintf(text + used, "%02x",
				image.snapshots[snapshot].digest[i] ^
					(wrong && i == 31));
	return text;
}

static int map_it(const char *target, const char *name, uint32_t flags,
		  struct stele_mapping_info *info)
{
	test_log_init(&log_);
	return stele_map(target, name,
			 &STELE_OPTS(stele_map_opts, .log = log_.log.fn,
				     .log_user = log_.log.user,
				     .flags = flags),
			 info);
}

static int unmap_it(const char *name)
{
	test_log_init(&log_);
	return stele_unmap(name, &STELE_OPTS(stele_map_opts,
					     .log = log_.log.fn,
					     .log_user = log_.log.user));
}

/* ---- paths ------------------------------------------------------------------- */

static void check_paths(void)
{
	struct stele_open_opts opts = {.size = sizeof(opts)};
	struct stele_dataset *ds = NULL;

	put_image("cats.stele", O_CREAT);
	opens("./cats.stele@v1", 0, "v1");
	opens("cats.stele@v2", 0, "v2");
	opens("cats.stele@v3", -ENOENT, "");
	opens("cats.stele", -EINVAL, "");
	opens(pin("cats.stele", 1, false), 0, "v2");
	opens(pin("cats.stele", 1, true), -ENOENT, "");
	opens("none", -ENOENT, "");
	opens("none/none", -ENOENT, "");
	opens("/dev/null", -ENOTBLK, "");
	opens(".", -ENOTBLK, "");
	opens("", -EINVAL, "");
	file_new("hole", IMAGE_SIZE);
	opens("hole", -EMEDIUMTYPE, "");

	opts.verify = 4;
	is_int(-EINVAL, stele_dataset_open("cats.stele@v1", &opts, &ds),
	       "a kind of checking that there is not");
	opts.verify = 0;
	opts.backend = "none";
	is_int(-EINVAL, stele_dataset_open("cats.stele@v1", &opts, &ds),
	       "a backend that there is not");
	opts.backend = STELE_BACKEND_THREADS;
	is_int(0, stele_dataset_open("cats.stele@v1", &opts, &ds),
	       "a backend by name");
	stele_dataset_close(ds);
	is_int(0, stele_dataset_open("cats.stele@v1", NULL, &ds),
	       "no options");
	stele_dataset_close(ds);
}

static void check_images(void)
{
	struct stele_snapshot_info snapshot = {.size = sizeof(snapshot)};
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *opened = NULL;

	is_int(0, stele_image_open("cats.stele", NULL, &opened), "image opens");
	stele_image_info(opened, &info);
	is_string("test", info.label, "its label");
	is_uint(1, info.version, "its version");
	is_uint(2, info.snapshot_count, "its snapshots");
	is_uint(1, info.segment_count, "its segments");
	is_uint(4, info.superblocks_good, "its superblocks");
	is_uint(IMAGE_SIZE, info.image_size, "its size");
	is_int(0, stele_image_snapshot(opened, 1, &snapshot), "snapshot 1");
	is_string("v2", snapshot.name, "its name");
	is_uint(COUNT - 2, snapshot.sample_count, "its samples");
	is_uint(1, snapshot.parent, "its parent");
	ok(snapshot.payload_size > 0, "its payload");
	is_blob(image.snapshots[1].digest, snapshot.digest, 32, "its digest");
	is_int(-ERANGE, stele_image_snapshot(opened, 2, &snapshot),
	       "no snapshot 2");
	stele_image_close(opened);
	stele_image_close(NULL);
	is_int(0, stele_image_open("cats.stele@none", NULL, &opened),
	       "a snapshot in an image's name is ignored");
	stele_image_close(opened);
	is_int(-EMEDIUMTYPE, stele_image_open("hole", NULL, &opened),
	       "no image");
	is_int(-ENOENT, stele_image_open("none", NULL, &opened), "no file");
}

/* ---- mappings ---------------------------------------------------------------- */

static void check_map(void)
{
	struct stele_mapping_info info = {.size = sizeof(info)};
	struct stele_mapping_info again = {.size = sizeof(again)};
	struct stele_image *opened;

	is_int(0, stele_map_list(NULL, NULL, NULL), "no mappings, no directory");
	is_int(-EINVAL, map_it("cats.stele", "cats", 0, &info),
	       "which snapshot?");
	is_int(-ENOENT, map_it("cats.stele@v3", "cats", 0, &info),
	       "no such snapshot");
	is_int(-EINVAL, map_it("cats.stele@v1", "a/b", 0, &info),
	       "a name that is none");
	is_int(-EINVAL, map_it("cats.stele@v1", "cats", 1, &info),
	       "a flag that is none");
	is_int(-ENOTBLK,
	       map_it("cats.stele@v1", "cats", STELE_MAP_READ_ONLY, &info),
	       "a file is no device to set read-only");
	is_int(0, stele_map_list(NULL, NULL, NULL), "none of that published anything");

	is_int(0, map_it("cats.stele@v1", "cats", 0, &info), "mapped");
	is_string("cats", info.name, "name");
	is_string("v1", info.snapshot, "snapshot");
	is_uint(COUNT, info.sample_count, "samples");
	ok(!info.target && !info.stale && !info.read_only, "and no more");
	again = (struct stele_mapping_info){.size = sizeof(again)};
	is_int(0, map_it("./cats.stele@v1", "cats", 0, &again), "the same again");
	is_int(info.time, again.time, "changes nothing");
	is_int(-EEXIST, map_it("cats.stele@v2", "cats", 0, &info),
	       "another snapshot under that name");
	ok(test_log_has(&log_, "cats.stele@v1"), "says what it is taken by");

	opens("cats", 0, "v1");
	opens("cats@v1", 0, "v1");
	opens("cats@v2", -ENOENT, "");
	ok(test_log_has(&log_, "mapped to snapshot 'v1'"), "says why");
	opens(pin("cats", 0, false), 0, "v1");
	opens(pin("cats", 1, false), -ENOENT, "");
	opens("./cats", -ENOENT, "");
	command("echo no image >cats");
	opens("cats", 0, "v1");
	opens("./cats", -EMEDIUMTYPE, "");

	is_int(0, map_it("cats", NULL, 0, &info), "mapped by its mapped name");
	is_string("test", info.name, "by its label");
	opens("test", 0, "v1");
	is_int(0, stele_image_open("test@v9", NULL, &opened),
	       "the image by a mapped name");
	stele_image_close(opened);
}

struct seen {
	char names[8][64];
	bool stale[8];
	int count;
	bool absolute;
};

static void see(void *user, const struct stele_mapping_info *info)
{
	struct seen *seen = user;

	if (seen->count == 8)
		return;
	strcpy(seen->names[seen->count], info->name);
	seen->absolute = info->target[0] == '/';
	seen->stale[seen->count++] = info->stale;
}

static void check_list(void)
{
	const struct stele_map_opts opts = STELE_OPTS(stele_map_opts, .log = log_.log.fn,
						      .log_user = log_.log.user);
	struct seen seen = {0};
	char name[64] = "";

	map_it("cats.stele@v2", "aa", 0, NULL);
	command("echo damaged >run/damaged; echo hidden >run/.hidden");
	is_int(3, stele_map_list(see, &seen, &opts), "three are mapped");
	ok(test_log_has(&log_, "/damaged': "), "the damaged one is named");
	is_string("aa", seen.names[0], "by name");
	is_string("cats", seen.names[1], "by name");
	is_string("test", seen.names[2], "by name");
	ok(!seen.stale[0] && seen.absolute, "with the whole path, and good");
	is_int(1, stele_mapping_of("./cats.stele", name), "the file is mapped");
	is_string("aa", name, "under the first name");
	is_int(0, stele_mapping_of("hole", name), "another is not");
	is_int(0, stele_mapping_of("none", name), "nor what is not there");
	is_int(0, stele_mapping_of("/dev/null", name), "nor what cannot be");
	opens("damaged", -EBADMSG, "");
	ok(test_log_has(&log_, "bad mapping"), "says so");
	is_int(-EBADMSG, map_it("cats.stele@v1", "damaged", 0, NULL),
	       "a damaged one is in the way");
	is_int(0, unmap_it("damaged"), "until it is unmapped");
	is_int(-ENOENT, unmap_it("damaged"), "once");
	is_int(0, unmap_it("aa"), "unmapped");
	is_int(-EINVAL, unmap_it("../run/test"), "a path is not unmapped");
	is_int(-EINVAL, unmap_it(NULL), "nor nothing");
}

static void check_unmapped(void)
{
	struct stele_sample sample;
	struct stele_dataset *ds;

	is_int(0, open_it("test", &ds), "opened by name");
	is_int(0, unmap_it("test"), "and unmapped");
	is_int(0, stele_dataset_read(ds, 7, &sample), "still reads");
	stele_sample_release(&sample);
	stele_dataset_close(ds);
	opens("test", -ENOENT, "");
}

static bool is_stale(const char *name)
{
	struct stele_mapping mapping;
	bool stale;

	if (stele_mapping_load(name, NULL, &mapping))
		return false;
	stale = stele_mapping_is_stale(&mapping);
	stele_mapping_release(&mapping);
	return stale;
}

static void check_stale(void)
{
	struct stele_image *opened;

	command("mv cats.stele away");
	ok(is_stale("cats"), "gone: stale");
	opens("cats", -ESTALE, "");
	put_image("cats.stele", O_CREAT);
	ok(is_stale("cats"), "another file of the same bytes: stale");
	opens("cats", -ESTALE, "");
	ok(test_log_has(&log_, "map it again"), "says what to do");
	is_int(-ESTALE, stele_image_open("cats", NULL, &opened),
	       "for images, too");
	is_int(-EEXIST, map_it("cats.stele@v1", "cats", 0, NULL),
	       "nor is it the same to map");
	command("mv away cats.stele");
	ok(!is_stale("cats"), "the old one back: good");
	opens("cats", 0, "v1");
	if (truncate("cats.stele", IMAGE_SIZE + 4096))
		bail("cannot grow the file");
	opens("cats", 0, "v1");
	if (truncate("cats.stele", IMAGE_SIZE - 4096))
		bail("cannot cut the file");
	opens("cats", -ESTALE, "");
	is_int(0, unmap_it("cats"), "a stale one can be unmapped");
}

/* ---- devices ------------------------------------------------------------------ */

static int is_read_only(const char *node)
{
	int fd = open(node, O_RDONLY | O_CLOEXEC), value = -1;

	ioctl(fd, BLKROGET, &value);
	close(fd);
	return value;
}

static void check_device(const char *node)
{
	char first[64], second[64], name[64];
	struct stele_dataset *ds;

	snprintf(first, sizeof(first), "%s@v1", node);
	snprintf(second, sizeof(second), "%s@v2", node);
	is_int(0, map_it(first, "dev", 0, NULL), "a device is mapped");
	is_int(1, stele_mapping_of(node, name), "and known to be");
	is_int(0, open_it("dev", &ds), "opened by name");
	stele_dataset_close(ds);

	is_int(0, is_read_only(node), "writable until now");
	is_int(-EEXIST, map_it(first, "dev", STELE_MAP_READ_ONLY, NULL),
	       "mapped, but not read-only");
	is_int(0, map_it(first, "ro1", STELE_MAP_READ_ONLY, NULL),
	       "mapped read-only");
	is_int(1, is_read_only(node), "and is");
	is_int(0, map_it(second, "ro2", STELE_MAP_READ_ONLY, NULL),
	       "twice");
	is_int(0, map_it(first, "ro1", 0, NULL), "or the same again, without");
	is_int(0, unmap_it("ro1"), "one less");
	is_int(1, is_read_only(node), "still read-only");
	is_int(0, unmap_it("ro2"), "none left");
	is_int(0, is_read_only(node), "writable again");
	command("blockdev --setro %s", node);
	is_int(0, map_it(first, "ro1", STELE_MAP_READ_ONLY, NULL),
	       "read-only before");
	is_int(0, unmap_it("ro1"), "mapped and unmapped");
	is_int(1, is_read_only(node), "is as it was");
	command("blockdev --setrw %s", node);
}

static void check_devices(void)
{
	char node[LOOP_NODE_SIZE], other[LOOP_NODE_SIZE];

	if (!loop_usable()) {
		skip_block(1, "needs root and loop devices");
		return;
	}
	put_image("disk", O_CREAT);
	if (!loop_attach("disk", 512, node))
		bail("no loop device");
	check_device(node);
	is_int(0, map_it(pin(node, 0, false), "ro1", STELE_MAP_READ_ONLY, NULL),
	       "mapped read-only by its digest");
	command("blockdev --setrw %s", node); /* it would outlive the detach */
	loop_detach(node);
	ok(is_stale("dev"), "detached: stale");
	if (!loop_attach("disk", 512, other))
		bail("no loop device");
	/* Where the same node serves again, only diskseq is another one. */
	ok(is_stale("dev"), "attached again: stale");
	opens("dev", -ESTALE, "");
	is_int(0, unmap_it("ro1"), "a stale read-only one is unmapped");
	ok(test_log_has(&log_, "left as it is") || strcmp(node, other) != 0,
	   "and the new device left alone");
	loop_detach(other);
}

int main(void)
{
	char dir[PATH_MAX];

	plan_lazy();
	/* By hand, without prove, the directory's name would be relative. */
	if (!getenv("BUILD") && realpath("build", dir))
		setenv("BUILD", dir, 1);
	if (chdir(test_tmpdir()))
		sysbail("chdir");
	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	setenv(STELE_RUN_DIR_ENV, dir, 1);
	make_image();
	check_paths();
	check_images();
	check_map();
	check_list();
	check_unmapped();
	check_stale();
	check_devices();
	free(bytes);
	return done();
}
