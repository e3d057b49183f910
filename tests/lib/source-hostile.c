/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-hostile.c - a source that breaks each rule in turn gets a clear error
 *
 * And loses nothing: a build leaves no file, an append leaves the image as it was, with
 * and without leave to skip what cannot be read. What looks odd and is allowed passes.
 */
#include "lib/stele.h"
#include "tests/tap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES 20u
#define FIELDS	4u
#define SIZE	26u /* bytes of text, tensor and blob: 8 + 12 + 6 */

/* What is wrong; the sample at fault is number 7. */
static struct {
	struct stele_source_ops ops;
	struct stele_field fields[STELE_FIELDS_MAX + 1];
	uint32_t count;
	struct stele_source_entry entry; /* of sample 7 */
	union stele_value values[FIELDS];
	char bytes[SIZE + 8];
	uint64_t delivered;
	size_t piece; /* that read() returns at most; 0: all */
	int scan_error, open_error;
	int64_t read_result; /* 0: what it should be */
	bool ignores;	     /* that the sink refuses */
	bool base;	     /* keys of the image that is appended to */
} evil;

static char key[32];

static void set_field(uint32_t index, const char *name, uint32_t type)
{
	evil.fields[index] = (struct stele_field){
		.size = sizeof(evil.fields[index]), .type = type};
	snprintf(evil.fields[index].name, sizeof(evil.fields[index].name),
		 "%s", name);
}

static int scan(void *user, const struct stele_source_sink *sink)
{
	int ret = 0;

	(void)user;
	for (uint64_t i = 0; i < SAMPLES && (!ret || evil.ignores); i++) {
		struct stele_source_entry entry = evil.entry;
		char good[32];

		if (i != 7) {
			entry = (struct stele_source_entry){
				.size = sizeof(entry), .key = good,
				.data_size = SIZE, .place = i};
			entry.key_size = (size_t)snprintf(
				good, sizeof(good), "%s %u",
				evil.base ? "base" : "sample", (unsigned int)i);
		}
		ret = sink->entry(sink->user, &entry);
	}
	return evil.ignores ? 0 : evil.scan_error ? evil.scan_error : ret;
}

static int schema(void *user, const struct stele_schema *base,
		  struct stele_schema *out)
{
	(void)user;
	(void)base;
	out->fields = evil.fields;
	out->count = evil.count;
	return 0;
}

static int open_sample(void *reader, const struct stele_source_entry *entry,
		       union stele_value *values)
{
	static const union stele_value good[FIELDS] = {
		{.size = 8}, {.size = 12}, {.f64 = 1}, {.size = 6}};

	(void)reader;
	if (entry->place == 7 && evil.open_error)
		return evil.open_error;
	memcpy(values, entry->place == 7 ? evil.values : good, sizeof(good));
	return 0;
}

static int64_t read_sample(void *reader, const struct stele_source_entry *entry,
			   uint64_t offset, void *data, size_t size)
{
	static const char good[SIZE + 1] = "r\xc3\xa9sum\xc3\xa9 tensor tensblob..";
	const bool bad = entry->place == 7;
	const uint64_t end = bad ? evil.delivered : SIZE;

	(void)reader;
	if (bad && evil.read_result)
		return evil.read_result;
	size = size > end - offset ? end - offset : size;
	if (bad && evil.piece && size > evil.piece)
		size = evil.piece;
	memcpy(data, (bad ? evil.bytes : good) + offset, size);
	return (int64_t)size;
}

/* As it should be: the start of each row. */
static void behave(void)
{
	memset(&evil, 0, sizeof(evil));
	evil.ops = (struct stele_source_ops){
		.size = sizeof(evil.ops), .scan = scan, .schema = schema,
		.open = open_sample, .read = read_sample};
	set_field(0, "text", STELE_TYPE_UTF8);
	set_field(1, "tensor", STELE_TYPE_TENSOR);
	evil.fields[1].dtype = STELE_DTYPE_F32;
	evil.fields[1].rank = 2;
	evil.fields[1].dims[1] = 3;
	set_field(2, "score", STELE_TYPE_F64);
	set_field(3, "blob", STELE_TYPE_BYTES);
	evil.count = FIELDS;
	snprintf(key, sizeof(key), "sample 7");
	evil.entry = (struct stele_source_entry){
		.size = sizeof(evil.entry), .key = key, .key_size = 8,
		.data_size = SIZE, .place = 7};
	evil.values[0].size = 8;
	evil.values[1].size = 12;
	evil.values[3].size = 6;
	memcpy(evil.bytes, "plain tetensor tensblob..", SIZE);
	evil.delivered = SIZE;
}

