/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids.c - what selects samples: an index, a slice, a list, an array, a mask
 *
 * Indices are those of a Dataset, which may be a part of its snapshot; ids are the
 * snapshot's. Every index is checked against the length before it becomes an id. What is
 * bool is never an index of several: it is part of a mask. Whether an id is selected is
 * asked of a range, or of ids in ascending order.
 */
#include "py.h"

#include <stdlib.h>
#include <string.h>

void py_selection_release(struct py_selection *selection)
{
	free(selection->ids);
	selection->ids = NULL;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t *py_selection_sort(const struct py_selection *in)
{
	uint64_t at = 1, *sorted;

	while (at < in->count && in->ids[at - 1] <= in->ids[at])
		at++;
	if (at >= in->count)
		return in->ids;
	sorted = malloc(in->count * sizeof(*sorted));
	if (!sorted)
		return NULL;
	memcpy(sorted, in->ids, in->count * sizeof(*sorted));
	qsort(sorted, in->count, sizeof(*sorted), compare);
	return sorted;
}

int py_selection_has(const struct py_selection *in, const uint64_t *sorted, uint64_t id)
{
	if (!in->ids)
		return id >= in->first && id - in->first < in->count;
	return bsearch(&id, sorted, in->count, sizeof(id), compare) != NULL;
}

/* Takes over the index; NULL: an exception is set. */
static int refuse_index(const struct py_selection *in, PyObject *index)
{
	if (index)
		PyErr_Format(PyExc_IndexError, "sample %S is out of range: there are %llu", index,
			     (unsigned long long)in->count);
	Py_XDECREF(index);
	return -1;
}

/* Return: 0; 1: it is out of range. */
static int find(const struct py_selection *in, long long index, uint64_t *id)
{
	const long long at = index < 0 ? index + (long long)in->count : index;

	if (at < 0 || (uint64_t)at >= in->count)
		return 1;
	*id = in->ids ? in->ids[at] : in->first + (uint64_t)at;
	return 0;
}

static int map(const struct py_selection *in, long long index, uint64_t *id)
{
	return find(in, index, id) ? refuse_index(in, PyLong_FromLongLong(index)) : 0;
}

/* Arrays and tensors of no dimensions are indices, too. */
/* A tensor of PyTorch is no sequence, but can be an array, and, of one element, an index. */
static int is_tensor(PyObject *which)
{
	PyObject *rank;
	long dims;

	if (PyLong_Check(which) || PySequence_Check(which) ||
	    !PyObject_HasAttrString(which, "__array__"))
		return 0;
	rank = PyObject_GetAttrString(which, "ndim");
	dims = rank ? PyLong_AsLong(rank) : 0;
	Py_XDECREF(rank);
	PyErr_Clear();
	return dims > 0;
}

int py_selection_is_index(PyObject *which)
{
	if (!PyIndex_Check(which) || is_tensor(which))
		return 0;
	if (!PySequence_Check(which))
		return 1;
	if (PySequence_Size(which) >= 0)
		return 0;
	PyErr_Clear();
	return 1;
}

int py_selection_index(const struct py_selection *in, PyObject *index, uint64_t *id)
{
	/* One that is larger becomes the largest, which is never in range. */
	Py_ssize_t value = PyNumber_AsSsize_t(index, NULL);

	if (value == -1 && PyErr_Occurred())
		return -1;
	if (!find(in, value, id))
		return 0;
	refuse_index(in, PyNumber_Index(index));
	if (PyErr_ExceptionMatches(PyExc_ValueError)) { /* it has more digits than str() writes */
		PyErr_Clear();
		PyNumber_AsSsize_t(index, PyExc_IndexError);
	}
	return -1;
}

static int make_room(struct py_selection *out, Py_ssize_t count)
{
	*out = (struct py_selection){.count = (uint64_t)count};
	out->ids = (size_t)count > SIZE_MAX / sizeof(*out->ids) ?
			   NULL :
			   malloc((size_t)count * sizeof(*out->ids) + 1);
	if (out->ids)
		return 0;
	PyErr_NoMemory();
	return -1;
}

static int pick_slice(const struct py_selection *in, PyObject *slice,
		      struct py_selection *out)
{
	Py_ssize_t start, stop, step, count;

	if (PySlice_Unpack(slice, &start, &stop, &step))
		return -1;
	count = PySlice_AdjustIndices((Py_ssize_t)in->count, &start, &stop, step);
	if (!in->ids && step == 1) { /* stays a range */
		*out = (struct py_selection){
			.first = in->first + (uint64_t)start,
			.count = (uint64_t)count,
		};
		return 0;
	}
	if (make_room(out, count))
		return -1;
	for (Py_ssize_t i = 0; i < count; i++, start += step)
		out->ids[i] = in->ids ? in->ids[start] :
					in->first + (uint64_t)start;
	return 0;
}

/* The id of the integer at `data` of a buffer with that format. */
static int map_at(const struct py_selection *in, const char *data, char format,
		  Py_ssize_t size, uint64_t *id)
{
	const int is_signed = strchr("bhilqn", format) != NULL;
	int64_t i64 = 0;

	memcpy(&i64, data, (size_t)size);
	if (is_signed && size < 8 && i64 >> (size * 8 - 1))
		i64 -= INT64_C(1) << (size * 8);
	/* Unsigned ones from 2^63 on come out negative. */
	if (!is_signed && i64 < 0)
		return refuse_index(in, PyLong_FromUnsignedLongLong((uint64_t)i64));
	return map(in, i64, id);
}

static int check_mask(const struct py_selection *in, Py_ssize_t count)
{
	if ((uint64_t)count == in->count)
		return 0;
	PyErr_Format(PyExc_IndexError, "a mask of %zd for %llu samples", count,
		     (unsigned long long)in->count);
	return -1;
}

/* Those whose place in an array of bool is true. */
static int pick_mask(const struct py_selection *in, const Py_buffer *mask,
		     struct py_selection *out)
{
	const char *data = mask->buf;
	const Py_ssize_t step = mask->strides[0];
	Py_ssize_t count = 0, n = 0;

	if (check_mask(in, mask->len))
		return -1;
	for (Py_ssize_t i = 0; i < mask->len; i++)
		count += data[i * step] != 0;
	if (make_room(out, count))
		return -1;
	for (Py_ssize_t i = 0; i < mask->len; i++)
		if (data[i * step])
			out->ids[n++] = in->ids ? in->ids[i] :
						  in->first + (uint64_t)i;
	return 0;
}

/* 1: it is none. */
static int pick_buffer(const struct py_selection *in, PyObject *which,
		       struct py_selection *out)
{
	Py_buffer view;
	const char *format;
	int err = -1;

	if (PyObject_GetBuffer(which, &view, PyBUF_FORMAT | PyBUF_STRIDES)) {
		PyErr_Clear();
		return 1;
	}
	format = view.format ? view.format : "B";
	if (view.ndim == 1 && !strcmp(format, "?")) {
		err = pick_mask(in, &view, out);
		PyBuffer_Release(&view);
		return err;
	}
	if (view.ndim != 1 || strlen(format) != 1 || !strchr("bBhHiIlLqQnN", *format) ||
	    view.itemsize > 8) {
		PyBuffer_Release(&view);
		return 1;
	}
	if (!make_room(out, view.len / view.itemsize))
		err = 0;
	for (uint64_t i = 0; !err && i < out->count; i++)
		err = map_at(in, (const char *)view.buf + (Py_ssize_t)i * view.strides[0],
			     *format, view.itemsize, &out->ids[i]);
	PyBuffer_Release(&view);
	return err;
}

/* A bool, or what NumPy, PyTorch, ... have as one: its dtype says so. */
static int is_bool(PyObject *item)
{
	PyObject *dtype, *name;
	const char *text;
	int found;

	if (PyLong_Check(item))
		return PyBool_Check(item);
	dtype = PyObject_GetAttrString(item, "dtype");
	name = dtype ? PyObject_Str(dtype) : NULL;
	text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	found = text && strstr(text, "bool") != NULL; /* "bool", "torch.bool" */
	Py_XDECREF(dtype);
	Py_XDECREF(name);
	PyErr_Clear();
	return found;
}

/* Python's own word for an error of that kind does not say what was to be selected. */
static int refuse_item(PyObject *item, PyObject *kind)
{
	if (PyErr_ExceptionMatches(kind) && !PyErr_ExceptionMatches(PyExc_IndexError))
		PyErr_Format(PyExc_TypeError,
			     "samples are selected by int or by bool in one dimension, not by %R",
			     Py_TYPE(item));
	return -1;
}

/* The id of an item, or of its place in a mask. Return: 1; 0: masked; -1. */
static int pick_item(const struct py_selection *in, PyObject *item, Py_ssize_t place,
		     int mask, uint64_t *id)
{
	int wanted;

	if (PyUnicode_Check(item) || PyBytes_Check(item)) {
		PyErr_Format(PyExc_TypeError,
			     "several samples are selected by index, not by key, of which "
			     "find(%R) is the index in the whole snapshot, not in a subset", item);
		return -1;
	}
	if (is_bool(item) != mask) {
		PyErr_SetString(PyExc_TypeError, "samples are selected by int or by "
						 "bool, not by some of each");
		return -1;
	}
	if (!mask)
		return py_selection_index(in, item, id) ? refuse_item(item, PyExc_TypeError) : 1;
	wanted = PyObject_IsTrue(item);
	if (wanted < 0) /* an array */
		return refuse_item(item, PyExc_Exception);
	return wanted > 0 && map(in, place, id) ? -1 : wanted;
}

/* A sequence whose first item is bool is a mask. */
static int starts_mask(const struct py_selection *in, PyObject *which, Py_ssize_t count)
{
	PyObject *first = count ? PySequence_GetItem(which, 0) : NULL;
	int mask;

	if (!first)
		return count ? -1 : 0;
	mask = is_bool(first);
	Py_DECREF(first);
	return mask && check_mask(in, count) ? -1 : mask;
}

static int pick_sequence(const struct py_selection *in, PyObject *which,
			 struct py_selection *out)
{
	Py_ssize_t count = PySequence_Size(which);
	const int mask = count < 0 ? -1 : starts_mask(in, which, count);
	int found = 0;

	if (mask < 0 || make_room(out, count))
		return -1;
	out->count = 0;
	for (Py_ssize_t i = 0; found >= 0 && i < count; i++) {
		PyObject *item = PySequence_GetItem(which, i);

		found = item ? pick_item(in, item, i, mask, &out->ids[out->count]) : -1;
		out->count += found > 0;
		Py_XDECREF(item);
	}
	return found < 0 ? -1 : 0;
}

/* The id of the item at this place of a range. */
static int range_id(const struct py_selection *in, PyObject *range, Py_ssize_t place,
		    uint64_t *id)
{
	PyObject *item = PySequence_GetItem(range, place);
	int err = item ? py_selection_index(in, item, id) : -1;

	Py_XDECREF(item);
	return err;
}

/* 1: it does not stay one. */
static int pick_range(const struct py_selection *in, PyObject *range,
		      struct py_selection *out)
{
	Py_ssize_t count = PySequence_Size(range);
	uint64_t first = 0, last = 0;

	if (count < 0)
		return -1;
	if (in->ids || !count)
		return 1;
	if (range_id(in, range, 0, &first) || range_id(in, range, count - 1, &last))
		return -1;
	if (last < first || last - first != (uint64_t)count - 1)
		return 1;
	*out = (struct py_selection){.first = first, .count = (uint64_t)count};
	return 0;
}

static int pick_tensor(const struct py_selection *in, PyObject *which, const char *wanted,
		       struct py_selection *out)
{
	PyObject *array = PyObject_CallMethod(which, "__array__", NULL);
	int err = -1;

	if (array && is_tensor(array))
		PyErr_Format(PyExc_TypeError, "%s, not %R", wanted, Py_TYPE(which));
	else if (array)
		err = py_selection_pick(in, array, wanted, out);
	Py_XDECREF(array);
	return err;
}

int py_selection_pick(const struct py_selection *in, PyObject *which,
		      const char *wanted, struct py_selection *out)
{
	int err = 1;

	*out = (struct py_selection){0};
	if (PySlice_Check(which))
		return pick_slice(in, which, out);
	if (is_tensor(which))
		return pick_tensor(in, which, wanted, out);
	if (PyBytes_Check(which) || PyUnicode_Check(which) ||
	    !PySequence_Check(which) || py_selection_is_index(which)) {
		PyErr_Format(PyExc_TypeError, "%s, not %R", wanted, Py_TYPE(which));
		return -1;
	}
	if (Py_TYPE(which) == &PyRange_Type)
		err = pick_range(in, which, out);
	else if (!PyList_Check(which))
		err = pick_buffer(in, which, out);
	if (err > 0)
		err = pick_sequence(in, which, out);
	if (err)
		py_selection_release(out);
	return err;
}
