/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlpack.c - memory of samples for other libraries, by DLPack
 *
 * Both versions of the protocol; read-only memory needs the new one, which can say so. The
 * capsule keeps the block until the consumer has had enough.
 */
#include "py.h"

#include <stdlib.h>

#define DL_CPU	     1
#define DL_READ_ONLY 1u
#define DL_MAJOR     1

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

static void fill(struct dl *dl, struct dl_tensor *out, const struct py_array *array,
		 const struct py_dtype *dtype)
{
	int64_t stride = 1;

	*out = (struct dl_tensor){
		.data = (void *)array->data,
		.device_type = DL_CPU,
		.ndim = (int32_t)array->rank,
		.code = dtype->code,
		.bits = (uint8_t)(dtype->size * 8),
		.lanes = 1,
		.shape = dl->shape,
		.strides = dl->strides,
	};
	for (uint32_t i = array->rank; i-- > 0;) {
		dl->shape[i] = array->dims[i];
		dl->strides[i] = stride;
		stride *= array->dims[i];
	}
}

/* Can the consumer take "dltensor_versioned"? -1: an exception. */
static int wants_versioned(PyObject *version)
{
	PyObject *major;
	long number;

	if (version == Py_None)
		return 0;
	major = PySequence_GetItem(version, 0);
	if (!major)
		return -1;
	number = PyLong_AsLong(major);
	Py_DECREF(major);
	return PyErr_Occurred() ? -1 : number >= DL_MAJOR;
}

static int is_cpu(PyObject *device)
{
	PyObject *type;
	long number;

	if (device == Py_None)
		return 1;
	type = PySequence_GetItem(device, 0);
	if (!type)
		return 0;
	number = PyLong_AsLong(type);
	Py_DECREF(type);
	if (!PyErr_Occurred() && number != DL_CPU)
		PyErr_SetString(PyExc_BufferError, "samples are in the CPU's memory");
	return !PyErr_Occurred();
}

/* Return: as wants_versioned(). */
static int parse(PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream, *version = Py_None, *device = Py_None, *copy = Py_None;
	int truth;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names,
					 &stream, &version, &device, &copy))
		return -1;
	truth = PyObject_IsTrue(copy);
	if (truth > 0)
		PyErr_SetString(PyExc_BufferError, "samples are not copied");
	return truth || !is_cpu(device) ? -1 : wants_versioned(version);
}

PyObject *py_dlpack(const struct py_array *array, PyObject *args, PyObject *kwargs)
{
	const struct py_dtype *dtype = py_dtype(array->dtype);
	const int versioned = dtype ? parse(args, kwargs) : -1;
	PyObject *capsule;
	struct dl *dl;

	if (versioned < 0 || !py_block_check(array->block))
		return NULL;
	if (!versioned && array->block->readonly) {
		PyErr_SetString(PyExc_BufferError,
				"read-only memory needs DLPack 1.0 or newer");
		return NULL;
	}
	dl = calloc(1, sizeof(*dl));
	if (!dl)
		return PyErr_NoMemory();
	dl->block = array->block;
	py_block_ref(array->block, 1);
	if (versioned) {
		dl->versioned = (struct dl_versioned){
			.major = DL_MAJOR,
			.context = dl,
			.deleter = delete_versioned,
			.flags = array->block->readonly ? DL_READ_ONLY : 0,
		};
		fill(dl, &dl->versioned.tensor, array, dtype);
	} else {
		dl->managed.context = dl;
		dl->managed.deleter = delete_managed;
		fill(dl, &dl->managed.tensor, array, dtype);
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
