/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-import.c - a snapshot of another image, committed with other changes or not at all
 *
 * Through the public calls: what is imported has the digest, the samples and the note that
 * it has there; segments are shared; nothing is published before the commit; what waited for
 * the next snapshot still does; and a damaged source leaves nothing behind.
 */
#include "lib/stele.h"
#include "tests/fixture/files.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_SIZE 3000u

static char from[512], image[512];

static const char *at(const char *target, const char *name)
{
	static char text[2][600];
	static unsigned int turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "%s@%s", target, name);
	return text[turn];
}

/* Return: samples, -ENOENT and the like. */
static int64_t look(const char *target, const char *name, uint8_t digest[STELE_DIGEST_SIZE])
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	int ret = stele_dataset_open(at(target, name), NULL, &ds);

	if (ret < 0)
		return ret;
	stele_dataset_info(ds, &info);
	if (digest)
		memcpy(digest, info.digest, sizeof(info.digest));
	stele_dataset_close(ds);
	return (int64_t)info.sample_count;
}

/* Generation of what is published, and segments in it. */
static void published(uint64_t *generation, uint32_t *segments)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *open;

	if (stele_image_open(image, NULL, &open) < 0)
		bail("%s", stele_errmsg());
	stele_image_info(open, &info);
	stele_image_close(open);
	*generation = info.generation;
	*segments = info.segment_count;
}

static struct stele_txn *begin(uint32_t flags)
{
	struct stele_txn *txn = NULL;

	if (stele_txn_open(image, &STELE_OPTS(stele_txn_opts, .flags = flags), &txn) < 0)
		bail("%s", stele_errmsg());
	return txn;
}

static void make_images(void)
{
	const struct stele_build_opts opts = {.size = sizeof(opts), .note = "first"};
	struct stele_key_ref key = {"0007", 4};
	struct stele_txn *txn;

	snprintf(from, sizeof(from), "%s/from.stele", test_tmpdir());
	snprintf(image, sizeof(image), "%s/to.stele", test_tmpdir());
	if (stele_build(test_files("a", 0, 20, SAMPLE_SIZE), at(from, "v1"), &opts, NULL) < 0 ||
	    stele_append(test_files("b", 20, 30, SAMPLE_SIZE), at(from, "v2"), NULL, NULL) < 0 ||
	    stele_build(test_files("c", 100, 105, SAMPLE_SIZE), at(image, "own"), NULL, NULL) < 0 ||
	    stele_txn_open(from, NULL, &txn) < 0)
		bail("%s", stele_errmsg());
	if (stele_txn_delete(txn, &key, 1) < 0 ||
	    stele_txn_snapshot(txn, "v3", "less one", NULL) < 0 || stele_txn_commit(txn) < 0)
		bail("%s", stele_errmsg());
	stele_txn_close(txn);
}

