/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numpy.c - NumPy's files: one array, or several in a zip
 *
 * An array in a plain file stays there, all others are copied to the store.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "from/arrays.h"
#include "from/zip_end.h"
#include "libarchive.h"
#include "text.h"

#define COPY_SIZE ((size_t)64 << 10)

/* ---- bytes of a shard, or of a member ------------------------------------------ */

static int64_t read_some(struct arrays *arrays, void *data, size_t size)
{
	struct input *input = &arrays->scan->input;
	const uint8_t *bytes;
	int64_t got;

	if (arrays->zip)
		return libarchive.archive_read_data(arrays->zip, data, size);
	got = input_look(input, 1, &bytes);
	if (got <= 0)
		return got;
	size = (uint64_t)got < size ? (size_t)got : size;
	memcpy(data, bytes, size);
	input_skip(input, size);
	return (int64_t)size;
}

/* Return: how many; fewer at the end; negative errno, -EBADMSG. */
static int64_t read_full(struct arrays *arrays, uint8_t *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		int64_t got = read_some(arrays, data + done, size - done);

		if (got < 0)
			return arrays->zip ? -EBADMSG : got;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

/* Where the array begins in a zip, for messages. */
static uint64_t place(const struct arrays *arrays)
{
	la_int64_t at = arrays->zip ? libarchive.archive_read_header_position(arrays->zip) :
				      (la_int64_t)arrays->scan->input.offset;

	return at > 0 ? (uint64_t)at : 0;
}

/* `array`: that was read; NULL: none. */
static int unreadable(struct arrays *arrays, const struct array *array, int error)
{
	struct input *input = &arrays->scan->input;

	if (input->error && input->error != -EBADMSG)
		return from_cannot_read(arrays->scan, input->error);
	if (arrays->zip && array)
		return from_damaged(arrays->scan, place(arrays), "array '%s': %s", array->name,
				    libarchive_why(arrays->zip));
	if (arrays->zip)
		return from_damaged(arrays->scan, place(arrays), "%s",
				    libarchive_why(arrays->zip));
	return from_input_failed(arrays->scan, error);
}

static int cut_short(struct arrays *arrays, const struct array *array)
{
	char rows[TEXT_SIZE];

	return from_damaged(arrays->scan, place(arrays), "array '%s' is cut short: it has %s",
			    array->name, text_counted(rows, array->npy.dims[0], "row"));
}

/* The checksum of a member is looked at by who reads its end, behind its last byte. */
static int end_member(struct arrays *arrays, const struct array *array)
{
	int64_t got = read_full(arrays, arrays->buffer, 1);
	char rows[TEXT_SIZE];

	if (got < 0)
		return unreadable(arrays, array, (int)got);
	return got ? from_damaged(arrays->scan, place(arrays), "array '%s' has bytes behind its %s",
				  array->name, text_counted(rows, array->npy.dims[0], "row")) : 0;
}

static int copy(struct arrays *arrays, struct array *array)
{
	uint64_t left = array->npy.data_size;
	int ret = from_store(arrays->scan, 0, &array->place);

	while (left && !ret) {
		const size_t want = left < COPY_SIZE ? (size_t)left : COPY_SIZE;
		int64_t got = read_full(arrays, arrays->buffer, want);

		if (got < 0)
			return unreadable(arrays, array, (int)got);
		ret = from_append(arrays->scan, arrays->buffer, (size_t)got);
		if (!ret && (size_t)got < want)
			return cut_short(arrays, array);
		left -= want;
	}
	return ret || !arrays->zip ? ret : end_member(arrays, array);
}

/* ---- arrays -------------------------------------------------------------------- */

/* Return: 0, the array is there unless that was damage; negative errno (said). */
static int take_header(struct arrays *arrays, struct array *array)
{
	struct from_scan *scan = arrays->scan;
	const uint64_t at = place(arrays);
	int64_t got = read_full(arrays, arrays->buffer, NPY_FIRST_SIZE);
	uint64_t size = got == NPY_FIRST_SIZE ? npy_header_size(arrays->buffer) : 0;
	const char *why = "no header of NumPy";

	if (got < 0)
		return unreadable(arrays, array, (int)got);
	if (size >= NPY_FIRST_SIZE && size <= NPY_HEADER_MAX) {
		got = read_full(arrays, arrays->buffer + NPY_FIRST_SIZE,
				(size_t)size - NPY_FIRST_SIZE);
		if (got < 0)
			return unreadable(arrays, array, (int)got);
		why = (uint64_t)got + NPY_FIRST_SIZE < size ?
			      "a header that is cut short" :
			      npy_parse(arrays->buffer, (size_t)size, &array->npy);
	}
	if (!why)
		return 0;
	return from_damaged(scan, at, "array '%s' has %s%s", array->name, why,
			    arrays->zip ? " (" ARRAYS_OTHERS ")" : "");
}

static int take_array(struct arrays *arrays, struct array *array)
{
	struct from_scan *scan = arrays->scan;
	const uint64_t damages = scan->damages;
	int ret = take_header(arrays, array);

	if (ret || scan->damages != damages)
		return ret;
	ret = arrays_check(arrays, array);
	if (ret <= 0)
		return ret;
	ret = 0;
	if (arrays->zip || !from_is_plain(scan)) {
		ret = copy(arrays, array);
	} else {
		array->place = from_place(scan, scan->input.offset);
		if (array->npy.data_size > scan->shard->size - scan->input.offset)
			ret = cut_short(arrays, array);
		else
			ret = input_skip(&scan->input, array->npy.data_size);
	}
	if (ret || scan->damages != damages)
		return ret;
	arrays_add(arrays);
	return 0;
}

/* As NumPy leaves it: np.save() may write several arrays to one file. */
static int take_npy(struct arrays *arrays)
{
	struct from_scan *scan = arrays->scan;
	const uint8_t *data;
	int64_t got;
	int ret;

	strcpy(arrays->list[0].name, "data");
	ret = take_array(arrays, &arrays->list[0]);
	if (ret || !arrays->count)
		return ret;
	got = input_look(&scan->input, 1, &data);
	if (got > 0)
		from_warn(scan, scan->input.offset, "what is behind the array is ignored");
	return got < 0 ? from_input_failed(scan, (int)got) : 0;
}

static int npy_scan(struct from_scan *scan)
{
	scan->input.small = from_is_plain(scan);
	return arrays_scan(scan, take_npy);
}

const struct from_format from_npy = {
	.name = "npy",
	.detect = npy_detect,
	.scan = npy_scan,
	.kind = FROM_RECORDS,
};

static la_ssize_t read_zip(struct archive *archive, void *user, const void **data)
{
	struct arrays *arrays = user;
	const uint8_t *bytes;
	int64_t got = input_look(&arrays->scan->input, 1, &bytes);

	*data = bytes;
	if (got > 0) {
		zip_end_take(arrays->zip_end, bytes, (size_t)got);
		input_skip(&arrays->scan->input, (uint64_t)got);
	}
	if (got < 0)
		libarchive.archive_set_error(archive, EIO, "%s",
					     got == -EBADMSG ? input_why(&arrays->scan->input) :
							       strerror((int)-got));
	return got;
}

static const char *member_name(struct archive_entry *entry)
{
	const char *path = libarchive.archive_entry_pathname(entry);

	return path ? path : "";
}

/* A member x.npy is the array x. */
static int take_member(struct arrays *arrays, struct archive_entry *entry,
		       uint64_t *chosen)
{
	struct array *array = &arrays->list[arrays->count];
	const char *path = member_name(entry);
	const size_t size = strlen(path);

	if (arrays->count == STELE_FIELDS_MAX)
		return from_failed(arrays->scan->from, -EOVERFLOW, "'%s' has more than %d arrays",
				   arrays->scan->shard->name, STELE_FIELDS_MAX);
	if (size <= 4 || strcmp(path + size - 4, ".npy") != 0 || size - 4 >= sizeof(array->name))
		return from_damaged(arrays->scan, place(arrays),
				    "'%s' is not the name of an array", path);
	memcpy(array->name, path, size - 4);
	array->name[size - 4] = '\0';
	text_list(arrays->names, array->name);
	if (!arrays_choose(arrays->scan->from->opts.arrays, array->name, chosen))
		return 0;
	return take_array(arrays, array);
}

/* libarchive goes on at the next header that it knows. */
static int check_members(struct arrays *arrays)
{
	char why[ZIP_WHY_SIZE];
	const void *data;
	la_ssize_t got;

	do
		got = read_zip(arrays->zip, arrays, &data);
	while (got > 0);
	if (got < 0)
		return unreadable(arrays, NULL, (int)got);
	return zip_end_check(arrays->zip_end, why) ?
		       0 :
		       from_damaged(arrays->scan, arrays->scan->input.offset, "%s", why);
}

static int take_members(struct arrays *arrays)
{
	struct archive_entry *entry;
	uint64_t chosen = 0;
	int ret = 0, got;

	if (libarchive.archive_read_support_format_zip_streamable(arrays->zip))
		return -ENOMEM;
	got = libarchive.archive_read_open2(arrays->zip, arrays, NULL, read_zip, NULL, NULL);
	while (!ret && got == ARCHIVE_OK) {
		got = libarchive.archive_read_next_header(arrays->zip, &entry);
		if (got == ARCHIVE_OK) {
			zip_end_add(arrays->zip_end, member_name(entry));
			ret = take_member(arrays, entry, &chosen);
		}
	}
	if (ret)
		return ret;
	if (got != ARCHIVE_EOF) {
		arrays->count = 0; /* who knows what is missing? */
		return unreadable(arrays, NULL, -EBADMSG);
	}
	ret = check_members(arrays);
	return ret ? ret : arrays_found(arrays, chosen);
}

static int take_npz(struct arrays *arrays)
{
	int ret = -ENOMEM;

	arrays->zip = libarchive.archive_read_new();
	arrays->zip_end = calloc(1, sizeof(*arrays->zip_end));
	if (arrays->zip && arrays->zip_end)
		ret = take_members(arrays);
	if (arrays->zip)
		libarchive.archive_read_free(arrays->zip);
	free(arrays->zip_end);
	return ret;
}

static int npz_scan(struct from_scan *scan)
{
	return arrays_scan(scan, take_npz);
}

/* A zip whose first member is an array. */
static bool npz_detect(const uint8_t *data, size_t size)
{
	const size_t name = size > 30 ? data[26] | (size_t)data[27] << 8 : 0;

	return name > 4 && size >= 30 + name && !memcmp(data, "PK\3\4", 4) &&
	       !memcmp(data + 30 + name - 4, ".npy", 4);
}

const struct from_format from_npz = {
	.name = "npz",
	.detect = npz_detect,
	.scan = npz_scan,
	.kind = FROM_RECORDS,
	.options = FROM_ARRAYS | FROM_KEY,
};
