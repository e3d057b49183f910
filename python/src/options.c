/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - options of the library from dictionaries
 *
 * One table: a row is an option, with its name in the library, and where each struct that
 * has it keeps it.
 */
#include "py.h"

enum kind {
	U32, /* and enums */
	U64,
	I64,
	TEXT, /* bytes without NUL */
	TEXTS, /* a tuple of these */
	UUID, /* 16 bytes */
};

/* Offset 0 is that of `size`, so it means that the struct has no such option. */
struct option {
	const char *name;
	enum kind kind;
	uint16_t offsets[PY_OPTIONS_COUNT];
};

#define BUILD(name)   [PY_BUILD] = offsetof(struct stele_build_opts, name)
#define APPEND(name)  [PY_APPEND] = offsetof(struct stele_append_opts, name)
#define COMPACT(name) [PY_COMPACT] = offsetof(struct stele_compact_opts, name)
#define COPY(name)    [PY_COPY] = offsetof(struct stele_copy_opts, name)
#define VERIFY(name)  [PY_VERIFY] = offsetof(struct stele_verify_opts, name)
#define OPEN(name)    [PY_OPEN] = offsetof(struct stele_open_opts, name)
#define CHANGE(name)  [PY_CHANGE] = offsetof(struct py_change, opts.name)
#define CREATE(name)  [PY_CREATE] = offsetof(struct py_create, opts.name)
#define PUT(name)     [PY_PUT] = offsetof(struct stele_put_opts, name)

/* Of all that lay out samples. */
#define LAYOUT(name) BUILD(name), APPEND(name), COMPACT(name), PUT(name)

static const struct option options[] = {
	{"backend", TEXT,
	 {BUILD(backend), APPEND(backend), COMPACT(backend), COPY(backend),
	  VERIFY(backend), OPEN(backend), CHANGE(backend), CREATE(backend)}},
	{"base", TEXT, {APPEND(base)}},
	{"boundary", U32, {LAYOUT(boundary)}},
	{"directory", TEXT, {PUT(directory)}},
	{"exclude", TEXTS, {BUILD(exclude), APPEND(exclude)}},
	{"file_size", U64,
	 {BUILD(file_size), APPEND(file_size), COPY(file_size), CREATE(file_size)}},
	{"flags", U32, {LAYOUT(flags), COPY(flags), CHANGE(flags), CREATE(flags)}},
	{"grace", U64, {CHANGE(grace)}},
	{"granule", U32, {LAYOUT(granule)}},
	{"jobs", U32, {LAYOUT(jobs), COPY(jobs), VERIFY(jobs)}},
	{"label", TEXT, {BUILD(label), COPY(label), CREATE(label)}},
	{"label_from", U32, {BUILD(label_from), APPEND(label_from)}},
	{"memory_size", U64, {LAYOUT(memory_size)}},
	{"note", TEXT, {BUILD(note), APPEND(note), COMPACT(note)}},
	{"object_size", U32,
	 {BUILD(object_size), COPY(object_size), CREATE(object_size)}},
	{"order", U32, {LAYOUT(order)}},
	{"posix", U32, {[PY_CREATE] = offsetof(struct py_create, posix)}},
	{"sources", TEXTS, {CHANGE(sources), CREATE(sources)}},
	{"size", U64, {[PY_CHANGE] = offsetof(struct py_change, size)}},
	{"time", I64,
	 {BUILD(time), APPEND(time), COMPACT(time), COPY(time), CHANGE(time),
	  CREATE(time)}},
	{"uuid", UUID, {BUILD(uuid), COPY(uuid), CREATE(uuid)}},
	{"verify", U32, {OPEN(verify)}},
};

static int fill_number(void *to, enum kind kind, PyObject *value)
{
	unsigned long long number;

	if (kind == I64) {
		*(int64_t *)to = PyLong_AsLongLong(value);
		return PyErr_Occurred() ? -1 : 0;
	}
	number = PyLong_AsUnsignedLongLong(value);
	if (PyErr_Occurred())
		return -1;
	if (kind == U64) {
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

/*
 * An array of them, with NULL at its end. The dictionary then keeps it together with what it
 * points to.
 */
static int fill_texts(const char ***to, PyObject *dict, PyObject *name, PyObject *tuple)
{
	const Py_ssize_t count = PyTuple_Size(tuple);
	PyObject *array, *kept;
	int ret = count < 0 ? -1 : 0;

	array = ret ? NULL : PyBytes_FromStringAndSize(NULL, (count + 1) *
							       (Py_ssize_t)sizeof(**to));
	if (!array)
		return -1;
	*to = (const char **)PyBytes_AsString(array);
	for (Py_ssize_t i = 0; !ret && i < count; i++)
		ret = PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, i), (char **)&(*to)[i], NULL);
	(*to)[count] = NULL;
	kept = ret ? NULL : PyTuple_Pack(2, tuple, array);
	Py_DECREF(array);
	ret = kept ? PyDict_SetItem(dict, name, kept) : -1;
	Py_XDECREF(kept);
	return ret;
}

static int fill(void *to, enum kind kind, PyObject *value)
{
	Py_ssize_t size;
	char *data;

	if (kind != TEXT && kind != UUID)
		return fill_number(to, kind, value);
	/* Without a size, bytes with NUL in them are refused. */
	if (PyBytes_AsStringAndSize(value, &data, kind == UUID ? &size : NULL))
		return -1;
	if (kind == UUID && size != STELE_UUID_SIZE) {
		PyErr_SetString(PyExc_ValueError, "a UUID has 16 bytes");
		return -1;
	}
	*(const void **)to = data;
	return 0;
}

/* NULL: the struct has no such option, TypeError is set. */
static const struct option *find(enum py_options which, PyObject *name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].offsets[which] && PyUnicode_Check(name) &&
		    !PyUnicode_CompareWithASCIIString(name, options[i].name))
			return &options[i];
	PyErr_Format(PyExc_TypeError, "there is no option %R", name);
	return NULL;
}

int py_options_fill(void *to, enum py_options which, PyObject *dict)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;

	/* Borrowed: the dictionary was made by stele's Python for this call. */
	while (PyDict_Next(dict, &at, &name, &value)) {
		const struct option *option = find(which, name);

		if (!option)
			return -1;
		if (option->kind == TEXTS && value != Py_None) {
			if (fill_texts((void *)((char *)to + option->offsets[which]), dict, name,
				       value))
				return -1;
			continue;
		}
		if (value != Py_None && fill((char *)to + option->offsets[which],
					     option->kind, value))
			return -1;
	}
	return 0;
}
