/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_child.c - datasets of an HDF5 file, by libhdf5, which believes what is in the file
 *
 * It runs in a process of its own, which may crash or hang, and allocates nothing for good. Chunks
 * are read in their order, each once where a row of them fits into the cache.
 */
#include "from/hdf5_child.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "from/arrays.h"
#include "libhdf5.h"

#define PATH_SIZE    1024u
#define DEPTH_MAX    32u    /* groups may be links to what they are in */
#define ERROR_SIZE   200u   /* of libhdf5 */
#define LINKS_MAX    65536u /* of all groups */
#define BAND_SIZE    ((uint64_t)32 << 20)
#define CHUNKS_MAX   4096u /* read at once: libhdf5 takes a kilobyte for each */
#define MEMORY	     ((uint64_t)2 << 30) /* beside what data and chunks take */
#define DECODED_MAX  65536u /* bytes that filters make of one; deflate 1032 */
#define FILLED_MAX   ((uint64_t)64 << 20) /* bytes that may be of no chunk */
#define CACHE_SIZE   ((uint64_t)256 << 20)
#define CACHE_SLOTS  20011u
#define VALUES_SIZE  ((uint64_t)16 << 20) /* of rows that vary, read at once */
#define VALUES_COUNT 4096u
#define READ_ONLY    0u /* H5F_ACC_RDONLY, which is a call */

static const char no_memory[] = "there is no memory for its rows";

struct dataset {
	char path[PATH_SIZE];
	struct hdf5_array array;
	hid_t type; /* in memory */
	uint64_t element; /* bytes */
	int rank;
	hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
	bool chunked;
};

struct child {
	int pipe;
	const char *chosen;
	struct hdf5_end end;
	uint32_t links;
	struct dataset *list[STELE_FIELDS_MAX];
	uint32_t count;
	bool full;
	uint64_t file_size;
	uint64_t silence; /* seconds more than usual */
};

/* ---- to the parent -------------------------------------------------------------- */

static void put(const struct child *child, const void *data, size_t size)
{
	const uint8_t *at = data;

	while (size) {
		ssize_t done = write(child->pipe, at, size);

		if (done <= 0)
			_exit(1); /* nobody is there */
		at += done;
		size -= (size_t)done;
	}
}

/* From now on; time that a slow disk takes does not count. */
static void limit_silence(const struct child *child)
{
	const struct itimerval limit = {
		.it_value.tv_sec = HDF5_SILENCE_S + (time_t)child->silence};

	setitimer(ITIMER_PROF, &limit, NULL);
}

/* For what is damaged libhdf5 takes all that there is, and others would have to end. */
static void limit_memory(uint64_t more)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;
	struct rlimit limit;

	if (file && fscanf(file, "%lu", &pages) == 1 && !getrlimit(RLIMIT_AS, &limit)) {
		limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY + more;
		limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
		setrlimit(RLIMIT_AS, &limit);
	}
	if (file)
		fclose(file);
}

static void say(const struct child *child, enum hdf5_kind kind, const void *data, size_t size)
{
	const struct hdf5_frame frame = {kind, (uint32_t)size};

	limit_silence(child);
	put(child, &frame, sizeof(frame));
	put(child, data, size);
}

static void say_data(const struct child *child, const uint8_t *data, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += HDF5_FRAME_MAX)
		say(child, HDF5_DATA, data + at,
		    size - at < HDF5_FRAME_MAX ? (size_t)(size - at) : HDF5_FRAME_MAX);
}

