/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - Tensor: a piece of a sample as elements with a shape; DLPack
 *
 * Row-major and contiguous, as the format stores them. bfloat16 has no buffer format: it
 * is handed out as 16-bit integers there, and as what it is through DLPack.
 */
#include "py.h"

#include <stdlib.h>

struct tensor {
	struct py_block *block;
	const void *data;
	uint64_t size;
	uint32_t dtype;
	uint32_t rank;
	Py_ssize_t dims[STELE_RANK_MAX], strides[STELE_RANK_MAX];
};

/* By enum stele_dtype. Codes of DLPack: int 0, uint 1, float 2, bfloat 4, complex 5, bool 6. */
static const struct {
	const char *name, *format;
	uint8_t size, code;
} dtypes[] = {
	[STELE_DTYPE_BOOL] = {"bool", "?", 1, 6},
	[STELE_DTYPE_U8] = {"uint8", "B", 1, 1},
	[STELE_DTYPE_I8] = {"int8", "b", 1, 0},
	[STELE_DTYPE_U16] = {"uint16", "H", 2, 1},
	[STELE_DTYPE_I16] = {"int16", "h", 2, 0},
	[STELE_DTYPE_U32] = {"uint32", "I", 4, 1},
	[STELE_DTYPE_I32] = {"int32", "i", 4, 0},
	[STELE_DTYPE_U64] = {"uint64", "Q", 8, 1},
	[STELE_DTYPE_I64] = {"int64", "q", 8, 0},
	[STELE_DTYPE_F16] = {"float16", "e", 2, 2},
	[STELE_DTYPE_BF16] = {"bfloat16", "H", 2, 4},
	[STELE_DTYPE_F32] = {"float32", "f", 4, 2},
	[STELE_DTYPE_F64] = {"float64", "d", 8, 2},
	[STELE_DTYPE_C64] = {"complex64", "Zf", 8, 5},
	[STELE_DTYPE_C128] = {"complex128", "Zd", 16, 5},
};

static struct tensor *tensor_of(PyObject *self)
{
	return py_data(self);
}

PyObject *py_tensor_new(struct py_entry *entry, const void *data, uint64_t size,
			uint32_t dtype, uint32_t rank, const uint64_t *dims)
{
	struct tensor *t;
	PyObject *self;
	Py_ssize_t stride;

	if (!dtype || dtype >= sizeof(dtypes) / sizeof(*dtypes)) {
		PyErr_Format(PyExc_TypeError, "tensors of type %u are not known here",
			     (unsigned int)dtype);
		return NULL;
	}
	self = (PyObject *)PyObject_New(PyObject, entry->core->state->tensor);
	if (!self)
		return NULL;
	t = tensor_of(self);
	*t = (struct tensor){.block = entry->block,
			     .data = data,
			     .size = size,
			     .dtype = dtype,
			     .rank = rank};
	py_block_ref(entry->block, 1);
	stride = dtypes[dtype].size;
	for (uint32_t i = rank; i-- > 0;) {
		t->dims[i] = (Py_ssize_t)dims[i];
		t->strides[i] = stride;
		stride *= t->dims[i];
	}
	return self;
}

static void tensor_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	py_block_unref(tensor_of(self)->block);
	PyObject_Free(self);
	Py_DECREF(type);
}

int py_dtype_fits(uint32_t dtype, const char *format, Py_ssize_t size)
{
	int code;

	format += strchr("@=<", *format) && *format; /* little-endian, as the machine */
	if (strchr("bhilqn", *format))
		code = 0;
	else if (strchr("BHILQN", *format))
		code = 1;
	else if (strchr("efd", *format))
		code = 2;
	else
		code = *format == '?' ? 6 : *format == 'Z' ? 5 : -1;
	if (!*format || strlen(format) != (code == 5 ? 2 : 1) ||
	    size != dtypes[dtype].size)
		return 0;
	return code == dtypes[dtype].code ||
	       (dtype == STELE_DTYPE_BF16 && *format == 'H');
}

/*
 * A type without alignment guarantees: elements may lie at any byte, which NumPy can
 * handle, and consumers of DLPack are told by the address.
 */
static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	struct tensor *t = tensor_of(self);

	view->obj = NULL;
	if (!py_block_check(t->block))
		return -1;
	if (PyBuffer_FillInfo(view, self, (void *)t->data, (Py_ssize_t)t->size,
			      t->block->readonly, flags))
		return -1;
	view->itemsize = dtypes[t->dtype].size;
	if (flags & PyBUF_FORMAT)
		view->format = (char *)dtypes[t->dtype].format;
	if ((flags & PyBUF_ND) == PyBUF_ND) {
		view->ndim = (int)t->rank;
		view->shape = t->dims;
	}
	if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES)
		view->strides = t->strides;
	return 0;
}

/* ---- DLPack --------------------------------------------------------------------- */

#define DL_CPU		1
#define DL_READ_ONLY	1u
#define DL_MAJOR	1

struct dl_tensor {
	void *data;
	int32_t device_type, device_id;
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *);
};

struct dl_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dl_versioned *);
	uint64_t flags;
	struct dl_tensor tensor;
};

struct dl {
	union {
		struct dl_managed managed;
		struct dl_versioned versioned;
	};
	struct py_block *block;
	int64_t shape[STELE_RANK_MAX], strides[STELE_RANK_MAX];
};

static void dl_free(struct dl *dl)
{
	py_block_unref(dl->block);
	free(dl);
}

static void delete_managed(struct dl_managed *managed)
{
	dl_free(managed->context);
}

