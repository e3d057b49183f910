/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - Tensor: a piece of a sample as elements with a shape
 *
 * Row-major and contiguous, as the format stores them, and aligned to their size, as it does
 * not: sample.c copies those that are not.
 */
#include "py.h"

struct tensor {
	struct py_array array;
	const struct py_dtype *dtype;
	uint64_t size;
	Py_ssize_t strides[STELE_RANK_MAX];
};

static struct tensor *tensor_of(PyObject *self)
{
	return py_data(self);
}

PyObject *py_tensor_new(struct py_entry *entry, const void *data, uint64_t size,
			uint32_t dtype, uint32_t rank, const uint64_t *dims)
{
	const struct py_dtype *type = py_dtype(dtype);
	Py_ssize_t stride;
	struct tensor *t;
	PyObject *self;

	if (!type)
		return NULL;
	self = (PyObject *)PyObject_New(PyObject, entry->core->state->tensor);
	if (!self)
		return NULL;
	t = tensor_of(self);
	*t = (struct tensor){
		.array = {.block = entry->block, .data = data, .dtype = dtype, .rank = rank},
		.dtype = type,
		.size = size,
	};
	py_block_ref(entry->block, 1);
	stride = type->size;
	for (uint32_t i = rank; i-- > 0;) {
		t->array.dims[i] = (Py_ssize_t)dims[i];
		t->strides[i] = stride;
		stride *= t->array.dims[i];
	}
	return self;
}

static void tensor_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	py_block_unref(tensor_of(self)->array.block);
	PyObject_Free(self);
	Py_DECREF(type);
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	struct tensor *t = tensor_of(self);

	view->obj = NULL;
	if (!py_block_check(t->array.block))
		return -1;
	if (PyBuffer_FillInfo(view, self, (void *)t->array.data, (Py_ssize_t)t->size,
			      t->array.block->readonly, flags))
		return -1;
	view->itemsize = t->dtype->size;
	if (flags & PyBUF_FORMAT)
		view->format = (char *)t->dtype->format;
	if ((flags & PyBUF_ND) == PyBUF_ND) {
		view->ndim = (int)t->array.rank;
		view->shape = t->array.dims;
	}
	if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES)
		view->strides = t->strides;
	return 0;
}

PyObject *py_asarray(PyObject *self, PyObject *unused)
{
	PyObject *numpy = PyImport_ImportModule("numpy");
	PyObject *array;

	(void)unused;
	if (!numpy)
		return NULL;
	array = PyObject_CallMethod(numpy, "asarray", "O", self);
	Py_DECREF(numpy);
	return array;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return py_dlpack(&tensor_of(self)->array, args, kwargs);
}

/* ---- what it is ------------------------------------------------------------------- */

static PyObject *tensor_shape(PyObject *self, void *unused)
{
	const struct tensor *t = tensor_of(self);
	PyObject *shape = PyTuple_New(t->array.rank);

	(void)unused;
	for (uint32_t i = 0; shape && i < t->array.rank; i++) {
		PyObject *dim = PyLong_FromSsize_t(t->array.dims[i]);

		if (!dim || PyTuple_SetItem(shape, i, dim)) {
			Py_DECREF(shape);
			return NULL;
		}
	}
	return shape;
}

static PyObject *tensor_dtype(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(tensor_of(self)->dtype->name);
}

static PyObject *tensor_nbytes(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(tensor_of(self)->size);
}

static PyObject *tensor_repr(PyObject *self)
{
	PyObject *shape = tensor_shape(self, NULL), *text;

	if (!shape)
		return NULL;
	text = PyUnicode_FromFormat("<stele.Tensor %s %R>",
				    tensor_of(self)->dtype->name, shape);
	Py_DECREF(shape);
	return text;
}

static PyMethodDef methods[] = {
	{"numpy", py_asarray, METH_NOARGS,
	 "numpy($self, /)\n--\n\n"
	 "As a NumPy array of its dtype and shape, of the same memory; bfloat16 as uint16."},
	{"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack,
	 METH_VARARGS | METH_KEYWORDS, NULL},
	{"__dlpack_device__", py_dlpack_device, METH_NOARGS, NULL},
	{"__reduce__", py_no_pickle, METH_NOARGS, NULL},
	{0},
};

static PyGetSetDef members[] = {
	{"shape", tensor_shape, NULL, "Its dimensions, a tuple of int.", NULL},
	{"dtype", tensor_dtype, NULL, "The type of its elements: 'uint8', 'bfloat16', ...",
	 NULL},
	{"nbytes", tensor_nbytes, NULL, "Its bytes.", NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc,
	 "A tensor in a sample: a buffer with dtype and shape, and DLPack.\n\n"
	 "In memory of the sample, or in a copy of its own where that is not aligned to elements."},
	{Py_tp_dealloc, tensor_dealloc},
	{Py_tp_repr, tensor_repr},
	{Py_bf_getbuffer, tensor_getbuffer},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

PyType_Spec py_tensor_spec = {
	.name = "stele.Tensor",
	.basicsize = PY_SIZE(struct tensor),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
