/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.c - structs of the library as dictionaries
 *
 * Names are those of the structs; sizes in bytes, times in nanoseconds.
 */
#include "py.h"

static int put(PyObject *dict, const char *name, PyObject *value)
{
	int err = value ? PyDict_SetItemString(dict, name, value) : -1;

	Py_XDECREF(value);
	return err;
}

int py_dict_u64(PyObject *dict, const char *name, uint64_t value)
{
	return put(dict, name, PyLong_FromUnsignedLongLong(value));
}

int py_dict_str(PyObject *dict, const char *name, const char *value)
{
	return put(dict, name, py_key_str(value, strlen(value)));
}

static int put_hex(PyObject *dict, const char *name, const uint8_t *bytes,
		   size_t size)
{
	char text[2 * STELE_DIGEST_SIZE + 1];

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	text[2 * size] = 0;
	return py_dict_str(dict, name, text);
}

PyObject *py_info_dict(const struct py_core *core)
{
	const struct stele_dataset_info *info = &core->info;
	PyObject *dict = PyDict_New();

	if (dict &&
	    (py_dict_str(dict, "target", core->target) ||
	     py_dict_str(dict, "snapshot", info->snapshot) ||
	     py_dict_str(dict, "label", info->label) ||
	     put_hex(dict, "digest", info->digest, sizeof(info->digest)) ||
	     put_hex(dict, "uuid", info->uuid, sizeof(info->uuid)) ||
	     py_dict_str(dict, "backend", info->backend) ||
	     put(dict, "time", PyLong_FromLongLong(info->time)) ||
	     py_dict_u64(dict, "generation", info->generation) ||
	     py_dict_u64(dict, "image_size", info->image_size) ||
	     py_dict_u64(dict, "used_size", info->used_size) ||
	     py_dict_u64(dict, "sample_count", info->sample_count) ||
	     py_dict_u64(dict, "deleted_count", info->deleted_count) ||
	     py_dict_u64(dict, "payload_size", info->payload_size) ||
	     py_dict_u64(dict, "slots_size", info->slots_size) ||
	     py_dict_u64(dict, "padding_size", info->padding_size) ||
	     py_dict_u64(dict, "slot_size_max", info->slot_size_max) ||
	     py_dict_u64(dict, "table_size", info->table_size) ||
	     py_dict_u64(dict, "run_count", info->run_count) ||
	     py_dict_u64(dict, "segment_count", info->segment_count) ||
	     py_dict_u64(dict, "granule", info->granule) ||
	     py_dict_u64(dict, "logical_block", info->logical_block)))
		Py_CLEAR(dict);
	return dict;
}

int py_dict_reader(PyObject *dict, const struct stele_reader_stats *stats)
{
	return py_dict_u64(dict, "samples", stats->samples) ||
	       py_dict_u64(dict, "failed", stats->failed) ||
	       py_dict_u64(dict, "bytes", stats->bytes) ||
	       py_dict_u64(dict, "device_reads", stats->device_reads) ||
	       py_dict_u64(dict, "device_bytes", stats->device_bytes) ||
	       py_dict_u64(dict, "reread", stats->reread) ||
	       py_dict_u64(dict, "enters", stats->enters) ||
	       py_dict_u64(dict, "registered", stats->registered) ||
	       py_dict_u64(dict, "p50_ns", stats->p50_ns) ||
	       py_dict_u64(dict, "p99_ns", stats->p99_ns) ||
	       py_dict_u64(dict, "max_ns", stats->max_ns) ||
	       py_dict_u64(dict, "depth_peak", stats->depth_peak) ||
	       py_dict_u64(dict, "window", stats->window) ||
	       py_dict_str(dict, "tier", stats->tier);
}