static void test_commit(void)
{
	struct stele_copy_report report = {.size = sizeof(report)};
	uint8_t there[STELE_DIGEST_SIZE], here[STELE_DIGEST_SIZE];
	struct stele_txn *txn = begin(0);
	uint64_t before, after;
	uint32_t segments;

	published(&before, &segments);
	is_int(0, stele_txn_add(txn, test_files("d", 200, 203, 0), NULL, NULL),
	       "something waits");
	is_int(0, stele_txn_import(txn, at(from, "v1"), NULL, &report), "import");
	is_uint(1, report.segments_sent, "its segment is sent");
	is_string("v1", report.snapshot, "by its own name");
	is_int(0, stele_txn_import(txn, at(from, "v3"), "less", &report), "import of another");
	is_uint(2, report.segment_count, "two segments");
	is_uint(1, report.segments_sent, "one of them shared");
	is_int(0, stele_txn_import(txn, at(from, "v3"), "less", &report), "once more");
	is_uint(0, report.segments_sent, "it is there");
	is_int(-EEXIST, stele_txn_import(txn, at(from, "v2"), "less", NULL),
	       "another one of that name");
	is_int(0, stele_txn_snapshot(txn, "more", NULL, NULL), "what waited gets its name");
	published(&after, &segments);
	is_uint(before, after, "nothing is published");
	is_int(-ENOENT, look(image, "v1", NULL), "nor seen");
	is_int(0, stele_txn_preview(txn, NULL), "preview");
	is_int(0, stele_txn_commit(txn), "commit");
	published(&after, &segments);
	is_uint(before + 1, after, "in one commit");
	is_uint(4, segments, "its own two, and two that came");
	stele_txn_close(txn);
	is_int(8, look(image, "more", NULL), "what waited starts from its own base");
	is_int(look(from, "v3", there), look(image, "less", here), "as many samples");
	is_int(29, look(image, "less", NULL), "less the deleted one");
	ok(!memcmp(there, here, sizeof(here)), "the same digest");
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

static void test_note(void)
{
	struct stele_image *open;
	char note[64] = "";

	if (stele_image_open(image, NULL, &open) < 0)
		bail("%s", stele_errmsg());
	for (uint32_t i = 0; i < 4; i++) {
		struct stele_snapshot_info info = {.size = sizeof(info)};

		if (!stele_image_snapshot(open, i, &info) && !strcmp(info.name, "less"))
			stele_image_note(open, i, note, sizeof(note));
	}
	stele_image_close(open);
	is_string("less one", note, "the note came with it");
}

/* The next snapshot starts from what came, where nothing waited. */
static void test_goes_on(void)
{
	struct stele_key_ref key = {"0003", 4};
	struct stele_txn *txn = begin(0);

	is_int(0, stele_txn_import(txn, at(from, "v2"), NULL, NULL), "import");
	is_int(0, stele_txn_delete(txn, &key, 1), "delete from it");
	is_int(0, stele_txn_snapshot(txn, "v2-less", NULL, NULL), "snapshot");
	is_int(0, stele_txn_drop(txn, "less"), "drop another");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(29, look(image, "v2-less", NULL), "what came, less one");
	is_int(30, look(image, "v2", NULL), "and what came");
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

static void test_dry(void)
{
	struct stele_copy_report report = {.size = sizeof(report)};
	struct stele_txn *txn = begin(STELE_DRY_RUN);

	is_int(0, stele_txn_import(txn, at(from, "v1"), "dry", &report), "dry run: import");
	is_int(0, stele_txn_commit(txn), "dry run: commit");
	stele_txn_close(txn);
	is_int(-ENOENT, look(image, "dry", NULL), "dry run: nothing new");
}

/* The first snapshot of an image; and one of the image's own, under another name. */
static void test_new_image(void)
{
	struct stele_copy_report report = {.size = sizeof(report)};
	uint8_t there[STELE_DIGEST_SIZE], here[STELE_DIGEST_SIZE];
	char fresh[600];
	struct stele_txn *txn;

	snprintf(fresh, sizeof(fresh), "%s/fresh.stele", test_tmpdir());
	is_int(0, stele_txn_create(fresh, NULL, &txn), "a new image");
	is_int(0, stele_txn_import(txn, at(from, "v3"), NULL, NULL), "import");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(look(from, "v3", there), look(fresh, "v3", here), "as many samples");
	ok(!memcmp(there, here, sizeof(here)), "the same digest");
	is_int(0, stele_txn_open(fresh, NULL, &txn), "once more");
	is_int(0, stele_txn_import(txn, at(fresh, "v3"), "same", &report), "its own");
	is_uint(0, report.segments_sent, "nothing is sent");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(29, look(fresh, "same", here), "by the other name");
	is_int(0, stele_verify(fresh, NULL, NULL), "sound");
}

/* Of a segment that only `name` has: a byte of a sample is another one. */
static void damage(const char *name, unsigned int sample)
{
	char text[SAMPLE_SIZE + 1], found[SAMPLE_SIZE];
	const int fd = open(name, O_RDWR);
	off_t offset = 0;

	snprintf(text, sizeof(text), "%0*u", SAMPLE_SIZE, sample);
	while (pread(fd, found, SAMPLE_SIZE, offset) == SAMPLE_SIZE &&
	       memcmp(found, text, SAMPLE_SIZE))
		offset += 16;
	if (fd < 0 || pwrite(fd, "x", 1, offset) != 1 || close(fd))
		sysbail("cannot damage '%s'", name);
}

static void test_damaged(void)
{
	struct stele_txn *txn;
	uint64_t before, after;
	uint32_t segments, left;

	if (stele_append(test_files("e", 300, 310, SAMPLE_SIZE), at(from, "v4"), NULL, NULL) < 0 ||
	    stele_append(test_files("f", 310, 320, SAMPLE_SIZE), at(from, "v5"), NULL, NULL) < 0)
		bail("%s", stele_errmsg());
	damage(from, 315);
	published(&before, &segments);
	txn = begin(0);
	is_int(-EBADMSG, stele_txn_import(txn, at(from, "v5"), NULL, NULL),
	       "a source that is damaged");
	if (!ok(strstr(stele_errmsg(), "cannot import"), "and that is said"))
		diag("%s", stele_errmsg());
	is_int(-ENOENT, stele_txn_import(txn, at(from, "v9"), NULL, NULL), "one that is not there");
	is_int(-EINVAL, stele_txn_import(txn, NULL, NULL, NULL), "none");
	is_int(-EINVAL, stele_txn_import(txn, at(from, "v1"), "a/b", NULL), "not a name");
	is_int(0, stele_txn_commit(txn), "nothing is left to commit");
	stele_txn_close(txn);
	published(&after, &left);
	is_uint(before, after, "nothing was written");
	txn = begin(0);
	is_int(-EBADMSG, stele_txn_import(txn, at(from, "v5"), NULL, NULL), "damaged");
	is_int(0, stele_txn_import(txn, at(from, "v1"), "again", NULL), "then what is sound");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	published(&after, &left);
	is_uint(segments, left, "no segment of the damaged one stays");
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

/* A byte of the first block of a type. */
static void damage_block(const char *name, char type)
{
	const char magic[12] = {'\x93', 'S', 'T', 'E', 'L', 'E', '\r', '\n', type};
	char found[sizeof(magic)] = "";
	int fd = open(name, O_RDWR);
	off_t offset = 0;

	while (pread(fd, found, sizeof(found), offset) == sizeof(found) &&
	       memcmp(found, magic, sizeof(magic)))
		offset += 4096;
	if (fd < 0 || pread(fd, found, 1, offset + 40) != 1 ||
	    pwrite(fd, &(char){(char)(*found ^ 1)}, 1, offset + 40) != 1 || close(fd))
		sysbail("cannot damage '%s'", name);
}

/* What would lose class names is refused, from an image and to one. */
static void test_damaged_names(void)
{
	char directory[600], target[600];
	struct stele_txn *txn;

	test_files("classes", 0, 0, 0);
	snprintf(directory, sizeof(directory), "%s", test_files("classes/dog", 0, 5, 0));
	*strrchr(directory, '/') = '\0';
	snprintf(target, sizeof(target), "%s/unnamed.stele", test_tmpdir());
	if (stele_build(directory, at(target, "v1"), NULL, NULL) < 0)
		bail("%s", stele_errmsg());
	damage_block(target, 10);
	is_int(5, look(target, "v1", NULL), "without class names: opens");
	txn = begin(0);
	is_int(-EBADMSG, stele_txn_import(txn, at(target, "v1"), NULL, NULL),
	       "without class names: no import");
	if (!ok(strstr(stele_errmsg(), "class names of field 'label'"), "and that is said"))
		diag("%s", stele_errmsg());
	stele_txn_close(txn);
	if (stele_txn_open(target, NULL, &txn) < 0)
		bail("%s", stele_errmsg());
	is_int(-EBADMSG, stele_txn_add(txn, directory, NULL, NULL), "and nothing is added to it");
	if (!ok(strstr(stele_errmsg(), "class names of field 'label'"), "for that reason"))
		diag("%s", stele_errmsg());
	stele_txn_close(txn);
}

int main(void)
{
	plan_lazy();
	make_images();
	test_commit();
	test_note();
	test_goes_on();
	test_dry();
	test_new_image();
	test_damaged();
	test_damaged_names();
	return done();
}
