/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot-change.c - snapshots come, get other names and go, against a model
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/txn/txn.h"
#include "tests/fixture/dataset.h"
#include "tests/device/fault.h"
#include "tests/fixture/change.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

enum { SEGMENTS = 3, SAMPLES = 400, VERSIONS_MAX = 12, STEPS = 250 };

/* One snapshot: which samples live, by segment and number. */
struct version {
	char name[16];
	char note[16];
	uint64_t id, parent;
	int64_t time;
	bool live[SEGMENTS][SAMPLES];
	uint64_t count;
};

static struct version versions[VERSIONS_MAX];
static unsigned int version_count;
static char keys[SEGMENTS][SAMPLES][24]; /* by number */
static struct test_sample *samples[SEGMENTS];
static struct test_log messages;

/* A writer on `dev` whose name nobody knows. */
static void open_writer(struct stele_txn *writer, struct stele_device *dev)
{
	test_log_init(&messages);
	if (test_txn_open(writer, dev, &messages.log))
		bail("no writer: %s", messages.text);
}

static struct stele_device *close_writer(struct stele_txn *writer)
{
	return test_txn_end(writer);
}

static struct stele_txn_opts change_at(int64_t time)
{
	return (struct stele_txn_opts){
		.size = sizeof(struct stele_txn_opts),
		.time = time,
	};
}

/* Three segments, and "v0", which has all of them. */
static struct stele_device *make_image(uint64_t size)
{
	static uint64_t numbers[SAMPLES];
	static struct test_image image;
	struct stele_device *memory, *dev;

	if (stele_device_open_memory(size, 512, &memory) ||
	    stele_device_open_fault(memory, NULL, 0, &dev) ||
	    test_image_begin(&image, dev, size))
		bail("no image");
	for (unsigned int s = 0; s < SEGMENTS; s++) {
		samples[s] = test_samples(SAMPLES, 60, s + 1);
		for (unsigned int i = 0; i < SAMPLES; i++)
			snprintf((char *)(uintptr_t)samples[s][i].key, 24,
				 "k%05u.%u", i * 7 % SAMPLES, s);
		if (test_image_segment(&image,
				       &(struct test_segment){
					       .samples = samples[s],
					       .count = SAMPLES,
					       .labels = true,
					       .numbers = numbers}))
			bail("no segment");
		for (unsigned int i = 0; i < SAMPLES; i++)
			strcpy(keys[s][numbers[i]], samples[s][i].key);
	}
	if (test_image_snapshot(&image, "v0", NULL, 0) ||
	    test_image_commit(&image))
		bail("no snapshot");
	versions[0] = (struct version){.name = "v0", .id = 1,
				       .time = 1700000000,
				       .count = SEGMENTS * SAMPLES};
	memset(versions[0].live, true, sizeof(versions[0].live));
	version_count = 1;
	return test_image_end(&image);
}

/* ---- what is there is what the model says ---------------------------------------- */

static uint64_t check_ids(const struct stele_snapshot *snapshot,
			  const struct version *version)
{
	uint64_t next = 0, wrong = 0, id, number;
	const struct stele_segment *segment;

	for (unsigned int s = 0; s < SEGMENTS; s++) {
		for (unsigned int n = 0; n < SAMPLES; n++) {
			int ret = stele_snapshot_id(
				snapshot, &snapshot->segments[s], n, &id);

			if (!version->live[s][n]) {
				wrong += ret != -ENOENT;
				continue;
			}
			wrong += ret || id != next;
			wrong += stele_snapshot_locate(snapshot, next, &segment,
						       &number) ||
				 segment != &snapshot->segments[s] ||
				 number != n;
			next++;
		}
	}
	wrong += next != snapshot->sample_count || next != version->count;
	return wrong + (stele_snapshot_locate(snapshot, next, &segment,
					      &number) != -ERANGE);
}

static uint64_t check_version(struct stele_image *image,
			      const struct version *version)
{
	struct stele_snapshot snapshot;
	uint64_t wrong;
	uint32_t index;
	char note[16] = "";

	if (stele_snapshot_find(image, version->name, NULL, &index) ||
	    stele_snapshot_load(image, index, &snapshot))
		return 1000;
	wrong = check_ids(&snapshot, version);
	wrong += snapshot.info.id != version->id ||
		 snapshot.info.parent != version->parent ||
		 snapshot.info.time != version->time;
	if (snapshot.info.note_size < sizeof(note))
		stele_catalog_note(&image->catalog, index, note);
	wrong += strcmp(note, version->note) != 0;
	stele_snapshot_release(&snapshot);
	return wrong;
}

