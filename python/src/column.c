/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.c - Python objects as the values of fields
 *
 * Bytes and tensors are taken from buffers; what has none but can make an array (a PyTorch
 * tensor) is asked for that. Nothing is converted silently: an int field takes no float, a
 * tensor field no other type of elements.
 */
#include "py.h"

static int refuse(const struct py_column *column, const char *wanted, PyObject *object)
{
	PyErr_Format(PyExc_TypeError, "field %R takes %s, not %R", column->name, wanted,
		     Py_TYPE(object));
	return -1;
}

/* What was raised when the object was asked for that is the reason, and the cause. */
static int refuse_why(const struct py_column *column, const char *wanted, PyObject *object)
{
	PyObject *type, *value, *traceback, *cause;

	if (!PyErr_ExceptionMatches(PyExc_Exception) ||
	    PyErr_ExceptionMatches(PyExc_MemoryError))
		return -1;
	PyErr_Fetch(&type, &cause, &traceback);
	PyErr_NormalizeException(&type, &cause, &traceback);
	Py_XDECREF(type);
	Py_XDECREF(traceback);
	PyErr_Format(PyExc_TypeError, "field %R takes %s, and %R gives none: %S", column->name,
		     wanted, Py_TYPE(object), cause);
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	PyException_SetCause(value, cause); /* takes it over */
	PyErr_Restore(type, value, traceback);
	return -1;
}

/* Python's own word for an error of that kind names no field; any other error stays. */
static int name_field(const struct py_column *column, PyObject *kind, const char *text)
{
	if (PyErr_ExceptionMatches(kind)) {
		PyErr_Clear();
		PyErr_Format(PyExc_ValueError, "field %R %s", column->name, text);
	}
	return -1;
}

/* A copy in C order; takes over the object. */
static PyObject *contiguous(PyObject *object)
{
	PyObject *numpy = PyImport_ImportModule("numpy");
	PyObject *array =
		numpy ? PyObject_CallMethod(numpy, "ascontiguousarray", "O", object) : NULL;

	Py_XDECREF(numpy);
	Py_DECREF(object);
	return array;
}

/* Not strings: NumPy's array of a str would do, and be a surprise. */
static int get_buffer(PyObject *object, Py_buffer *view)
{
	const int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS;
	PyObject *array = PyObject_CheckBuffer(object) ?
				  Py_NewRef(object) :
				  PyObject_CallMethod(object, "__array__", NULL);
	int err = array ? PyObject_GetBuffer(array, view, flags) : -1;

	if (array && err &&
	    (PyErr_ExceptionMatches(PyExc_BufferError) ||
	     PyErr_ExceptionMatches(PyExc_ValueError))) {
		PyErr_Clear(); /* not contiguous */
		array = contiguous(array);
		err = array ? PyObject_GetBuffer(array, view, flags) : -1;
	}
	Py_XDECREF(array); /* the view keeps it */
	return err;
}

/* A masked array of NumPy whose buffer has what its mask hides. -1 with an exception. */
static int is_masked(PyObject *object)
{
	PyObject *mask, *masked;
	int any;

	if (!PyObject_HasAttrString(object, "filled") || !PyObject_HasAttrString(object, "mask"))
		return 0;
	mask = PyObject_GetAttrString(object, "mask");
	masked = mask ? PyObject_CallMethod(mask, "any", NULL) : NULL;
	any = masked ? PyObject_IsTrue(masked) : -1;
	Py_XDECREF(masked);
	Py_XDECREF(mask);
	return any;
}

static int take_buffer(const struct py_column *column, PyObject *object,
		       const char *wanted, Py_buffer *view)
{
	int masked;

	view->obj = NULL;
	if (PyUnicode_Check(object) ||
	    (!PyObject_CheckBuffer(object) && !PyObject_HasAttrString(object, "__array__")))
		return refuse(column, wanted, object);
	masked = is_masked(object);
	if (masked > 0)
		PyErr_Format(PyExc_ValueError, "field %R takes no masked elements, whose values "
			     "would come back: fill them, as with filled(0)", column->name);
	if (masked > 0)
		return -1;
	if (!masked && !get_buffer(object, view))
		return 0;
	view->obj = NULL;
	return refuse_why(column, wanted, object);
}

/* Addresses of this process; in the format of a structure, names stand between colons. */
static int has_addresses(const char *format)
{
	int in_name = 0;

	for (; format && *format; format++) {
		in_name ^= *format == ':';
		if (!in_name && strchr("OP&", *format))
			return 1;
	}
	return 0;
}

