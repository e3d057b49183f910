/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.c - Shuffle: the library's order of an epoch, for samplers
 *
 * Nothing is kept of an order but its parameters: any place in it is reached at once. An
 * order belongs to one thread at a time, so a lock goes with it; it is taken without
 * the GIL.
 */
#include "py.h"

#define TAKE_MAX (UINT64_C(1) << 24) /* positions at once: 128 MiB of them */

struct shuffle {
	pthread_mutex_t lock;
	struct stele_shuffle *order;
	uint64_t count;
};

static struct shuffle *shuffle_of(PyObject *self)
{
	return py_data(self);
}

static PyObject *shuffle_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"count", "seed", "epoch", "kind", "block_size",
				"block_count", NULL};
	struct stele_shuffle_opts opts = {.size = sizeof(opts)};
	unsigned long long count, seed, epoch, block_size;
	struct stele_shuffle *order;
	PyObject *self;
	int err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKKIKI:Shuffle", names,
					 &count, &seed, &epoch, &opts.kind,
					 &block_size, &opts.block_count))
		return NULL;
	opts.seed = seed;
	opts.epoch = epoch;
	opts.block_size = block_size;
	err = stele_shuffle_open(count, &opts, &order);
	if (err)
		return py_raise(err, NULL);
	self = py_object_new(type);
	if (!self) {
		stele_shuffle_close(order);
		return NULL;
	}
	pthread_mutex_init(&shuffle_of(self)->lock, NULL);
	shuffle_of(self)->order = order;
	shuffle_of(self)->count = count;
	return self;
}

static void shuffle_dealloc(PyObject *self)
{
	stele_shuffle_close(shuffle_of(self)->order);
	pthread_mutex_destroy(&shuffle_of(self)->lock);
	py_object_free(self);
}

/* Every step-th position from `first` on, wrapping around at the end, as bytes of uint64. */
static PyObject *shuffle_take(PyObject *self, PyObject *args)
{
	struct shuffle *shuffle = shuffle_of(self);
	unsigned long long first, step, count;
	uint64_t *ids, position;
	PyObject *bytes;

	if (!PyArg_ParseTuple(args, "KKK:take", &first, &step, &count))
		return NULL;
	if (count > TAKE_MAX) {
		PyErr_SetString(PyExc_ValueError, "too many positions at once");
		return NULL;
	}
	bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(*ids)));
	if (!bytes)
		return NULL;
	ids = (uint64_t *)(void *)PyByteArray_AsString(bytes);
	position = first % shuffle->count;
	step %= shuffle->count;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&shuffle->lock);
	for (uint64_t i = 0; i < count; i++) {
		ids[i] = stele_shuffle_at(shuffle->order, position);
		position += step; /* both are below 2^62 */
		if (position >= shuffle->count)
			position -= shuffle->count;
	}
	pthread_mutex_unlock(&shuffle->lock);
	Py_END_ALLOW_THREADS
	return bytes;
}

static PyMethodDef methods[] = {
	{"take", shuffle_take, METH_VARARGS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_new, shuffle_new},
	{Py_tp_dealloc, shuffle_dealloc},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_shuffle_spec = {
	.name = "stele._stele.Shuffle",
	.basicsize = PY_SIZE(struct shuffle),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