/* As whoever opens it now would see it. */
static uint64_t check_all(struct stele_device *dev)
{
	struct stele_image image;
	uint64_t wrong = 0;

	if (stele_image_load(dev, NULL, &image))
		return 1000;
	wrong += image.catalog.counts.snapshots != version_count;
	for (unsigned int i = 0; i < version_count; i++)
		wrong += check_version(&image, &versions[i]);
	image.dev = NULL;
	stele_image_release(&image);
	return wrong;
}

/* ---- steps --------------------------------------------------------------------- */

static void name_of(char *name, unsigned int number)
{
	snprintf(name, 16, "v%u", number);
}

/* Some live samples of the version, some of them twice. */
static size_t choose(struct version *version, struct stele_key_ref *refs,
		     size_t most, uint64_t *seed)
{
	size_t wanted = test_random(seed) % (most + 1), count = 0;

	while (count < wanted && version->count) {
		unsigned int s = test_random(seed) % SEGMENTS;
		unsigned int n = test_random(seed) % SAMPLES;

		if (!version->live[s][n])
			continue;
		version->live[s][n] = false;
		version->count--;
		refs[count++] = (struct stele_key_ref){keys[s][n],
						       strlen(keys[s][n])};
		if (test_random(seed) % 8 == 0 && count < wanted) {
			refs[count] = refs[count - 1];
			count++;
		}
	}
	return count;
}

static int create(struct stele_txn *writer, unsigned int step,
		  uint64_t *seed)
{
	static struct stele_key_ref refs[SEGMENTS * SAMPLES];
	struct stele_txn_opts change = change_at(1700001000 + step);
	struct version *base = &versions[test_random(seed) % version_count];
	struct version *made = &versions[version_count];
	struct stele_snapshot_info info = {.size = sizeof(info)};
	bool newest = test_random(seed) % 3 == 0;
	size_t count;
	int ret;

	for (unsigned int i = 0; newest && i < version_count; i++)
		if (versions[i].id > base->id)
			base = &versions[i];
	*made = *base;
	name_of(made->name, step);
	snprintf(made->note, sizeof(made->note), step % 2 ? "note %u" : "",
		 step);
	made->parent = base->id;
	made->time = 1700001000 + step;
	count = choose(made, refs, step % 5 ? 9 : 300, seed);
	ret = test_change_create(writer, &change, made->name,
				  newest ? NULL : base->name, refs, count,
				  step % 2 ? made->note : NULL, &info);
	if (ret)
		return ret;
	version_count++;
	made->id = info.id;
	return strcmp(info.name, made->name) != 0 ||
	       info.parent != made->parent || info.time != made->time ||
	       info.sample_count != made->count ||
	       info.note_size != strlen(made->note);
}

static int remove_one(struct stele_txn *writer, unsigned int step,
		      uint64_t *seed)
{
	struct stele_txn_opts change = change_at(1700001000 + step);
	unsigned int i = test_random(seed) % version_count;
	int ret = test_change_delete(writer, &change, versions[i].name);

	versions[i] = versions[--version_count];
	return ret;
}

static int rename_some(struct stele_txn *writer, unsigned int step,
		       uint64_t *seed)
{
	struct stele_txn_opts change = change_at(1700001000 + step);
	struct version *version = &versions[test_random(seed) % version_count];
	char to[16];
	int ret;

	name_of(to, step);
	ret = test_change_rename(writer, &change, version->name, to);
	strcpy(version->name, to);
	return ret;
}

static int collect(struct stele_txn *writer, unsigned int step)
{
	struct stele_txn_opts change = change_at(1700001000 + step);
	struct stele_gc_report report = {.size = sizeof(report)};

	change.flags = STELE_FORCE;
	return test_change_gc(writer, &change, NULL, NULL,
			    &report);
}