static int take_bytes(const struct py_column *column, PyObject *object,
		      struct stele_txn_value *value, Py_buffer *view)
{
	if (take_buffer(column, object, "bytes", view))
		return -1;
	if (has_addresses(view->format)) {
		PyErr_Format(PyExc_TypeError, "field %R takes bytes, and what is given has "
			     "addresses of objects instead", column->name);
		return -1;
	}
	value->data = view->buf;
	value->size = (uint64_t)view->len;
	return 0;
}

static int is_shape(const struct stele_field *field, const Py_buffer *view)
{
	if ((uint32_t)view->ndim != field->rank)
		return 0;
	for (uint32_t i = 0; i < field->rank; i++)
		if ((field->dims[i] || i) &&
		    (uint64_t)view->shape[i] != field->dims[i])
			return 0;
	return 1;
}

/* What the elements of a buffer are called, even if no field has such. */
static PyObject *elements_of(const Py_buffer *view)
{
	const char *format = view->format ? view->format : "B";
	const char *name = py_dtype_name(format, view->itemsize);
	const int big_endian = *format == '>' || *format == '!';

	if (name)
		return PyUnicode_FromString(name);
	return PyUnicode_FromFormat("'%s' of %zd bytes%s", format, view->itemsize,
				    big_endian ? ", which is big-endian" : "");
}

static void refuse_elements(const struct py_column *column, const Py_buffer *view)
{
	const uint32_t dtype = column->field.dtype;
	const char *wanted = py_dtype(dtype)->name;
	PyObject *found = elements_of(view);

	if (found && dtype == STELE_DTYPE_BF16) /* which NumPy does not have */
		PyErr_Format(PyExc_TypeError,
			     "field %R takes elements of type bfloat16, or their bits as uint16, "
			     "not %U", column->name, found);
	else if (found)
		PyErr_Format(PyExc_TypeError,
			     "field %R takes elements of type %s, not %U: convert them, as with "
			     "astype('%s')", column->name, wanted, found, wanted);
	Py_XDECREF(found);
}

/* Dimensions, as NumPy shows them; None: any. */
static PyObject *shape_of(const struct stele_field *field, const Py_buffer *view)
{
	const Py_ssize_t rank = view ? view->ndim : (Py_ssize_t)field->rank;
	PyObject *tuple = PyTuple_New(rank);

	for (Py_ssize_t i = 0; tuple && i < rank; i++) {
		PyObject *dim = view	       ? PyLong_FromSsize_t(view->shape[i]) :
				field->dims[i] ? PyLong_FromUnsignedLong(field->dims[i]) :
						 Py_NewRef(Py_None);

		if (!dim || PyTuple_SetItem(tuple, i, dim))
			Py_CLEAR(tuple);
	}
	return tuple;
}

static void refuse_shape(const struct py_column *column, const Py_buffer *view)
{
	PyObject *wanted = shape_of(&column->field, NULL);
	PyObject *found = wanted ? shape_of(&column->field, view) : NULL;

	if (found)
		PyErr_Format(PyExc_ValueError, "field %R takes an array of shape %R, not %R",
			     column->name, wanted, found);
	Py_XDECREF(wanted);
	Py_XDECREF(found);
}

static int take_tensor(const struct py_column *column, PyObject *object,
		       struct stele_txn_value *value, Py_buffer *view)
{
	const struct stele_field *field = &column->field;

	if (take_buffer(column, object, "an array", view))
		return -1;
	if (!py_dtype_fits(field->dtype, view->format ? view->format : "B",
			   view->itemsize)) {
		refuse_elements(column, view);
		return -1;
	}
	if (!is_shape(field, view)) {
		refuse_shape(column, view);
		return -1;
	}
	value->data = view->buf;
	value->size = (uint64_t)view->len;
	return 0;
}

static int take_text(const struct py_column *column, PyObject *object,
		     struct stele_txn_value *value)
{
	Py_ssize_t size;

	if (!PyUnicode_Check(object))
		return refuse(column, "a str", object);
	value->data = PyUnicode_AsUTF8AndSize(object, &size);
	if (!value->data)
		return name_field(column, PyExc_UnicodeError,
				  "takes no str with lone surrogates, which are not UTF-8");
	value->size = (uint64_t)size;
	return 0;
}

static int take_class(const struct py_column *column, PyObject *object,
		      struct stele_txn_value *value)
{
	PyObject *index;

	if (!column->classes)
		return refuse(column, "an int", object);
	index = PyObject_GetItem(column->classes, object);
	if (!index) {
		if (PyErr_ExceptionMatches(PyExc_KeyError))
			PyErr_Format(PyExc_ValueError, "field %R has no class %R",
				     column->name, object);
		return -1;
	}
	value->i64 = PyLong_AsLongLong(index);
	Py_DECREF(index);
	return PyErr_Occurred() ? -1 : 0;
}