/* ---- rows: one rule each --------------------------------------------------------- */

static void no_key(void)
{
	evil.entry.key = NULL;
}

static void empty_key(void)
{
	evil.entry.key_size = 0;
}

static void zero_key(void)
{
	key[3] = '\0';
}

static void key_twice(void)
{
	key[7] = '5';
}

static void long_key(void)
{
	static char text[5000];

	memset(text, 'k', sizeof(text));
	evil.entry.key = text;
	evil.entry.key_size = 4001;
}

static void huge(void)
{
	evil.entry.data_size = UINT64_MAX;
}

static void large(void)
{
	evil.entry.data_size = STELE_SAMPLE_SIZE_MAX + 1;
}

static void entry_size(void)
{
	evil.entry.size = 0;
}

static void ignores(void)
{
	evil.ignores = true;
	evil.entry.key_size = 0;
}

static void scan_fails(void)
{
	evil.scan_error = -EPROTO;
}

static void scan_lies(void)
{
	evil.scan_error = 42;
}

static void no_fields(void)
{
	evil.count = 0;
}

static void many_fields(void)
{
	for (uint32_t i = 0; i <= STELE_FIELDS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		set_field(i, name, STELE_TYPE_I64);
	}
	evil.count = STELE_FIELDS_MAX + 1;
}

/* As of a dataset that was opened without them. */
static void names_damaged(void)
{
	set_field(3, "label", STELE_TYPE_I64);
	evil.fields[3].names_damaged = 1;
}

static void field_size(void)
{
	evil.fields[0].size = 0;
}

static void field_name(void)
{
	evil.fields[0].name[0] = '.';
}

static void no_end(void)
{
	memset(evil.fields[0].name, 'n', 64);
}

static void name_twice(void)
{
	strcpy(evil.fields[3].name, "text");
}

static void field_type(void)
{
	evil.fields[0].type = 9;
}

static void element(void)
{
	evil.fields[1].dtype = 99;
}

static void shape_of_text(void)
{
	evil.fields[0].rank = 1;
}

static void rank(void)
{
	evil.fields[1].rank = 9;
}

static void negative(void)
{
	evil.fields[1].dims[1] = (uint32_t)-3;
}

static void second_zero(void)
{
	evil.fields[1].dims[1] = 0;
}

static void overflow(void)
{
	evil.fields[1].rank = 8;
	for (unsigned int i = 0; i < 8; i++)
		evil.fields[1].dims[i] = 0x7fffffff;
}

static void names_of_text(void)
{
	static const char *const names[] = {"a"};

	evil.fields[0].names = names;
	evil.fields[0].name_count = 1;
}

static void no_names(void)
{
	set_field(3, "label", STELE_TYPE_I64);
	evil.fields[3].name_count = 5;
}

static void null_name(void)
{
	static const char *const names[] = {"a", NULL};

	set_field(3, "label", STELE_TYPE_I64);
	evil.fields[3].names = names;
	evil.fields[3].name_count = 2;
}

static void long_name(void)
{
	static char text[4002];
	static const char *const names[] = {text};

	memset(text, 'n', 4001);
	set_field(3, "label", STELE_TYPE_I64);
	evil.fields[3].names = names;
	evil.fields[3].name_count = 1;
}

static void sum_low(void)
{
	evil.values[3].size = 5;
}

static void sum_one(void)
{
	evil.values[0].size = evil.values[1].size = 0;
	evil.values[3].size = 1;
}

static void sum_wraps(void)
{
	evil.values[0].size = UINT64_MAX;
	evil.values[3].size = SIZE - 11;
}

static void not_shaped(void)
{
	evil.values[1].size = 11;
	evil.values[3].size = 7;
}

static void not_text(void)
{
	evil.bytes[2] = '\xff';
}

static void cut_text(void)
{
	evil.bytes[7] = '\xc3';
}

static void shrinks(void)
{
	evil.delivered = SIZE - 1;
}

static void grows(void)
{
	evil.delivered = SIZE + 1;
}

/* By pieces that end where the sample should. */
static void grows_behind(void)
{
	evil.delivered = SIZE + 1;
	evil.piece = SIZE / 2;
}

static void empties(void)
{
	evil.delivered = 0;
}

static void open_fails(void)
{
	evil.open_error = -EACCES;
}

static void open_lies(void)
{
	evil.open_error = 1;
}

static void read_fails(void)
{
	evil.read_result = -EIO;
}