static void check_model(void)
{
	uint64_t seed = 20261121, wrong = 0;
	struct stele_device *dev = make_image(UINT64_C(4) << 20);
	struct stele_txn writer;
	unsigned int step;

	diag("seed %ju", (uintmax_t)seed);
	open_writer(&writer, dev);
	for (step = 1; step <= STEPS && !wrong; step++) {
		unsigned int what = test_random(&seed) % 8;
		int ret;

		if (version_count == 1 ||
		    (what < 4 && version_count < VERSIONS_MAX))
			ret = create(&writer, step, &seed);
		else if (what < 6)
			ret = remove_one(&writer, step, &seed);
		else if (what < 7)
			ret = rename_some(&writer, step, &seed);
		else
			ret = collect(&writer, step);
		wrong += ret != 0;
		wrong += check_all(dev);
		if (wrong)
			diag("step %u: %d %s", step, ret, messages.text);
		/* Now and then by another process. */
		if (step % 16 == 0) {
			close_writer(&writer);
			open_writer(&writer, dev);
		}
	}
	is_uint(0, wrong, "%d steps, each snapshot as the model has it", STEPS);
	ok(writer.image->sb.high_water < UINT64_C(4) << 20,
	   "and the lists of snapshots that went do not fill the image");
	stele_device_close(close_writer(&writer));
	for (unsigned int s = 0; s < SEGMENTS; s++)
		free(samples[s]);
}

/* ---- what is refused, and what is written ------------------------------------------ */

static uint64_t written(struct stele_device *dev, enum stele_op op)
{
	const struct stele_fault_entry *log;
	size_t count;
	uint64_t seen = 0;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		seen += log[i].op == op;
	return seen;
}