/* -1: none of them. */
static int check_class(const struct py_column *column, int64_t value)
{
	if (!column->classes || (value >= -1 && value < column->field.name_count))
		return 0;
	PyErr_Format(PyExc_ValueError,
		     "field %R has %u classes, and none with the number %lld",
		     column->name, column->field.name_count, (long long)value);
	return -1;
}

static int take_int(const struct py_column *column, PyObject *object,
		    struct stele_txn_value *value)
{
	const char *wanted = column->classes ? "the name of a class, its number, or -1 for none" :
					       "an int";
	PyObject *number;

	if (PyUnicode_Check(object))
		return take_class(column, object, value);
	if (!PyIndex_Check(object))
		return refuse(column, wanted, object);
	number = PyNumber_Index(object);
	if (!number)
		return refuse_why(column, wanted, object);
	value->i64 = PyLong_AsLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred())
		return name_field(column, PyExc_OverflowError,
				  "takes an int of 64 bits: this one is too large");
	return check_class(column, value->i64);
}

/* Whether an object, if it is an integer, is that double. -1 with an exception. */
static int is_exact(PyObject *object, double value)
{
	PyObject *number, *same;
	int equal = -1;

	if (PyFloat_Check(object) || !PyIndex_Check(object))
		return 1;
	number = PyNumber_Index(object);
	if (!number && PyErr_ExceptionMatches(PyExc_TypeError)) { /* an array of a float */
		PyErr_Clear();
		return 1;
	}
	same = number ? PyLong_FromDouble(value) : NULL;
	if (same)
		equal = PyObject_RichCompareBool(number, same, Py_EQ);
	Py_XDECREF(number);
	Py_XDECREF(same);
	return equal;
}

static int take_float(const struct py_column *column, PyObject *object,
		      struct stele_txn_value *value)
{
	int exact;

	value->f64 = PyFloat_AsDouble(object);
	if (!PyErr_Occurred()) {
		exact = is_exact(object, value->f64);
		if (!exact)
			PyErr_Format(PyExc_ValueError,
				     "field %R takes a float, which cannot hold this int exactly",
				     column->name);
		return exact > 0 ? 0 : -1;
	}
	if (!PyErr_ExceptionMatches(PyExc_TypeError))
		return name_field(column, PyExc_OverflowError,
				  "takes a float: this int is too large for one");
	PyErr_Clear();
	return refuse(column, "a float", object);
}

static int take(const struct py_column *column, PyObject *object,
		struct stele_txn_value *value, Py_buffer *view)
{
	switch (column->field.type) {
	case STELE_TYPE_BYTES:
		return take_bytes(column, object, value, view);
	case STELE_TYPE_UTF8:
		return take_text(column, object, value);
	case STELE_TYPE_TENSOR:
		return take_tensor(column, object, value, view);
	case STELE_TYPE_I64:
		return take_int(column, object, value);
	default:
		return take_float(column, object, value);
	}
}

/* ---- rows --------------------------------------------------------------------------- */

/* Of a sample of another image its class by name: its number may be another one here. */
static PyObject *value_of(PyObject *sample, const struct py_column *column)
{
	const struct py_state *state;

	if (!column->classes || PyDict_CheckExact(sample))
		return PyObject_GetItem(sample, column->name);
	state = py_state();
	if (!state)
		return NULL;
	return PyObject_TypeCheck(sample, state->sample) ? py_sample_class(sample, column->name) :
							   PyObject_GetItem(sample, column->name);
}

int py_row_take(struct py_row *row, const struct py_column *columns, uint32_t count,
		PyObject *sample)
{
	row->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		PyObject *object = value_of(sample, &columns[i]);

		if (!object) {
			/* Not of a lazy sample, which says itself what it lacks. */
			if (PyErr_ExceptionMatches(PyExc_KeyError) &&
			    !PyErr_ExceptionMatches(PyExc_OSError))
				PyErr_Format(PyExc_ValueError, "field %R is missing",
					     columns[i].name);
			return -1;
		}
		row->objects[i] = object;
		row->views[i].obj = NULL;
		row->values[i] = (struct stele_txn_value){0};
		row->count++;
		if (take(&columns[i], object, &row->values[i], &row->views[i]))
			return -1;
	}
	return 0;
}

void py_row_release(struct py_row *row)
{
	for (uint32_t i = 0; i < row->count; i++) {
		if (row->views[i].obj)
			PyBuffer_Release(&row->views[i]);
		Py_DECREF(row->objects[i]);
	}
	row->count = 0;
}
