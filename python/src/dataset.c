/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - Dataset: one snapshot, or a part of it, as a sequence of samples
 *
 * What is worth a line of C: opening, and everything on the way of a sample. The rest of
 * the class is in about.c and stele/dataset.py.
 */
#include "py.h"

#include <stdlib.h>

struct dataset {
	struct py_core *core; /* under py_lock; NULL: closed */
	struct py_selection selection;
	_Atomic(uint64_t *) sorted; /* its ids, once a key was looked for; NULL: none was */
};

static struct dataset *dataset_of(PyObject *self)
{
	return py_data(self);
}

/* ---- open and close ---------------------------------------------------------------- */

struct py_core *py_dataset_enter(PyObject *self)
{
	struct py_core *core;

	pthread_mutex_lock(&py_lock);
	core = dataset_of(self)->core;
	if (core) {
		py_core_ref(core);
		atomic_fetch_add(&core->handles, 1);
	}
	pthread_mutex_unlock(&py_lock);
	if (!core)
		PyErr_SetString(PyExc_ValueError, "the dataset is closed");
	return core;
}

void py_dataset_leave(struct py_core *core)
{
	py_log_tell(&core->log);
	if (atomic_load(&core->handles) > 1) {
		py_core_handle_close(core);
		return;
	}
	Py_BEGIN_ALLOW_THREADS
	py_core_handle_close(core);
	Py_END_ALLOW_THREADS
}

struct py_core *py_dataset_core(struct py_state *state, PyObject *dataset,
				const struct py_selection **selection)
{
	struct py_core *core;

	/* By its type, whatever its __class__ says. */
	if (!PyObject_TypeCheck(dataset, state->dataset)) {
		PyErr_Format(PyExc_TypeError, "expected a Dataset, not %R",
			     Py_TYPE(dataset));
		return NULL;
	}
	core = py_dataset_enter(dataset);
	if (!core)
		return NULL;
	*selection = &dataset_of(dataset)->selection;
	py_core_ref(core);
	py_dataset_leave(core);
	return core;
}

static PyObject *dataset_make(PyTypeObject *type, struct py_core *core,
			      const struct py_selection *selection)
{
	PyObject *self = py_object_new(type);

	if (!self)
		return NULL;
	atomic_fetch_add(&core->handles, 1);
	*dataset_of(self) = (struct dataset){.core = py_core_ref(core),
					     .selection = *selection};
	return self;
}

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"target", "verify", "backend", "mmap", NULL};
	struct py_state *state = py_state();
	const char *backend = NULL;
	struct py_core *core;
	unsigned int verify = STELE_VERIFY_DEFAULT;
	struct py_selection all = {0};
	int mmap = 0, err;
	PyObject *target, *self;

	if (!state ||
	    !PyArg_ParseTupleAndKeywords(args, kwargs, "O&|Izp:Dataset", names,
					 PyUnicode_FSConverter, &target, &verify,
					 &backend, &mmap))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = py_core_open(PyBytes_AsString(target), verify, backend, mmap, &core);
	Py_END_ALLOW_THREADS
	self = err ? py_raise(err, NULL) : NULL;
	Py_DECREF(target);
	if (!core)
		return NULL;
	py_log_tell(&core->log);
	if (!err) {
		core->state = state;
		all.count = core->info.sample_count;
		self = dataset_make(type, core, &all);
	}
	py_core_unref(core);
	return self;
}

/* Idempotent. */
static void close_dataset(PyObject *self)
{
	struct py_core *core;

	pthread_mutex_lock(&py_lock);
	core = dataset_of(self)->core;
	dataset_of(self)->core = NULL;
	pthread_mutex_unlock(&py_lock);
	if (core)
		py_dataset_leave(core);
}

static PyObject *dataset_close(PyObject *self, PyObject *unused)
{
	(void)unused;
	close_dataset(self);
	Py_RETURN_NONE;
}

static void dataset_dealloc(PyObject *self)
{
	struct dataset *dataset = dataset_of(self);
	uint64_t *sorted = atomic_load(&dataset->sorted);

	close_dataset(self);
	if (sorted != dataset->selection.ids)
		free(sorted);
	py_selection_release(&dataset->selection);
	py_object_free(self);
}

/* ---- samples --------------------------------------------------------------------------- */

