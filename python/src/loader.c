/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - Loader: the library's loader, and where it is
 *
 * The rest of the class is in stele/loader.py, batches come by batches.c. A loader's lock
 * is taken without the GIL, and may be held while taking the GIL: nobody waits for it with
 * the GIL in hand.
 */
#include "py.h"

#include <stdlib.h>

struct loader {
	struct py_lender *lender; /* under py_lock; NULL: closed */
};

/* ---- life ---------------------------------------------------------------------------- */

struct py_lender *py_loader_enter(PyObject *self)
{
	struct loader *object = py_data(self);
	struct py_lender *l;

	pthread_mutex_lock(&py_lock);
	l = object->lender;
	if (l)
		py_lender_ref(l);
	pthread_mutex_unlock(&py_lock);
	if (!l)
		PyErr_SetString(PyExc_ValueError, "the loader is closed");
	if (l && l->generation != py_generation) { /* its lock may be taken for good */
		py_lender_unref(l);
		py_raise(-EOWNERDEAD,
			 "the loader was opened before a fork: open one in this process");
		return NULL;
	}
	return l;
}

void py_loader_leave(struct py_lender *l)
{
	py_log_tell(&l->log);
	for (uint32_t i = 0; i < l->core_count; i++)
		py_log_tell(&l->cores[i]->log);
	Py_BEGIN_ALLOW_THREADS
	py_lender_unref(l);
	Py_END_ALLOW_THREADS
}

void py_loader_count(PyObject *self, const struct py_taken *taken)
{
	struct loader *object = py_data(self);

	pthread_mutex_lock(&py_lock);
	if (object->lender)
		py_lender_count(object->lender, taken);
	pthread_mutex_unlock(&py_lock);
}

static void close_object(PyObject *self)
{
	struct loader *object = py_data(self);
	struct py_lender *l;

	pthread_mutex_lock(&py_lock);
	l = object->lender;
	object->lender = NULL;
	pthread_mutex_unlock(&py_lock);
	if (l)
		py_loader_leave(l);
}

static PyObject *loader_close(PyObject *self, PyObject *unused)
{
	(void)unused;
	close_object(self);
	Py_RETURN_NONE;
}

static void loader_dealloc(PyObject *self)
{
	close_object(self);
	py_object_free(self);
}

/* ---- open ------------------------------------------------------------------------------ */

/* Sources are tuples (Dataset, weight). */
static int add_source(struct py_lender *l, PyObject *tuple,
		      struct stele_loader_source *source)
{
	const struct py_selection *selection;
	struct py_core *core;
	PyObject *dataset;
	double weight;

	if (!PyArg_ParseTuple(tuple, "Od", &dataset, &weight))
		return -1;
	core = py_dataset_core(l->state, dataset, &selection);
	if (!core)
		return -1;
	l->cores[l->core_count++] = core;
	if (core->view) {
		PyErr_SetString(PyExc_ValueError,
				"a Loader reads past the page cache: open the dataset "
				"without mmap");
		return -1;
	}
	if (!selection->count) {
		PyErr_SetString(PyExc_ValueError, "a dataset without samples");
		return -1;
	}
	*source = (struct stele_loader_source){
		.ds = core->ds,
		.ids = selection->ids,
		.id_count = selection->ids ? selection->count : 0,
		.first = selection->first,
		.count = selection->ids ? 0 : selection->count,
		.weight = weight,
	};
	return 0;
}

static int add_sources(struct py_lender *l, PyObject *list,
		       struct stele_loader_source *sources)
{
	Py_ssize_t count = PyTuple_Size(list);
	int err = 0;

	for (Py_ssize_t i = 0; !err && i < count; i++) {
		PyObject *tuple = PySequence_GetItem(list, i);

		err = tuple ? add_source(l, tuple, &sources[i]) : -1;
		Py_XDECREF(tuple);
	}
	return err;
}