static void check_refused(struct stele_txn *writer)
{
	const struct stele_txn_opts change = change_at(1700001000);
	struct stele_device *dev = writer->image->dev;
	const struct stele_key_ref refs[] = {
		{keys[1][7], strlen(keys[1][7])}, {"b", 1}, {"a", 1},
		{"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}, {"", 0}, {"a", 1},
	};

	stele_fault_log_clear(dev);
	is_int(-ENOENT,
	       test_change_create(writer, &change, "v1", NULL, refs, 9, NULL, NULL),
	       "keys that are not there");
	ok(test_log_has(&messages, "'a' is not in snapshot 'v0'"), "are named");
	ok(test_log_has(&messages, "nor are 2 more"), "or counted");
	ok(!test_log_has(&messages, keys[1][7]), "but not one that is there");
	is_int(-ENOENT,
	       test_change_create(writer, &change, "v1", "x", NULL, 0, NULL, NULL),
	       "no such base");
	is_int(-EEXIST,
	       test_change_create(writer, &change, "v0", NULL, NULL, 0, NULL, NULL),
	       "a name that is taken");
	is_int(-EINVAL,
	       test_change_create(writer, &change, ".v", NULL, NULL, 0, NULL, NULL),
	       "no name");
	is_int(-ENOENT, test_change_rename(writer, &change, "v1", "v2"),
	       "rename: no such snapshot");
	is_int(-EINVAL, test_change_rename(writer, &change, "v0", "a/b"),
	       "rename: no name");
	is_int(-ENOENT, test_change_delete(writer, &change, "v1"),
	       "delete: no such snapshot");
	is_uint(0, written(dev, STELE_OP_WRITE), "nothing was written");
}

/* To the places of mirrors. */
static unsigned int mirror_writes(struct stele_device *dev)
{
	const struct stele_fault_entry *log;
	unsigned int seen = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		seen += log[i].op == STELE_OP_WRITE &&
			log[i].offset >= STELE_CATALOG_MIRRORS_OFFSET &&
			log[i].offset < STELE_DATA_OFFSET;
	return seen;
}

/* More than a mirror has room for. */
static void check_large(void)
{
	struct stele_device *dev = make_image(UINT64_C(8) << 20);
	struct stele_txn_opts change = change_at(1700001000);
	const size_t size = STELE_CATALOG_MIRROR_SIZE;
	char *note = malloc(size + 1);
	struct stele_txn writer;

	if (!note)
		bail("no memory");
	memset(note, 'n', size);
	note[size] = '\0';
	open_writer(&writer, dev);
	ok(writer.image->sb.mirror_offset != 0, "a catalog with a mirror");
	stele_fault_log_clear(dev);
	is_int(0, test_change_create(&writer, &change, "v1", NULL, NULL, 0, note, NULL),
	       "one that is too large for a mirror");
	is_uint(0, writer.image->sb.mirror_crc, "has none");
	is_uint(1, mirror_writes(dev), "only its witness is written");
	is_uint(0, stele_image_wrong_catalogs(writer.image), "and that is right");
	test_txn_end(&writer);
	open_writer(&writer, dev);
	is_uint(0, messages.warnings, "it is found again");
	test_txn_end(&writer);
	stele_device_close(dev);
	free(note);
	for (unsigned int i = 0; i < SEGMENTS; i++)
		free(samples[i]);
}

static void check_written(void)
{
	struct stele_device *dev = make_image(UINT64_C(4) << 20);
	struct stele_txn_opts change = change_at(1700001000);
	struct stele_key_ref ref = {keys[0][0], strlen(keys[0][0])};
	struct stele_txn writer;

	open_writer(&writer, dev);
	check_refused(&writer);
	stele_fault_log_clear(dev);
	is_int(0,
	       test_change_create(&writer, &change, "v1", NULL, NULL, 0, NULL, NULL),
	       "nothing deleted");
	is_uint(5, written(dev, STELE_OP_WRITE),
		"writes a catalog, a superblock, their mirrors and the witness");
	is_uint(5, written(dev, STELE_OP_FLUSH), "five flushes");
	stele_fault_log_clear(dev);
	is_int(0, test_change_create(&writer, &change, "v2", NULL, &ref, 1, NULL, NULL),
	       "one deleted");
	is_uint(6, written(dev, STELE_OP_WRITE), "writes a list, too");
	is_uint(STELE_FEATURE_DELETED,
		writer.image->sb.feature_incompat & STELE_FEATURE_DELETED,
		"and sets the feature");
	stele_fault_log_clear(dev);
	is_int(-EEXIST, test_change_rename(&writer, &change, "v1", "v2"),
	       "rename: the name is taken");
	is_int(0, test_change_rename(&writer, &change, "v1", "v1"),
	       "rename: the same name");
	is_uint(0, written(dev, STELE_OP_WRITE), "writes nothing");
	is_int(0, test_change_delete(&writer, &change, "v0"), "delete");
	is_int(0, test_change_delete(&writer, &change, "v2"), "delete");
	is_int(0, test_change_delete(&writer, &change, "v1"), "the last one");
	is_uint(0, writer.image->catalog.counts.snapshots, "none is left");
	is_uint(SEGMENTS, writer.image->catalog.counts.segments,
		"but the segments");
	is_int(-ENOENT,
	       test_change_create(&writer, &change, "v3", NULL, NULL, 0, NULL, NULL),
	       "nothing to begin with");
	stele_device_close(close_writer(&writer));
	for (unsigned int s = 0; s < SEGMENTS; s++)
		free(samples[s]);
}

/* Any operation fails: the old state, or the new one, whole. */
static void check_faults(void)
{
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .error = EIO, .count = 0};
	struct stele_key_ref ref;
	uint64_t wrong = 0, n;
	int ret = -EIO;

	for (n = 0; ret; n++) {
		struct stele_device *dev = make_image(UINT64_C(4) << 20);
		struct stele_txn_opts change = change_at(1700001000);
		struct stele_txn writer;

		ref = (struct stele_key_ref){keys[2][9], strlen(keys[2][9])};
		open_writer(&writer, dev);
		rule.first = stele_fault_count(dev) + n;
		stele_fault_set_rules(dev, &rule, 1);
		ret = test_change_create(&writer, &change, "v1", NULL, &ref, 1, NULL,
					  NULL);
		wrong += ret && ret != -EIO;
		stele_fault_set_rules(dev, NULL, 0);
		close_writer(&writer);
		open_writer(&writer, dev);
		wrong += !stele_txn_find(&writer, "v0");
		wrong += !ret && !stele_txn_find(&writer, "v1");
		wrong += check_version(writer.image, &versions[0]);
		stele_device_close(close_writer(&writer));
		for (unsigned int s = 0; s < SEGMENTS; s++)
			free(samples[s]);
	}
	is_uint(0, wrong, "%ju operations fail one by one: nothing is lost",
		(uintmax_t)n);
	ok(n > 10, "so many can");
}

int main(void)
{
	plan_lazy();
	check_model();
	check_large();
	check_written();
	check_faults();
	return done();
}
