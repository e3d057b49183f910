/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - fields of samples: by name, to Python, and from Python as a schema
 */
#include "py.h"

#include <stdlib.h>

/* KeyError, with what there is. */
static void raise_no_field(const struct py_core *core, PyObject *name)
{
	PyObject *names = PyUnicode_FromString("");

	for (uint32_t i = 0; names && i < core->field_count; i++) {
		PyObject *more = PyUnicode_FromFormat("%U%s'%s'", names, i ? ", " : "",
						      core->fields[i].name);

		Py_DECREF(names);
		names = more;
	}
	if (names)
		PyErr_Format(PyExc_KeyError, "no field %R: there are %U", name, names);
	Py_XDECREF(names);
}

int py_field_index(const struct py_core *core, PyObject *name)
{
	Py_ssize_t size;
	const char *text;

	if (!PyUnicode_Check(name)) {
		PyErr_SetString(PyExc_TypeError, "a field is named by a str");
		return -1;
	}
	text = PyUnicode_AsUTF8AndSize(name, &size);
	if (!text)
		return -1;
	for (uint32_t i = 0; i < core->field_count; i++)
		if (!strcmp(core->fields[i].name, text) && strlen(text) == (size_t)size)
			return (int)i;
	raise_no_field(core, name);
	return -1;
}

/* ---- to Python ---------------------------------------------------------------------- */

PyObject *py_field_tuple(const struct stele_field *field)
{
	PyObject *names = field->names_damaged ? Py_NewRef(Py_None) :
						 PyTuple_New(field->name_count);
	PyObject *dims = PyTuple_New(field->rank);

	for (uint32_t i = 0; names && i < field->name_count; i++) {
		PyObject *name = py_key_str(field->names[i],
					    strlen(field->names[i]));

		if (!name || PyTuple_SetItem(names, i, name))
			Py_CLEAR(names);
	}
	for (uint32_t i = 0; dims && i < field->rank; i++) {
		PyObject *dim = PyLong_FromUnsignedLong(field->dims[i]);

		if (!dim || PyTuple_SetItem(dims, i, dim))
			Py_CLEAR(dims);
	}
	if (names && dims)
		return Py_BuildValue("(sININ)", field->name, field->type, names,
				     field->dtype, dims);
	Py_XDECREF(names);
	Py_XDECREF(dims);
	return NULL;
}

/* ---- from Python -------------------------------------------------------------------- */

static int take_dims(struct stele_field *field, PyObject *dims)
{
	Py_ssize_t rank = PyTuple_Size(dims);

	if (rank < 0 || rank > STELE_RANK_MAX) {
		PyErr_SetString(PyExc_ValueError, "a tensor with too many dimensions");
		return -1;
	}
	field->rank = (uint32_t)rank;
	for (Py_ssize_t i = 0; i < rank; i++) {
		unsigned long dim = PyLong_AsUnsignedLong(PyTuple_GetItem(dims, i));

		if (PyErr_Occurred())
			return -1;
		if (dim > UINT32_MAX) {
			PyErr_SetString(PyExc_OverflowError, "a dimension is too large");
			return -1;
		}
		field->dims[i] = (uint32_t)dim;
	}
	return 0;
}

/* To be freed; they point into the tuple's. */
static int take_names(struct stele_field *field, PyObject *tuple, const char ***names)
{
	Py_ssize_t count = PyTuple_Size(tuple);

	if (count < 0 || count > UINT32_MAX)
		return -1;
	*names = calloc((size_t)count + 1, sizeof(**names));
	if (!*names) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		char *name;

		if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, i), &name, NULL))
			return -1;
		(*names)[i] = name;
	}
	field->names = *names;
	field->name_count = (uint32_t)count;
	return 0;
}

int py_column_take(struct py_column *column, PyObject *tuple, const char ***class_names)
{
	struct stele_field *field = &column->field;
	PyObject *name, *dims, *names, *classes;
	const char *text;
	Py_ssize_t size;

	if (!PyArg_ParseTuple(tuple, "OIIO!O!O", &name, &field->type, &field->dtype,
			      &PyTuple_Type, &dims, &PyTuple_Type, &names, &classes))
		return -1;
	text = PyUnicode_AsUTF8AndSize(name, &size);
	if (!text)
		return -1;
	if (size > STELE_NAME_SIZE_MAX || strlen(text) != (size_t)size) {
		PyErr_Format(PyExc_ValueError, "%R cannot be the name of a field", name);
		return -1;
	}
	field->size = sizeof(*field);
	memcpy(field->name, text, (size_t)size + 1);
	column->name = Py_NewRef(name);
	column->classes = classes == Py_None ? NULL : Py_NewRef(classes);
	return take_dims(field, dims) || take_names(field, names, class_names) ? -1 : 0;
}

void py_column_release(struct py_column *column)
{
	Py_CLEAR(column->name);
	Py_CLEAR(column->classes);
}