static int parse(PyObject *args, PyObject *kwargs, PyObject **sources,
		 struct stele_loader_opts *opts)
{
	static char *names[] = {
		"sources", "batch_size", "shuffle", "seed", "epoch", "rank",
		"world", "last", "on_error", "prefetch_size", "epoch_size",
		"depth", "verify", "as_completed", "block_size", "block_count", "worker",
		"workers", NULL};
	unsigned long long seed, epoch, prefetch, epoch_size, block_size;

	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "O!IIKKIIIIKKIIIKIII:Loader", names, &PyTuple_Type,
		    sources, &opts->batch_size, &opts->shuffle, &seed, &epoch,
		    &opts->rank, &opts->world, &opts->last, &opts->on_error,
		    &prefetch, &epoch_size, &opts->depth, &opts->verify,
		    &opts->as_completed, &block_size, &opts->block_count, &opts->worker,
		    &opts->workers))
		return -1;
	opts->seed = seed;
	opts->epoch = epoch;
	opts->prefetch_size = prefetch;
	opts->epoch_size = epoch_size;
	opts->block_size = block_size;
	opts->threads = 1;
	return 0;
}

static int open_loader(struct py_lender *l, PyObject *list,
		       struct stele_loader_opts *opts)
{
	struct stele_loader_source *sources;
	int err = -1;

	sources = calloc(l->core_count + (size_t)PyTuple_Size(list) + 1,
			 sizeof(*sources));
	if (!sources) {
		PyErr_NoMemory();
		return -1;
	}
	if (!add_sources(l, list, sources)) {
		Py_BEGIN_ALLOW_THREADS
		err = stele_loader_open(sources, l->core_count, opts, &l->loader);
		Py_END_ALLOW_THREADS
		if (err)
			py_raise(err, NULL);
	}
	free(sources);
	if (err)
		return -1;
	l->steps = stele_loader_remaining(l->loader);
	l->step_size = (uint64_t)(opts->batch_size ? opts->batch_size : 1) *
		       (opts->world ? opts->world : 1);
	l->worker = opts->worker;
	l->fd = stele_loader_fd(l->loader);
	if (l->fd < 0)
		py_raise(l->fd, NULL);
	else
		py_lender_place(l);
	return l->fd < 0 ? -1 : 0;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct stele_loader_opts opts = {.size = sizeof(opts)};
	struct py_state *state = py_state();
	PyObject *sources, *self;
	struct py_lender *l;

	if (!state || parse(args, kwargs, &sources, &opts))
		return NULL;
	self = py_object_new(type);
	if (!self)
		return NULL;
	l = py_lender_new((size_t)PyTuple_Size(sources));
	if (!l) {
		Py_DECREF(self);
		return PyErr_NoMemory();
	}
	l->state = state;
	((struct loader *)py_data(self))->lender = l;
	opts.log = py_log_add;
	opts.log_user = &l->log;
	if (open_loader(l, sources, &opts))
		Py_CLEAR(self); /* tells what was said */
	else
		py_log_tell(&l->log);
	return self;
}

/* ---- state ---------------------------------------------------------------------------------- */

/* Behind what was counted. Signal handlers may ask at any time: it waits for nobody. */
static PyObject *loader_save(PyObject *self, PyObject *unused)
{
	struct py_lender *l = py_loader_enter(self);
	uint8_t state[STELE_LOADER_STATE_SIZE];

	(void)unused;
	if (!l)
		return NULL;
	pthread_mutex_lock(&py_lock);
	memcpy(state, l->place, sizeof(state));
	pthread_mutex_unlock(&py_lock);
	py_loader_leave(l);
	return PyBytes_FromStringAndSize((const char *)state, sizeof(state));
}

/* Behind what was taken: what comes next. */
static PyObject *loader_next_place(PyObject *self, PyObject *unused)
{
	struct py_lender *l = py_loader_enter(self);
	uint8_t state[STELE_LOADER_STATE_SIZE];

	(void)unused;
	if (!l)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&l->lock);
	stele_loader_save(l->loader, state);
	pthread_mutex_unlock(&l->lock);
	Py_END_ALLOW_THREADS
	py_loader_leave(l);
	return PyBytes_FromStringAndSize((const char *)state, sizeof(state));
}