static void read_lies(void)
{
	evil.read_result = INT64_MAX;
}

static void read_sinks(void)
{
	evil.read_result = INT64_MIN;
}

static void no_scan(void)
{
	evil.ops.scan = NULL;
}

static void no_read(void)
{
	evil.ops.read = NULL;
}

static void ops_size(void)
{
	evil.ops.size = 3;
}

static void ops_flags(void)
{
	evil.ops.flags = 0x80;
}

static void half_reader(void)
{
	evil.ops.reader_free = free;
}

static const struct {
	const char *what;
	void (*misbehave)(void);
	int error;
	const char *says;
	bool skips; /* SKIP_CHANGED leaves the sample out */
} rows[] = {
	{"no key", no_key, -EINVAL, "without a key", false},
	{"an empty key", empty_key, -EINVAL, "without a key", false},
	{"a zero byte in a key", zero_key, -EINVAL, "zero byte in a key", false},
	{"a key twice", key_twice, -EEXIST, "'sample 5' twice", false},
	{"a long key", long_key, -ENAMETOOLONG, "more than 4000", false},
	{"2^64 - 1 bytes", huge, -EFBIG, "'sample 7' has", false},
	{"one byte too many", large, -EFBIG, "'sample 7' has", false},
	{"an entry of no size", entry_size, -EINVAL, "size", false},
	{"a scan that ignores the sink", ignores, -EINVAL, "without a key", false},
	{"a scan that fails", scan_fails, -EPROTO, "", false},
	{"a scan that returns 42", scan_lies, -EINVAL, "", false},
	{"no fields", no_fields, -EINVAL, "0 fields", false},
	{"65 fields", many_fields, -EINVAL, "65 fields", false},
	{"a field of no size", field_size, -EINVAL, "size", false},
	{"names that are damaged", names_damaged, -EBADMSG, "class names are damaged", false},
	{"a bad name", field_name, -EINVAL, "not a valid name, which is 1 to 63", false},
	{"a name without end", no_end, -EINVAL, "not a valid name, which is 1 to 63", false},
	{"a name twice", name_twice, -EINVAL, "twice", false},
	{"an unknown type", field_type, -EINVAL, "unknown type", false},
	{"an unknown element", element, -EINVAL, "unknown element", false},
	{"a text with a shape", shape_of_text, -EINVAL, "without a tensor", false},
	{"rank 9", rank, -EINVAL, "more than 8 dimensions", false},
	{"a negative dimension", negative, -EINVAL, "a dimension above", false},
	{"a second dimension of 0", second_zero, -EINVAL, "not the first", false},
	{"a product that overflows", overflow, -EINVAL, "more bytes than", false},
	{"names of a text", names_of_text, -EINVAL, "for i64 only", false},
	{"names that are not there", no_names, -EINVAL, "have to be given", false},
	{"a name that is NULL", null_name, -EINVAL, "class name", false},
	{"a long class name", long_name, -EINVAL, "class name", false},
	{"fields of 25 bytes in 26", sum_low, -EINVAL, "have 25 bytes", false},
	{"fields of one byte", sum_one, -EINVAL, "have 1 byte, and it 26", false},
	{"sizes that wrap around", sum_wraps, -EINVAL, "more than", false},
	{"a tensor of 11 bytes", not_shaped, -EINVAL, "'tensor' has a size", false},
	{"a text that is none", not_text, -EINVAL, "not valid UTF-8", false},
	{"a character cut off", cut_text, -EINVAL, "not valid UTF-8", false},
	{"a sample that shrinks", shrinks, -ETXTBSY, "'sample 7'", true},
	{"one that grows", grows, -ETXTBSY, "'sample 7'", true},
	{"one that grows behind a piece", grows_behind, -ETXTBSY, "'sample 7'", true},
	{"one that is empty", empties, -ETXTBSY, "'sample 7'", true},
	{"an open that fails", open_fails, -EACCES, "'sample 7'", true},
	{"an open that returns 1", open_lies, -EINVAL, "open() returned", false},
	{"a read that fails", read_fails, -EIO, "'sample 7'", true},
	{"a read beyond what was asked", read_lies, -EINVAL, "read() returned", false},
	{"a read that returns -2^63", read_sinks, -EINVAL, "read() returned", false},
	{"no scan()", no_scan, -EINVAL, "without scan()", false},
	{"no read()", no_read, -EINVAL, "without scan() or read()", false},
	{"ops of no size", ops_size, -EINVAL, "size", false},
	{"unknown flags", ops_flags, -EINVAL, "flags", false},
	{"half a reader", half_reader, -EINVAL, "only one of", false},
};