static void say_text(const struct child *child, enum hdf5_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say_text(const struct child *child, enum hdf5_kind kind, const char *format, ...)
{
	char text[PATH_SIZE + 300];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(child, kind, text, (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1);
}

static herr_t first_error(unsigned int n, const H5E_error2_t *error, void *user)
{
	if (!n && error->desc)
		snprintf(user, ERROR_SIZE, "%s", error->desc);
	return 0;
}

/* What the library found wrong, where it did. */
static const char *why(void)
{
	static char text[ERROR_SIZE + 150];
	unsigned int version[3];
	size_t size;

	snprintf(text, sizeof(text), "cannot be read");
	libhdf5.H5Ewalk2(0, H5E_WALK_UPWARD, first_error, text);
	size = strlen(text);
	if (strstr(text, "version number") &&
	    libhdf5.H5get_libversion(&version[0], &version[1], &version[2]) >= 0)
		snprintf(text + size, sizeof(text) - size, " (libhdf5 %u.%u.%u may be too old for "
			 "it: h5py writes with libver=('earliest', 'v110') what 1.10 reads)",
			 version[0], version[1], version[2]);
	return text;
}

/* ---- types --------------------------------------------------------------------- */

static uint32_t integer_dtype(hid_t type)
{
	static const uint32_t dtypes[2][4] = {
		{STELE_DTYPE_U8, STELE_DTYPE_U16, STELE_DTYPE_U32, STELE_DTYPE_U64},
		{STELE_DTYPE_I8, STELE_DTYPE_I16, STELE_DTYPE_I32, STELE_DTYPE_I64}};
	const size_t size = libhdf5.H5Tget_size(type);

	if (libhdf5.H5Tget_precision(type) != 8 * size)
		return 0;
	for (unsigned int i = 0; i < 4; i++)
		if (size == (size_t)1 << i)
			return dtypes[libhdf5.H5Tget_sign(type) == H5T_SGN_2][i];
	return 0;
}

static uint32_t float_dtype(hid_t type)
{
	static const struct {
		uint32_t dtype;
		size_t size, exponent, exponent_size;
	} known[] = {{STELE_DTYPE_F16, 2, 10, 5}, {STELE_DTYPE_BF16, 2, 7, 8},
		     {STELE_DTYPE_F32, 4, 23, 8}, {STELE_DTYPE_F64, 8, 52, 11}};
	size_t sign, exponent, exponent_size, fraction, fraction_size;

	if (libhdf5.H5Tget_fields(type, &sign, &exponent, &exponent_size, &fraction,
				  &fraction_size) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (libhdf5.H5Tget_size(type) == known[i].size && exponent == known[i].exponent &&
		    exponent_size == known[i].exponent_size && !fraction &&
		    fraction_size == exponent && sign == 8 * known[i].size - 1)
			return known[i].dtype;
	return 0;
}

/* As h5py has them: FALSE and TRUE, of one byte. */
static bool is_bool(hid_t type)
{
	char *name = libhdf5.H5Tget_size(type) == 1 && libhdf5.H5Tget_nmembers(type) == 2 ?
			     libhdf5.H5Tget_member_name(type, 0) : NULL;
	const bool yes = name && !strcmp(name, "FALSE");

	libhdf5.H5free_memory(name);
	return yes;
}

/* Of numbers, little-endian from here on. Return: 0: it has none. */
static uint32_t number_dtype(hid_t type)
{
	const H5T_class_t class = libhdf5.H5Tget_class(type);

	if (class == H5T_ENUM && is_bool(type))
		return STELE_DTYPE_BOOL;
	if (class == H5T_ENUM) /* which cannot be converted */
		return libhdf5.H5Tget_order(type) == H5T_ORDER_LE ?
			       number_dtype(libhdf5.H5Tget_super(type)) : 0;
	if ((class != H5T_INTEGER && class != H5T_FLOAT) ||
	    (libhdf5.H5Tget_order(type) != H5T_ORDER_LE &&
	     libhdf5.H5Tset_order(type, H5T_ORDER_LE) < 0))
		return 0;
	return class == H5T_INTEGER ? integer_dtype(type) : float_dtype(type);
}

/* Of rows of some length each: bytes, or a tensor. */
static void take_sequence(struct dataset *d)
{
	hid_t base = libhdf5.H5Tcopy(libhdf5.H5Tget_super(d->type));
	struct npy *npy = &d->array.npy;

	npy->dtype = number_dtype(base);
	npy->row_size = d->element = libhdf5.H5Tget_size(base);
	if (npy->dtype == STELE_DTYPE_U8 || npy->dtype == STELE_DTYPE_I8)
		npy->text = NPY_BYTES;
	d->type = libhdf5.H5Tvlen_create(base);
	d->array.varies = true;
}

static void take_text(struct dataset *d)
{
	d->array.npy.text = NPY_UTF8;
	d->array.varies = libhdf5.H5Tis_variable_str(d->type) > 0;
	d->array.npy.row_size = d->element = d->array.varies ? 1 : libhdf5.H5Tget_size(d->type);
	if (!d->array.varies)
		libhdf5.H5Tset_strpad(d->type, H5T_STR_NULLPAD);
}

/* One that no field can have. */
static const char *other_type(hid_t type)
{
	switch (libhdf5.H5Tget_class(type)) {
	case H5T_COMPOUND:
		return "elements of several members each";
	case H5T_ARRAY:
		return "elements that are arrays";
	case H5T_REFERENCE:
		return "references";
	case H5T_OPAQUE:
	case H5T_BITFIELD:
		return "elements of opaque bytes, or of bits";
	default:
		return "elements of a type that a field cannot have";
	}
}

/* Return: NULL; what is wrong. */
static const char *take_type(struct dataset *d, hid_t type)
{
	struct npy *npy = &d->array.npy;

	d->type = libhdf5.H5Tcopy(type);
	if (d->type < 0)
		return why();
	switch (libhdf5.H5Tget_class(type)) {
	case H5T_VLEN:
		take_sequence(d);
		break;
	case H5T_STRING:
		take_text(d);
		break;
	default:
		npy->dtype = number_dtype(d->type);
		npy->row_size = d->element = libhdf5.H5Tget_size(d->type);
	}
	if (!npy->text && !npy->dtype)
		return other_type(type);
	if (d->type < 0 || !d->element)
		return why();
	return d->array.varies && d->rank > 1 ?
		       "rows of several elements of different lengths" : NULL;
}

/* ---- datasets -------------------------------------------------------------------- */

static const char *take_shape(struct dataset *d, hid_t id)
{
	hid_t space = libhdf5.H5Dget_space(id);
	struct npy *npy = &d->array.npy;
	hsize_t most[H5S_MAX_RANK];

	d->rank = space < 0 ? -1 : libhdf5.H5Sget_simple_extent_ndims(space);
	if (d->rank < 0 || libhdf5.H5Sget_simple_extent_dims(space, d->dims, most) < 0)
		return why();
	libhdf5.H5Sclose(space);
	if (d->rank > (int)NPY_RANK_MAX)
		return "too many dimensions";
	npy->rank = (uint32_t)d->rank;
	for (int i = 0; i < d->rank; i++) {
		npy->dims[i] = d->dims[i];
		if (d->dims[i] > most[i])
			return "a dimension that is larger than it can become";
	}
	return NULL;
}

/* Data of other files would be missing without a word. */
static const char *take_layout(struct dataset *d, hid_t id, hid_t type)
{
	hid_t list = libhdf5.H5Dget_create_plist(id);
	const H5D_layout_t layout = list < 0 ? H5D_LAYOUT_ERROR : libhdf5.H5Pget_layout(list);
	struct hdf5_array *array = &d->array;

	d->chunked = layout == H5D_CHUNKED;
	if (layout == H5D_LAYOUT_ERROR ||
	    (d->chunked && libhdf5.H5Pget_chunk(list, d->rank, d->chunk) != d->rank))
		return why();
	if (layout == H5D_VIRTUAL || libhdf5.H5Pget_external_count(list) > 0)
		return "rows that are in other files";
	if (layout != H5D_CONTIGUOUS || array->varies ||
	    (array->npy.text && libhdf5.H5Tget_strpad(type) != H5T_STR_NULLPAD) ||
	    (libhdf5.H5Tget_class(type) != H5T_STRING && libhdf5.H5Tget_size(type) > 1 &&
	     libhdf5.H5Tget_order(type) != H5T_ORDER_LE))
		return NULL;
	array->offset = libhdf5.H5Dget_offset(id);
	array->placed = array->offset != HADDR_UNDEF &&
			libhdf5.H5Dget_storage_size(id) >= array->npy.data_size;
	return NULL;
}

/* What no chunk has is fill values: of a dimension that is damaged, without end. */
static const char *check_storage(const struct dataset *d, hid_t id)
{
	const uint64_t size = d->array.varies ? d->dims[0] : d->array.npy.data_size;

	return size > FILLED_MAX && size / DECODED_MAX > libhdf5.H5Dget_storage_size(id) ?
		       "far more rows than are in the file" : NULL;
}

static const char *look_at(struct dataset *d, hid_t id)
{
	hid_t type = libhdf5.H5Dget_type(id);
	const char *wrong = type < 0 ? why() : take_shape(d, id);

	if (!wrong)
		wrong = take_type(d, type);
	if (!wrong)
		wrong = npy_check(&d->array.npy, false);
	if (!wrong)
		wrong = take_layout(d, id, type);
	return wrong ? wrong : check_storage(d, id);
}

/* Has it any? What has not is left out, unless it is named. */
static bool has_rows(hid_t id)
{
	hid_t space = libhdf5.H5Dget_space(id);
	const bool yes = space < 0 || libhdf5.H5Sget_simple_extent_type(space) == H5S_SIMPLE;

	libhdf5.H5Sclose(space);
	return yes;
}

static void take_dataset(struct child *child, hid_t id, const char *path)
{
	const char *name = arrays_choose(child->chosen, path, &child->end.chosen);
	struct dataset *d;
	const char *wrong;

	text_list(child->end.names, path);
	if (!name || child->full)
		return;
	if (!has_rows(id)) {
		say_text(child, HDF5_WARNING, "array '%s' has no rows: it is left out", path);
		return;
	}
	child->full = child->count == STELE_FIELDS_MAX;
	if (child->full || strlen(name) > STELE_NAME_SIZE_MAX) {
		say_text(child, HDF5_DAMAGE, "array '%s' %s", path,
			 child->full ? "is one too many: an image has up to 64 fields" :
				       "has a name that is too long for a field");
		return;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		_exit(1);
	strcpy(d->array.name, name);
	snprintf(d->path, sizeof(d->path), "%s", path);
	wrong = look_at(d, id);
	if (!wrong && d->array.npy.dtype != STELE_DTYPE_BOOL &&
	    libhdf5.H5Tget_class(d->type) == H5T_ENUM)
		say_text(child, HDF5_WARNING, "array '%s' is an enumeration: its numbers are "
			 "taken, and not their names, which other files may give to others", path);
	if (wrong)
		say_text(child, HDF5_DAMAGE, "array '%s' has %s (" ARRAYS_OTHERS ")", path, wrong);
	else
		child->list[child->count++] = d;
}

/* ---- groups -------------------------------------------------------------------- */

static void walk(struct child *child, hid_t group, char *path, size_t size, unsigned int depth);

static void take_link(struct child *child, hid_t group, char *path, size_t begin,
		      unsigned int depth)
{
	char value[1];
	H5I_type_t kind;
	hid_t id;

	/* Hard links have no value. */
	if (libhdf5.H5Lget_val(group, path + begin, value, sizeof(value), 0) >= 0) {
		say_text(child, HDF5_WARNING, "'%s' is a link: it is left out", path);
		return;
	}
	id = libhdf5.H5Oopen(group, path + begin, 0);
	kind = id < 0 ? H5I_BADID : libhdf5.H5Iget_type(id);
	if (kind == H5I_DATASET)
		take_dataset(child, id, path);
	else if (kind == H5I_GROUP)
		walk(child, id, path, strlen(path), depth + 1);
	else if (id < 0)
		say_text(child, HDF5_DAMAGE, "'%s': %s", path, why());
	if (id >= 0)
		libhdf5.H5Oclose(id);
}

static void walk(struct child *child, hid_t group, char *path, size_t size, unsigned int depth)
{
	H5G_info_t info = {0};

	if (depth > DEPTH_MAX || libhdf5.H5Gget_info(group, &info) < 0) {
		say_text(child, HDF5_DAMAGE, "group '%s': %s", path,
			 depth > DEPTH_MAX ? "too deep" : why());
		return;
	}
	if (size)
		path[size++] = '/';
	for (hsize_t i = 0; i < info.nlinks && !child->full; i++) {
		ssize_t got = libhdf5.H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC,
							 i, path + size, PATH_SIZE - size - 2, 0);

		if (got < 0 || (size_t)got >= PATH_SIZE - size - 2 || ++child->links > LINKS_MAX) {
			path[size] = '\0';
			say_text(child, HDF5_DAMAGE, "group '%s': %s", path,
				 got < 0 ? why() : "too many names, or too long ones");
			return;
		}
		take_link(child, group, path, size, depth);
		limit_silence(child);
	}
	path[size ? size - 1 : 0] = '\0';
}

/* ---- rows ------------------------------------------------------------------------ */

/* `count` elements of each dimension. */
static const char *read_some(const struct dataset *d, hid_t id, const hsize_t *start,
			     const hsize_t *count, void *data, bool keep)
{
	hid_t file = libhdf5.H5Dget_space(id), memory;
	const char *wrong = NULL;

	/* Of the same shape: where that differs libhdf5 looks at each element by itself. */
	memory = libhdf5.H5Screate_simple(d->rank, count, NULL);
	if (file < 0 || memory < 0 ||
	    libhdf5.H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
	    (keep ? libhdf5.H5Dread(id, d->type, memory, file, 0, data) :
		    libhdf5.H5Dvlen_reclaim(d->type, memory, 0, data)) < 0)
		wrong = why(); /* before another call forgets it */
	libhdf5.H5Sclose(file);
	libhdf5.H5Sclose(memory);
	return wrong;
}

static uint64_t chunks_along(const struct dataset *d, int axis)
{
	const uint64_t chunk = d->chunked && d->chunk[axis] ? d->chunk[axis] : d->dims[axis];

	return chunk < d->dims[axis] ? d->dims[axis] / chunk + (d->dims[axis] % chunk > 0) : 1;
}

/* What is read at once: some of one dimension, all of those behind it, one of those before. */
static int find_band(const struct dataset *d, hsize_t *count, uint64_t *size)
{
	uint64_t inner = d->element, chunks = 1;
	int axis = d->rank - 1;

	while (axis > 0 && d->dims[axis] <= BAND_SIZE / inner &&
	       chunks_along(d, axis) <= CHUNKS_MAX / chunks) {
		inner *= d->dims[axis];
		chunks *= chunks_along(d, axis);
		axis--;
	}
	for (int i = 0; i < d->rank; i++)
		count[i] = i > axis ? d->dims[i] : 1;
	count[axis] = BAND_SIZE / inner ? BAND_SIZE / inner : 1;
	if (d->chunked && d->chunk[axis] && d->chunk[axis] < count[axis]) {
		const hsize_t most = CHUNKS_MAX / chunks * d->chunk[axis];

		count[axis] -= count[axis] % d->chunk[axis];
		count[axis] = count[axis] < most ? count[axis] : most;
	}
	if (count[axis] > d->dims[axis])
		count[axis] = d->dims[axis];
	*size = inner * count[axis];
	return axis;
}

/* Bytes of a row of chunks; 0: there are none. */
static uint64_t chunks_size(const struct dataset *d)
{
	uint64_t size = d->chunked ? d->element : 0;

	for (int i = 0; d->chunked && i < d->rank; i++) {
		const uint64_t chunk = d->chunk[i] ? d->chunk[i] : 1;
		const uint64_t more = i ? (d->dims[i] + chunk - 1) / chunk * chunk : chunk;

		if (__builtin_mul_overflow(size, more, &size))
			return UINT64_MAX;
	}
	return size;
}

/* That of a row, if it is larger than what is read at once. */
static uint64_t cache_size(const struct dataset *d, uint64_t band)
{
	const uint64_t size = chunks_size(d);

	return size > band && size <= CACHE_SIZE ? size : 0;
}

/* Return: NULL; what is wrong. */
static const char *read_bands(const struct child *child, const struct dataset *d, hid_t id)
{
	hsize_t start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
	uint64_t size;
	int axis = find_band(d, count, &size);
	const hsize_t step = count[axis];
	uint8_t *data = malloc(size ? (size_t)size : 1);
	const char *wrong = data ? NULL : no_memory;

	while (!wrong && start[0] < d->dims[0]) {
		const hsize_t left = d->dims[axis] - start[axis];
		int i = axis;

		count[axis] = left < step ? left : step;
		wrong = read_some(d, id, start, count, data, true);
		if (!wrong)
			say_data(child, data, size / step * count[axis]);
		start[axis] += count[axis];
		while (i > 0 && start[i] >= d->dims[i]) {
			start[i--] = 0;
			start[i]++;
		}
	}
	free(data);
	return wrong;
}

static void say_value(const struct child *child, const struct dataset *d, const hvl_t *value,
		      const char *text, uint64_t *size)
{
	*size = value ? value->len * d->element : text ? strlen(text) : 0;
	say(child, HDF5_DATA, size, sizeof(*size));
	say_data(child, value ? value->p : (const void *)text, *size);
}

static const char *read_values(const struct child *child, const struct dataset *d, hid_t id)
{
	const bool text = d->array.npy.text == NPY_UTF8;
	hvl_t *values = calloc(VALUES_COUNT, sizeof(*values));
	uint64_t largest = VALUES_SIZE / 16;
	const char *wrong = values ? NULL : no_memory;

	for (hsize_t at = 0, count; !wrong && at < d->dims[0]; at += count) {
		count = VALUES_SIZE / largest;
		count = !count ? 1 : count < VALUES_COUNT ? count : VALUES_COUNT;
		count = count < d->dims[0] - at ? count : d->dims[0] - at;
		wrong = read_some(d, id, &at, &count, values, true);
		largest /= 2; /* unless there are such still */
		for (hsize_t i = 0; !wrong && i < count; i++) {
			uint64_t size;

			say_value(child, d, text ? NULL : &values[i],
				  text ? ((char **)values)[i] : NULL, &size);
			largest = size > largest ? size : largest;
		}
		largest = largest ? largest : 1;
		if (!wrong)
			read_some(d, id, &at, &count, values, false);
	}
	free(values);
	return wrong;
}

/* What its chunks were made by, and was not found: "32000 (lzf)". False: all is there. */
static bool lacks_filter(hid_t id, char *text, size_t size)
{
	hid_t list = libhdf5.H5Dget_create_plist(id);
	const int count = list < 0 ? 0 : libhdf5.H5Pget_nfilters(list);

	for (int i = 0; i < count; i++) {
		char name[64] = "";
		size_t values = 0;
		unsigned int flags;
		const int filter = libhdf5.H5Pget_filter2(list, (unsigned int)i, &flags, &values,
							  NULL, sizeof(name), name, NULL);

		if (filter < 0 || libhdf5.H5Zfilter_avail(filter) > 0)
			continue;
		snprintf(text, size, "%d (%.63s)", filter, name);
		return true;
	}
	return false;
}

/* Again, with a cache that fits. */
static void read_dataset(struct child *child, const struct dataset *d, hid_t file)
{
	hid_t id = libhdf5.H5Dopen2(file, d->path, 0), list;
	hsize_t count[H5S_MAX_RANK];
	uint64_t band = 0, cache, chunks;
	const char *wrong;
	char filter[96];

	find_band(d, count, &band);
	cache = cache_size(d, band);
	chunks = chunks_size(d);
	chunks = chunks < child->file_size * DECODED_MAX ? chunks : child->file_size * DECODED_MAX;
	child->silence = chunks / HDF5_DECODED;
	limit_silence(child);
	limit_memory(4 * chunks + 3 * child->file_size);
	if (id >= 0 && cache) {
		list = libhdf5.H5Dget_access_plist(id);
		libhdf5.H5Pset_chunk_cache(list, CACHE_SLOTS, (size_t)cache, -1);
		libhdf5.H5Dclose(id);
		id = libhdf5.H5Dopen2(file, d->path, list);
	}
	wrong = id < 0 ? why() :
		d->array.varies ? read_values(child, d, id) : read_bands(child, d, id);
	if (wrong && id >= 0 && lacks_filter(id, filter, sizeof(filter)))
		say_text(child, HDF5_DAMAGE,
			 "array '%s' needs filter %s, which libhdf5 has no plugin for: write the "
			 "file with gzip, or set HDF5_PLUGIN_PATH", d->path, filter);
	else if (wrong)
		say_text(child, HDF5_DAMAGE, "array '%s': %s", d->path, wrong);
	if (id >= 0)
		libhdf5.H5Dclose(id);
}

/* ---- files --------------------------------------------------------------------- */

void hdf5_child(const char *path, const char *chosen, int pipe)
{
	static struct child child;
	char name[PATH_SIZE + 2] = "";
	struct stat st;
	hid_t file;

	child.pipe = pipe;
	child.chosen = chosen;
	child.file_size = stat(path, &st) ? 0 : (uint64_t)st.st_size;
	limit_silence(&child);
	limit_memory(0);
	setenv("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", 0);
	libhdf5.H5Eset_auto2(0, NULL, NULL);
	file = libhdf5.H5Fopen(path, READ_ONLY, 0);
	if (file < 0)
		say_text(&child, HDF5_DAMAGE, "%s", why());
	else
		walk(&child, file, name, 0, 0);
	for (uint32_t i = 0; file >= 0 && i < child.count; i++) {
		const struct dataset *d = child.list[i];

		say(&child, HDF5_ARRAY, &d->array, sizeof(d->array));
		if (!d->array.placed)
			read_dataset(&child, d, file);
	}
	say(&child, HDF5_END, &child.end, sizeof(child.end));
}
