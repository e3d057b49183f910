/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - structs of the library as dictionaries
 *
 * A table for each struct says which members there are. Names are the library's; sizes are
 * in bytes, times of one call in nanoseconds, dates in seconds since 1970.
 */
#include "py.h"

enum kind {
	U32, /* and enums */
	U64,
	I64,
	F64,
	NAME,	/* an array of char */
	UUID,	/* hexadecimal */
	DIGEST, /* hexadecimal */
};

/* ---- values ---------------------------------------------------------------------- */

static int put(PyObject *dict, const char *name, PyObject *value)
{
	int err = value ? PyDict_SetItemString(dict, name, value) : -1;

	Py_XDECREF(value);
	return err;
}

int py_report_u64(PyObject *dict, const char *name, uint64_t value)
{
	return put(dict, name, PyLong_FromUnsignedLongLong(value));
}

int py_report_str(PyObject *dict, const char *name, const char *value)
{
	return put(dict, name, py_key_str(value, strlen(value)));
}

static PyObject *hex(const uint8_t *bytes, size_t size)
{
	char text[2 * STELE_DIGEST_SIZE];

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * size));
}

static PyObject *member_value(const void *data, unsigned int kind)
{
	switch (kind) {
	case U32:
		return PyLong_FromUnsignedLong(*(const uint32_t *)data);
	case U64:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)data);
	case I64:
		return PyLong_FromLongLong(*(const int64_t *)data);
	case F64:
		return PyFloat_FromDouble(*(const double *)data);
	case NAME:
		return py_key_str(data, strlen(data));
	case UUID:
		return hex(data, STELE_UUID_SIZE);
	case DIGEST:
		return hex(data, STELE_DIGEST_SIZE);
	default:
		PyErr_SetString(PyExc_SystemError, "a member of no such kind");
		return NULL;
	}
}

int py_report(PyObject *dict, const void *from, const struct py_member *members)
{
	int err = 0;

	for (; !err && members->name; members++)
		err = put(dict, members->name,
			  member_value((const char *)from + members->offset,
				       members->kind));
	return err;
}

/* ---- tables ---------------------------------------------------------------------- */

const struct py_member py_build_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_build_report, name)}
	MEMBER(NAME, snapshot), MEMBER(NAME, base),
	MEMBER(UUID, uuid), MEMBER(DIGEST, digest),
	MEMBER(U64, sample_count), MEMBER(U64, added),
	MEMBER(U64, updated), MEMBER(U64, deleted),
	MEMBER(U64, unchanged), MEMBER(U64, kept), MEMBER(U64, written_count),
	MEMBER(U64, written_size), MEMBER(U64, payload_size),
	MEMBER(U64, slots_size), MEMBER(U64, padding_size),
	MEMBER(U64, image_end), MEMBER(U64, target_size),
	MEMBER(U32, run_count), MEMBER(U32, granule),
	MEMBER(U32, class_count), MEMBER(U32, created),
	MEMBER(F64, scan_seconds), MEMBER(F64, write_seconds),
	MEMBER(F64, total_seconds),
	{0},
#undef MEMBER
};

const struct py_member py_copy_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_copy_report, name)}
	MEMBER(NAME, snapshot), MEMBER(DIGEST, digest),
	MEMBER(U64, sample_count), MEMBER(U32, segment_count),
	MEMBER(U32, segments_sent), MEMBER(U64, total_size),
	MEMBER(U64, sent_size), MEMBER(U64, resumed_size),
	MEMBER(F64, seconds),
	MEMBER(U64, unread_count), MEMBER(U64, unread_size),
	MEMBER(U32, created),
	{0},
#undef MEMBER
};

const struct py_member py_verify_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_verify_report, name)}
	MEMBER(U64, snapshots), MEMBER(U64, segments),
	MEMBER(U64, samples), MEMBER(U64, blocks),
	MEMBER(U64, bytes),
	{0},
#undef MEMBER
};

const struct py_member py_gc_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_gc_report, name)}
	MEMBER(U64, unused_count), MEMBER(U64, unused_size),
	MEMBER(U64, freed_count), MEMBER(U64, freed_size),
	MEMBER(U64, free_size), MEMBER(U64, finished_size),
	{0},
#undef MEMBER
};

const struct py_member py_resize_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_resize_report, name)}
	MEMBER(U64, old_size), MEMBER(U64, new_size),
	{0},
#undef MEMBER
};

const struct py_member py_snapshot_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_snapshot_info, name)}
	MEMBER(NAME, name), MEMBER(U64, id),
	MEMBER(U64, parent), MEMBER(I64, time),
	MEMBER(DIGEST, digest), MEMBER(U64, sample_count),
	MEMBER(U64, payload_size), MEMBER(U32, segment_count),
	MEMBER(I64, deleted_time),
	{0},
#undef MEMBER
};

const struct py_member py_image_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_image_info, name)}
	MEMBER(UUID, uuid), MEMBER(NAME, label),
	MEMBER(U32, version), MEMBER(U32, segment_count),
	MEMBER(U64, generation), MEMBER(U64, image_size),
	MEMBER(U64, used_size), MEMBER(U64, free_size),
	MEMBER(U64, unused_size), MEMBER(I64, create_time),
	MEMBER(I64, commit_time), MEMBER(U32, superblocks_good),
	{0},
#undef MEMBER
};

const struct py_member py_info_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_dataset_info, name)}
	MEMBER(NAME, snapshot), MEMBER(NAME, label),
	MEMBER(DIGEST, digest), MEMBER(UUID, uuid),
	MEMBER(NAME, backend), MEMBER(I64, time),
	MEMBER(U64, generation), MEMBER(U64, image_size),
	MEMBER(U64, used_size), MEMBER(U64, sample_count),
	MEMBER(U64, deleted_count), MEMBER(U64, payload_size),
	MEMBER(U64, slots_size), MEMBER(U64, padding_size),
	MEMBER(U64, slot_size_max), MEMBER(U64, table_size),
	MEMBER(U32, run_count), MEMBER(U32, segment_count),
	MEMBER(U32, granule), MEMBER(U32, logical_block),
	{0},
#undef MEMBER
};

const struct py_member py_reader_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_reader_stats, name)}
	MEMBER(U64, samples), MEMBER(U64, failed),
	MEMBER(U64, bytes), MEMBER(U64, device_reads),
	MEMBER(U64, device_bytes), MEMBER(U64, reread),
	MEMBER(U64, enters), MEMBER(U64, registered),
	MEMBER(U64, p50_ns), MEMBER(U64, p99_ns),
	MEMBER(U64, max_ns), MEMBER(U32, depth_peak),
	MEMBER(U32, window), MEMBER(NAME, tier),
	{0},
#undef MEMBER
};

const struct py_member py_loader_report[] = {
#define MEMBER(kind, name) {#name, kind, offsetof(struct stele_loader_stats, name)}
	MEMBER(U64, batches), MEMBER(U64, skipped),
	MEMBER(U64, substituted), MEMBER(U64, padded),
	MEMBER(U64, wait_ns),
	{0},
#undef MEMBER
};

const struct py_member py_no_report[] = {{0}};