/* ---- what it gets -------------------------------------------------------------------- */

static char image[512], fresh[512];

static void image_digest(uint8_t digest[STELE_DIGEST_SIZE], uint32_t *count)
{
	struct stele_snapshot_info snapshot = {.size = sizeof(snapshot)};
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_image *handle;

	if (stele_image_open(image, NULL, &handle) < 0)
		bail("the image is gone: %s", stele_errmsg());
	stele_image_info(handle, &info);
	stele_image_snapshot(handle, 0, &snapshot);
	memcpy(digest, snapshot.digest, STELE_DIGEST_SIZE);
	*count = info.snapshot_count;
	stele_image_close(handle);
}

static void refused(int wanted, int ret, const char *says, const char *what)
{
	is_int(wanted, ret, "%s: fails", what);
	if (!ok(strstr(stele_errmsg(), says) && *stele_errmsg(),
		"%s: says '%s'", what, says))
		diag("'%s'", stele_errmsg());
}

static void test_row(size_t i, uint32_t flags)
{
	const uint8_t uuid[STELE_UUID_SIZE] = {1};
	const struct stele_build_opts opts = {
		.size = sizeof(opts), .flags = flags,
		.uuid = i % 2 ? uuid : NULL};
	const struct stele_append_opts more = {.size = sizeof(more),
					      .flags = flags};
	const bool skips = flags && rows[i].skips;
	uint8_t before[STELE_DIGEST_SIZE], after[STELE_DIGEST_SIZE];
	struct stele_build_report report = {.size = sizeof(report)};
	char target[600], name[64];
	uint32_t count, now;
	int ret;

	behave();
	rows[i].misbehave();
	ret = stele_build_from(&evil.ops, NULL, fresh, &opts, &report);
	if (skips) {
		is_int(0, ret, "%s: is left out", rows[i].what);
		is_uint(SAMPLES - 1, report.sample_count, "the others are there");
		is_int(0, stele_verify(fresh, NULL, NULL), "and sound");
		unlink(fresh);
		return;
	}
	refused(rows[i].error, ret, rows[i].says, rows[i].what);
	ok(access(fresh, F_OK) < 0, "%s: no file stays", rows[i].what);
	image_digest(before, &count);
	snprintf(name, sizeof(name), "row-%zu-%u", i, flags);
	snprintf(target, sizeof(target), "%s@%s", image, name);
	ret = stele_append_from(&evil.ops, NULL, target, &more, NULL);
	/* Other fields than the base's are another error. */
	if (ret != -EOPNOTSUPP)
		refused(rows[i].error, ret, rows[i].says, rows[i].what);
	image_digest(after, &now);
	ok(now == count && !memcmp(before, after, sizeof(after)),
	   "%s: the image is as it was", rows[i].what);
}

static void allowed(const char *what)
{
	is_int(0, stele_build_from(&evil.ops, NULL, fresh, NULL, NULL),
	       "%s: built", what);
	is_int(0, stele_verify(fresh, NULL, NULL), "%s: sound", what);
	unlink(fresh);
}

static void test_allowed(void)
{
	static const double odd[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0};
	static const char *const names[] = {"same", "same", "\xff"};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		behave();
		evil.values[2].f64 = odd[i];
		allowed("a score that is no number");
	}
	behave();
	memset(evil.bytes, 0, 8);
	allowed("a text of zero bytes");
	behave();
	evil.values[1].size = 0;
	evil.values[0].size = 0;
	evil.values[3].size = SIZE;
	allowed("a tensor without rows");
	behave();
	set_field(2, "label", STELE_TYPE_I64);
	evil.fields[2].names = names;
	evil.fields[2].name_count = 3;
	evil.values[2].i64 = INT64_MIN;
	allowed("names twice, and values without one");
	behave();
	evil.ops.flags = STELE_SOURCE_REPEATS;
	key[7] = '5';
	allowed("a key twice where it may be");
}

int main(void)
{
	plan_lazy();
	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	snprintf(fresh, sizeof(fresh), "%s/fresh", test_tmpdir());
	behave();
	evil.base = true;
	key[0] = 'S';
	is_int(0, stele_build_from(&evil.ops, NULL, image, NULL, NULL),
	       "one that behaves");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_row(i, 0);
		test_row(i, STELE_BUILD_SKIP_CHANGED);
	}
	is_int(0, stele_verify(image, NULL, NULL), "after all that it is sound");
	test_allowed();
	return done();
}