/* The first that failed becomes an exception. */
static int check_block(PyObject *self, const struct py_block *block, PyObject *key)
{
	for (size_t i = 0; i < block->count; i++) {
		const struct stele_sample *sample = &block->entries[i].sample;

		if (sample->status) {
			py_raise_sample(sample->status, sample->id, key, self,
					block->core);
			return -1;
		}
	}
	return 0;
}

static PyObject *read_one(PyObject *self, struct py_core *core, uint64_t id,
			  PyObject *key)
{
	struct py_block *block = py_read(core, &id, 1);

	if (!block)
		return NULL;
	if (check_block(self, block, key)) {
		py_block_unref(block);
		return NULL;
	}
	return py_sample_new(core->state, &block->entries[0]);
}

static PyObject *read_many(PyObject *self, struct py_core *core,
			   const struct py_selection *which)
{
	uint64_t *ids = which->ids;
	struct py_block *block;
	PyObject *list = NULL;

	if (!ids) {
		if (which->count > SIZE_MAX / sizeof(*ids))
			return PyErr_NoMemory();
		ids = malloc(which->count * sizeof(*ids) + 1);
		for (uint64_t i = 0; ids && i < which->count; i++)
			ids[i] = which->first + i;
	}
	if (!ids)
		return PyErr_NoMemory();
	block = py_read(core, ids, which->count);
	if (ids != which->ids)
		free(ids);
	if (!block)
		return NULL;
	if (!check_block(self, block, NULL))
		list = py_sample_list(core->state, block);
	py_block_unref(block);
	return list;
}

/* Without the GIL: is it one of the dataset? Return: 0; -ENOENT; -ENOMEM. */
static int check_id(struct dataset *dataset, uint64_t id)
{
	const struct py_selection *selection = &dataset->selection;
	uint64_t *sorted = atomic_load(&dataset->sorted), *found = NULL;

	if (selection->ids && !sorted) {
		sorted = py_selection_sort(selection);
		if (!sorted)
			return -ENOMEM;
		if (!atomic_compare_exchange_strong(&dataset->sorted, &found, sorted)) {
			if (sorted != selection->ids)
				free(sorted);
			sorted = found; /* of another thread */
		}
	}
	return py_selection_has(selection, sorted, id) ? 0 : -ENOENT;
}

/* Return: 0; -1 with an exception. */
static int find(PyObject *self, struct py_core *core, PyObject *key, uint64_t *id)
{
	PyObject *bytes = py_key_bytes(key);
	Py_ssize_t size;
	char *data;
	int err;

	if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &size)) {
		Py_XDECREF(bytes);
		return -1;
	}
	Py_BEGIN_ALLOW_THREADS
	err = size && size <= STELE_KEY_SIZE_MAX ?
		      stele_dataset_lookup(core->ds, data, (size_t)size, id) :
		      -ENOENT;
	if (!err)
		err = check_id(dataset_of(self), *id);
	Py_END_ALLOW_THREADS
	Py_DECREF(bytes);
	if (err == -ENOENT)
		py_raise_sample(err, PY_NO_ID, key, self, core);
	else if (err) /* of the keys, not of this one */
		py_raise(err, NULL);
	return err ? -1 : 0;
}

static PyObject *dataset_subscript(PyObject *self, PyObject *which)
{
	struct py_core *core = py_dataset_enter(self);
	struct py_selection picked;
	PyObject *out = NULL;
	uint64_t id;

	if (!core)
		return NULL;
	if (PyUnicode_Check(which) || PyBytes_Check(which)) {
		if (!find(self, core, which, &id))
			out = read_one(self, core, id, which);
	} else if (py_selection_is_index(which)) {
		if (!py_selection_index(&dataset_of(self)->selection, which, &id))
			out = read_one(self, core, id, NULL);
	} else if (!py_selection_pick(&dataset_of(self)->selection, which,
				      "samples are selected by int, key, slice, or a "
				      "sequence of int or bool",
				      &picked)) {
		out = read_many(self, core, &picked);
		py_selection_release(&picked);
	}
	py_dataset_leave(core);
	return out;
}

static Py_ssize_t dataset_length(PyObject *self)
{
	return (Py_ssize_t)dataset_of(self)->selection.count;
}

static PyObject *dataset_find(PyObject *self, PyObject *key)
{
	struct py_core *core = py_dataset_enter(self);
	uint64_t id = 0;
	int err;

	if (!core)
		return NULL;
	err = find(self, core, key, &id);
	py_dataset_leave(core);
	return err ? NULL : PyLong_FromUnsignedLongLong(id);
}