static PyObject *loader_restore(PyObject *self, PyObject *state)
{
	struct py_lender *l = py_loader_enter(self);
	int err = -EINVAL;

	if (!l)
		return NULL;
	if (PyBytes_Check(state) && PyBytes_Size(state) == STELE_LOADER_STATE_SIZE) {
		const uint8_t *bytes = (const uint8_t *)PyBytes_AsString(state);

		Py_BEGIN_ALLOW_THREADS
		pthread_mutex_lock(&l->lock);
		err = py_lender_restore(l, bytes);
		pthread_mutex_unlock(&l->lock);
		Py_END_ALLOW_THREADS
	}
	py_loader_leave(l);
	if (err == -EINVAL)
		PyErr_SetString(PyExc_ValueError, "this is not the state of a loader");
	else if (err)
		py_raise(err, NULL);
	return err ? NULL : Py_NewRef(Py_None);
}

static PyObject *loader_stats(PyObject *self, PyObject *unused)
{
	struct py_lender *l = py_loader_enter(self);
	struct stele_loader_stats stats = {.size = sizeof(stats)};
	struct stele_reader_stats reader = {.size = sizeof(reader)};
	PyObject *dict;

	(void)unused;
	if (!l)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&l->lock);
	py_lender_collect(l);
	stele_loader_stats(l->loader, &stats);
	stele_loader_reader_stats(l->loader, &reader);
	pthread_mutex_unlock(&l->lock);
	Py_END_ALLOW_THREADS
	dict = PyDict_New();
	if (dict && (py_report(dict, &reader, py_reader_report) ||
		     py_report(dict, &stats, py_loader_report) ||
		     py_report_u64(dict, "held_bytes", stats.held_size) ||
		     py_report_u64(dict, "held_batches", atomic_load(&l->lent))))
		Py_CLEAR(dict);
	py_loader_leave(l);
	return dict;
}

static PyObject *loader_iterate(PyObject *self, PyObject *transform)
{
	struct py_state *state = py_state();

	return state ? py_batches_new(state, self, transform) : NULL;
}

enum figure { REMAINING, DESCRIPTOR, FRESH };

static PyObject *loader_figure(PyObject *self, void *which)
{
	struct py_lender *l = py_loader_enter(self);
	uint64_t values[3];

	if (!l)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&l->lock);
	values[REMAINING] = stele_loader_remaining(l->loader);
	values[DESCRIPTOR] = (uint64_t)l->fd;
	values[FRESH] = (uint64_t)l->fresh;
	pthread_mutex_unlock(&l->lock);
	Py_END_ALLOW_THREADS
	py_loader_leave(l);
	return PyLong_FromUnsignedLongLong(values[(uintptr_t)which]);
}

static Py_ssize_t loader_length(PyObject *self)
{
	struct py_lender *l = py_loader_enter(self);
	Py_ssize_t steps;

	if (!l)
		return -1;
	steps = (Py_ssize_t)l->steps;
	py_loader_leave(l);
	return steps;
}

static PyMethodDef methods[] = {
	{"close", loader_close, METH_NOARGS,
	 "close($self, /)\n--\n\nStop reading ahead; the end of a with statement does it. "
	 "Batches in hand stay valid."},
	{"_iterate", loader_iterate, METH_O, NULL},
	{"_save", loader_save, METH_NOARGS, NULL},
	{"_next_place", loader_next_place, METH_NOARGS, NULL},
	{"_restore", loader_restore, METH_O, NULL},
	{"_stats", loader_stats, METH_NOARGS, NULL},
	{0},
};

static PyGetSetDef members[] = {
	{"remaining", loader_figure, NULL, "Batches left in this epoch.",
	 (void *)REMAINING},
	{"_fd", loader_figure, NULL, NULL, (void *)DESCRIPTOR},
	{"_fresh", loader_figure, NULL, NULL, (void *)FRESH},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_new, loader_new},
	{Py_tp_dealloc, loader_dealloc},
	{Py_mp_length, loader_length},
	{Py_sq_length, loader_length},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

PyType_Spec py_loader_spec = {
	.name = "stele._stele.Loader",
	.basicsize = PY_SIZE(struct loader),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = slots,
};
