/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct.c - structs of the library as dictionaries, and dictionaries as options
 *
 * A table says which members there are. Names are those of the structs; sizes in bytes,
 * times of one call in nanoseconds, dates in seconds since 1970.
 */
#include "py.h"

/* ---- to Python ------------------------------------------------------------------ */

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

static PyObject *hex(const uint8_t *bytes, size_t size)
{
	char text[2 * STELE_DIGEST_SIZE];

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * size));
}

static PyObject *member_value(const void *data, enum py_kind kind)
{
	switch (kind) {
	case PY_U32:
		return PyLong_FromUnsignedLong(*(const uint32_t *)data);
	case PY_U64:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)data);
	case PY_I64:
		return PyLong_FromLongLong(*(const int64_t *)data);
	case PY_F64:
		return PyFloat_FromDouble(*(const double *)data);
	case PY_BOOL:
		return PyBool_FromLong(*(const bool *)data);
	case PY_NAME:
		return py_key_str(data, strlen(data));
	case PY_UUID:
		return hex(data, STELE_UUID_SIZE);
	case PY_DIGEST:
		return hex(data, STELE_DIGEST_SIZE);
	default:
		PyErr_SetString(PyExc_SystemError, "a member of no such kind");
		return NULL;
	}
}

int py_struct_dict(PyObject *dict, const void *from, const struct py_member *members)
{
	int err = 0;

	for (; !err && members->name; members++)
		err = put(dict, members->name,
			  member_value((const char *)from + members->offset,
				       members->kind));
	return err;
}

/* ---- from Python ---------------------------------------------------------------- */

static int fill_number(void *to, enum py_kind kind, PyObject *value)
{
	unsigned long long number;

	if (kind == PY_I64) {
		*(int64_t *)to = PyLong_AsLongLong(value);
		return PyErr_Occurred() ? -1 : 0;
	}
	number = PyLong_AsUnsignedLongLong(value);
	if (PyErr_Occurred())
		return -1;
	if (kind == PY_U64) {
		*(uint64_t *)to = number;
		return 0;
	}
	if (number > UINT32_MAX) {
		PyErr_Format(PyExc_OverflowError, "%llu is too large", number);
		return -1;
	}
	*(uint32_t *)to = (uint32_t)number;
	return 0;
}

static int fill_member(void *to, enum py_kind kind, PyObject *value)
{
	Py_ssize_t size;
	char *data;

	if (kind != PY_TEXT && kind != PY_UUID)
		return fill_number(to, kind, value);
	/* Without a size, bytes with NUL in them are refused. */
	if (PyBytes_AsStringAndSize(value, &data, kind == PY_UUID ? &size : NULL))
		return -1;
	if (kind == PY_UUID && size != STELE_UUID_SIZE) {
		PyErr_SetString(PyExc_ValueError, "a UUID has 16 bytes");
		return -1;
	}
	*(const void **)to = data;
	return 0;
}

int py_struct_fill(void *to, const struct py_member *members, PyObject *dict)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(dict, &at, &key, &value)) {
		const struct py_member *m = members;

		while (m->name && PyUnicode_CompareWithASCIIString(key, m->name))
			m++;
		if (!m->name) {
			PyErr_Format(PyExc_TypeError, "there is no option %R", key);
			return -1;
		}
		if (value != Py_None &&
		    fill_member((char *)to + m->offset, m->kind, value))
			return -1;
	}
	return 0;
}

/* ---- what several files need ------------------------------------------------------ */

PyObject *py_info_dict(const struct py_core *core)
{
#define MEMBER(kind, name) PY_MEMBER(stele_dataset_info, kind, name)
	static const struct py_member members[] = {
		MEMBER(NAME, snapshot),	    MEMBER(NAME, label),
		MEMBER(DIGEST, digest),	    MEMBER(UUID, uuid),
		MEMBER(NAME, backend),	    MEMBER(I64, time),
		MEMBER(U64, generation),    MEMBER(U64, image_size),
		MEMBER(U64, used_size),	    MEMBER(U64, sample_count),
		MEMBER(U64, deleted_count), MEMBER(U64, payload_size),
		MEMBER(U64, slots_size),    MEMBER(U64, padding_size),
		MEMBER(U64, slot_size_max), MEMBER(U64, table_size),
		MEMBER(U32, run_count),	    MEMBER(U32, segment_count),
		MEMBER(U32, granule),	    MEMBER(U32, logical_block),
		{0},
	};
#undef MEMBER
	PyObject *dict = PyDict_New();

	if (dict && (py_dict_str(dict, "target", core->target) ||
		     py_struct_dict(dict, &core->info, members)))
		Py_CLEAR(dict);
	return dict;
}

int py_dict_reader(PyObject *dict, const struct stele_reader_stats *stats)
{
#define MEMBER(kind, name) PY_MEMBER(stele_reader_stats, kind, name)
	static const struct py_member members[] = {
		MEMBER(U64, samples),	   MEMBER(U64, failed),
		MEMBER(U64, bytes),	   MEMBER(U64, device_reads),
		MEMBER(U64, device_bytes), MEMBER(U64, reread),
		MEMBER(U64, enters),	   MEMBER(U64, registered),
		MEMBER(U64, p50_ns),	   MEMBER(U64, p99_ns),
		MEMBER(U64, max_ns),	   MEMBER(U32, depth_peak),
		MEMBER(U32, window),	   MEMBER(NAME, tier),
		{0},
	};
#undef MEMBER
	return py_struct_dict(dict, stats, members);
}