/* ---- parts of it, and keys ----------------------------------------------------------------- */

static PyObject *dataset_select(PyObject *self, PyObject *which)
{
	struct py_core *core = py_dataset_enter(self);
	struct py_selection picked;
	PyObject *part = NULL;

	if (!core)
		return NULL;
	if (!py_selection_pick(&dataset_of(self)->selection, which,
			       "subset() takes a slice, a sequence of int or bool, or "
			       "prefix=", &picked)) {
		part = dataset_make(Py_TYPE(self), core, &picked);
		if (!part)
			py_selection_release(&picked);
	}
	py_dataset_leave(core);
	return part;
}

/* The ids of a part, as bytes of uint64; None: a range, which is (first, count). */
static PyObject *dataset_ids(PyObject *self, PyObject *unused)
{
	const struct py_selection *s = &dataset_of(self)->selection;

	(void)unused;
	if (!s->ids)
		return Py_BuildValue("(KK)", (unsigned long long)s->first,
				     (unsigned long long)s->count);
	return PyByteArray_FromStringAndSize((const char *)s->ids,
					     (Py_ssize_t)(s->count * sizeof(*s->ids)));
}

/* Is this id of the snapshot one of the dataset? Also after close(). */
static PyObject *dataset_has(PyObject *self, PyObject *id)
{
	const uint64_t number = PyLong_AsUnsignedLongLong(id);
	int err;

	if (PyErr_Occurred())
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = check_id(dataset_of(self), number);
	Py_END_ALLOW_THREADS
	return err == -ENOMEM ? PyErr_NoMemory() : PyBool_FromLong(!err);
}

static PyObject *dataset_is_whole(PyObject *self, PyObject *unused)
{
	const struct py_selection *s = &dataset_of(self)->selection;
	struct py_core *core = py_dataset_enter(self);
	int whole;

	(void)unused;
	if (!core)
		return NULL;
	whole = !s->ids && s->count == core->info.sample_count;
	py_dataset_leave(core);
	return PyBool_FromLong(whole);
}

static PyObject *dataset_keys(PyObject *self, PyObject *prefix)
{
	struct py_core *core = py_dataset_enter(self);
	PyObject *keys;

	if (!core)
		return NULL;
	keys = py_keys_new(core, prefix);
	py_dataset_leave(core);
	return keys;
}

static PyMethodDef methods[] = {
	{"close", dataset_close, METH_NOARGS,
	 "close($self, /)\n--\n\n"
	 "Stop reading, after what is in flight. Samples that were read stay valid, and the\n"
	 "target open, for who asks whether it is in use, until the last of them is gone.\n"
	 "Also at the end of a with statement."},
	{"__getitems__", dataset_subscript, METH_O,
	 "__getitems__($self, indices, /)\n--\n\n"
	 "Several samples in one submission, as a list in the order of indices."},
	{"_getitems", dataset_subscript, METH_O, "__getitems__ as Grain calls it."},
	{"find", dataset_find, METH_O,
	 "find($self, key, /)\n--\n\n"
	 "The id, in the snapshot, of the sample with this key. stele.NotFound: there is none,\n"
	 "or it is not of this subset."},
	{"_select", dataset_select, METH_O, NULL},
	{"_ids", dataset_ids, METH_NOARGS, NULL},
	{"_has", dataset_has, METH_O, NULL},
	{"_is_whole", dataset_is_whole, METH_NOARGS, NULL},
	{"_keys", dataset_keys, METH_O, NULL},
	{"_fields", py_dataset_fields, METH_NOARGS, NULL},
	{"_info", py_dataset_info, METH_NOARGS, NULL},
	{"_stats", py_dataset_stats, METH_NOARGS, NULL},
	{"_key", py_dataset_key, METH_O, NULL},
	{"_column", py_dataset_column, METH_O, NULL},
	{"_where", py_dataset_where, METH_O, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_new, dataset_new},
	{Py_tp_dealloc, dataset_dealloc},
	{Py_mp_length, dataset_length},
	{Py_sq_length, dataset_length},
	{Py_mp_subscript, dataset_subscript},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_dataset_spec = {
	.name = "stele._stele.Dataset",
	.basicsize = PY_SIZE(struct dataset),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = slots,
};