static void delete_versioned(struct dl_versioned *versioned)
{
	dl_free(versioned->context);
}

/* A capsule that nobody consumed still owns what is in it. */
static void capsule_free(PyObject *capsule)
{
	struct dl_managed *managed;
	struct dl_versioned *versioned;

	if (PyCapsule_IsValid(capsule, "dltensor")) {
		managed = PyCapsule_GetPointer(capsule, "dltensor");
		managed->deleter(managed);
	} else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		versioned->deleter(versioned);
	}
}

static void dl_fill(struct dl *dl, struct dl_tensor *out, const void *data,
		    uint32_t dtype, uint32_t rank, const uint64_t *dims)
{
	int64_t stride = 1;

	*out = (struct dl_tensor){
		.data = (void *)data,
		.device_type = DL_CPU,
		.ndim = (int32_t)rank,
		.code = dtypes[dtype].code,
		.bits = (uint8_t)(dtypes[dtype].size * 8),
		.lanes = 1,
		.shape = dl->shape,
		.strides = dl->strides,
	};
	for (uint32_t i = rank; i-- > 0;) {
		dl->shape[i] = (int64_t)dims[i];
		dl->strides[i] = stride;
		stride *= (int64_t)dims[i];
	}
}

/* What the consumer can take: 1, "dltensor_versioned"; 0, the old one; -1, an exception. */
static int wants_versioned(PyObject *kwargs)
{
	PyObject *version = NULL, *major, *copy, *device;
	int ret = 0;

	if (kwargs) {
		copy = PyDict_GetItemString(kwargs, "copy");
		device = PyDict_GetItemString(kwargs, "dl_device");
		version = PyDict_GetItemString(kwargs, "max_version");
		if (copy && copy != Py_None && PyObject_IsTrue(copy)) {
			PyErr_SetString(PyExc_BufferError,
					"samples are not copied");
			return -1;
		}
		if (device && device != Py_None) {
			int type, id;

			if (!PyArg_ParseTuple(device, "ii", &type, &id))
				return -1;
			if (type != DL_CPU) {
				PyErr_SetString(PyExc_BufferError,
						"samples are in the CPU's memory");
				return -1;
			}
		}
	}
	if (!version || version == Py_None)
		return 0;
	major = PySequence_GetItem(version, 0);
	if (!major)
		return -1;
	ret = PyLong_AsLong(major) >= DL_MAJOR;
	Py_DECREF(major);
	return PyErr_Occurred() ? -1 : ret;
}

PyObject *py_dlpack(struct py_block *block, const void *data, uint32_t dtype,
		    uint32_t rank, const uint64_t *dims, PyObject *kwargs)
{
	int versioned = wants_versioned(kwargs);
	PyObject *capsule;
	struct dl *dl;

	if (versioned < 0 || !py_block_check(block))
		return NULL;
	if (!versioned && block->readonly) {
		PyErr_SetString(PyExc_BufferError,
				"read-only memory needs DLPack 1.0 or newer");
		return NULL;
	}
	dl = calloc(1, sizeof(*dl));
	if (!dl)
		return PyErr_NoMemory();
	dl->block = block;
	py_block_ref(block, 1);
	if (versioned) {
		dl->versioned = (struct dl_versioned){
			.major = DL_MAJOR,
			.context = dl,
			.deleter = delete_versioned,
			.flags = block->readonly ? DL_READ_ONLY : 0,
		};
		dl_fill(dl, &dl->versioned.tensor, data, dtype, rank, dims);
	} else {
		dl->managed.context = dl;
		dl->managed.deleter = delete_managed;
		dl_fill(dl, &dl->managed.tensor, data, dtype, rank, dims);
	}
	capsule = PyCapsule_New(dl, versioned ? "dltensor_versioned" : "dltensor",
				capsule_free);
	if (!capsule)
		dl_free(dl);
	return capsule;
}

PyObject *py_dlpack_device(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_BuildValue("(ii)", DL_CPU, 0);
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
	const struct tensor *t = tensor_of(self);
	uint64_t dims[STELE_RANK_MAX];

	if (!PyArg_ParseTuple(args, ":__dlpack__"))
		return NULL;
	for (uint32_t i = 0; i < t->rank; i++)
		dims[i] = (uint64_t)t->dims[i];
	return py_dlpack(t->block, t->data, t->dtype, t->rank, dims, kwargs);
}

/* ---- what it is ------------------------------------------------------------------- */

static PyObject *tensor_shape(PyObject *self, void *unused)
{
	const struct tensor *t = tensor_of(self);
	PyObject *shape = PyTuple_New(t->rank);

	(void)unused;
	for (uint32_t i = 0; shape && i < t->rank; i++) {
		PyObject *dim = PyLong_FromSsize_t(t->dims[i]);

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
	return PyUnicode_FromString(dtypes[tensor_of(self)->dtype].name);
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
				    dtypes[tensor_of(self)->dtype].name, shape);
	Py_DECREF(shape);
	return text;
}

static PyMethodDef methods[] = {
	{"numpy", py_asarray, METH_NOARGS,
	 "numpy($self, /)\n--\n\n"
	 "As a NumPy array of its dtype and shape, not copied; bfloat16 as uint16."},
	{"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack,
	 METH_VARARGS | METH_KEYWORDS, NULL},
	{"__dlpack_device__", py_dlpack_device, METH_NOARGS, NULL},
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
	{Py_tp_doc, "A tensor in a sample: a buffer with dtype and shape, and DLPack."},
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
