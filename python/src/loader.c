/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - Loader: what goes through the library's loader, batch by batch
 *
 * The rest of the class is in stele/loader.py. A loader's lock is taken without the GIL,
 * and may be held while taking the GIL: nobody waits for it with the GIL in hand.
 */
#include "py.h"

#include <poll.h>
#include <stdlib.h>

struct loader {
	struct py_lender *lender; /* under py_lock; NULL: closed */
};

/* ---- life ---------------------------------------------------------------------------- */

/* With a reference; NULL: closed, an exception is set. */
static struct py_lender *enter(PyObject *self)
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

static void leave(struct py_lender *l)
{
	Py_BEGIN_ALLOW_THREADS
	py_lender_unref(l);
	Py_END_ALLOW_THREADS
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
		leave(l);
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
		"depth", "verify", "as_completed", "block_size", "block_count", NULL};
	unsigned long long seed, epoch, prefetch, epoch_size, block_size;

	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "O!IIKKIIIIKKIIIKI:Loader", names, &PyTuple_Type,
		    sources, &opts->batch_size, &opts->shuffle, &seed, &epoch,
		    &opts->rank, &opts->world, &opts->last, &opts->on_error,
		    &prefetch, &epoch_size, &opts->depth, &opts->verify,
		    &opts->as_completed, &block_size, &opts->block_count))
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
	l->fd = stele_loader_fd(l->loader);
	if (l->fd < 0)
		py_raise(l->fd, NULL);
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
	if (open_loader(l, sources, &opts))
		Py_CLEAR(self);
	return self;
}

/* ---- next --------------------------------------------------------------------------------- */

/* Wait for a batch, with the lock and without the GIL. Return: 0; -1 with an exception. */
static int wait_for_batch(struct py_lender *l, PyThreadState **thread)
{
	struct pollfd fd = {.fd = l->fd, .events = POLLIN};
	int ready;

	while (!(ready = poll(&fd, 1, (int)(PY_WAIT_NS / 1000000))) ||
	       (ready < 0 && errno == EINTR)) {
		int interrupted;

		PyEval_RestoreThread(*thread);
		interrupted = PyErr_CheckSignals();
		*thread = PyEval_SaveThread();
		if (interrupted)
			return -1;
	}
	return 0;
}

/* Which sample an error is about. */
struct failed {
	uint64_t id; /* PY_NO_ID: it is about none */
	size_t key_size; /* 0: the key cannot be read */
	char key[STELE_KEY_SIZE_MAX];
};

static void name_failed(struct py_lender *l, const struct stele_batch *batch,
			struct failed *failed)
{
	failed->id = batch->failed_id;
	failed->key_size = 0;
	if (failed->id != PY_NO_ID &&
	    stele_dataset_key(l->cores[batch->failed_source]->ds, failed->id,
			      failed->key, &failed->key_size))
		failed->key_size = 0;
}

static void raise_failed(int error, const struct failed *failed)
{
	PyObject *key = NULL;

	if (failed->key_size)
		key = PyBytes_FromStringAndSize(failed->key, (Py_ssize_t)failed->key_size);
	if (failed->id == PY_NO_ID)
		py_raise(error, NULL);
	else if (key || !failed->key_size)
		py_raise_sample(error, failed->id, key, NULL);
	Py_XDECREF(key);
}

/*
 * With the lock. Return: 1, a block (NULL: no memory); 0: the epoch is over; negative errno,
 * *failed is set.
 */
static int take(struct py_lender *l, struct py_block **block,
		struct py_batch_info *info, struct failed *failed)
{
	struct stele_batch batch = {.size = sizeof(batch)};
	int ret = stele_loader_next(l->loader, &batch);

	if (ret < 0)
		name_failed(l, &batch, failed);
	if (ret <= 0)
		return ret;
	*info = (struct py_batch_info){
		.epoch = batch.epoch,
		.step = batch.index,
		.padded = batch.padded,
		.skipped = batch.skipped,
	};
	*block = py_lender_lend(l, &batch);
	return 1;
}

/* A Batch, or None at the end of the epoch. */
static PyObject *loader_next(PyObject *self, PyObject *unused)
{
	struct py_lender *l = enter(self);
	struct py_batch_info info;
	struct py_block *block = NULL;
	struct failed failed;
	PyThreadState *thread;
	PyObject *out = NULL;
	int ret = 0, interrupted;

	(void)unused;
	if (!l)
		return NULL;
	thread = PyEval_SaveThread();
	pthread_mutex_lock(&l->lock);
	py_lender_collect(l);
	interrupted = wait_for_batch(l, &thread);
	if (!interrupted)
		ret = take(l, &block, &info, &failed);
	pthread_mutex_unlock(&l->lock);
	PyEval_RestoreThread(thread);
	if (ret < 0)
		raise_failed(ret, &failed);
	else if (ret > 0)
		out = block ? py_batch_new(l->state, block, &info) : PyErr_NoMemory();
	else if (!interrupted)
		out = Py_NewRef(Py_None);
	leave(l);
	return out;
}

/* ---- state ---------------------------------------------------------------------------------- */

static PyObject *loader_save(PyObject *self, PyObject *unused)
{
	struct py_lender *l = enter(self);
	uint8_t state[STELE_LOADER_STATE_SIZE];

	(void)unused;
	if (!l)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&l->lock);
	stele_loader_save(l->loader, state);
	pthread_mutex_unlock(&l->lock);
	Py_END_ALLOW_THREADS
	leave(l);
	return PyBytes_FromStringAndSize((const char *)state, sizeof(state));
}

static PyObject *loader_restore(PyObject *self, PyObject *state)
{
	struct py_lender *l = enter(self);
	int err = -EINVAL;

	if (!l)
		return NULL;
	if (PyBytes_Check(state) && PyBytes_Size(state) == STELE_LOADER_STATE_SIZE) {
		const uint8_t *bytes = (const uint8_t *)PyBytes_AsString(state);

		Py_BEGIN_ALLOW_THREADS
		pthread_mutex_lock(&l->lock);
		py_lender_collect(l);
		err = stele_loader_restore(l->loader, bytes);
		pthread_mutex_unlock(&l->lock);
		Py_END_ALLOW_THREADS
	}
	leave(l);
	if (err == -EINVAL)
		PyErr_SetString(PyExc_ValueError, "this is not the state of a loader");
	else if (err)
		py_raise(err, NULL);
	return err ? NULL : Py_NewRef(Py_None);
}

static PyObject *loader_stats(PyObject *self, PyObject *unused)
{
	struct py_lender *l = enter(self);
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
	leave(l);
	return dict;
}

static PyObject *loader_figure(PyObject *self, void *which)
{
	struct py_lender *l = enter(self);
	uint64_t value;

	if (!l)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&l->lock);
	value = which ? (uint64_t)l->fd : stele_loader_remaining(l->loader);
	pthread_mutex_unlock(&l->lock);
	Py_END_ALLOW_THREADS
	leave(l);
	return PyLong_FromUnsignedLongLong(value);
}

static Py_ssize_t loader_length(PyObject *self)
{
	struct py_lender *l = enter(self);
	Py_ssize_t steps;

	if (!l)
		return -1;
	steps = (Py_ssize_t)l->steps;
	leave(l);
	return steps;
}

static PyMethodDef methods[] = {
	{"close", loader_close, METH_NOARGS,
	 "close($self, /)\n--\n\nStop reading ahead; the end of a with statement does it. "
	 "Batches in hand stay valid."},
	{"_next", loader_next, METH_NOARGS, NULL},
	{"_save", loader_save, METH_NOARGS, NULL},
	{"_restore", loader_restore, METH_O, NULL},
	{"_stats", loader_stats, METH_NOARGS, NULL},
	{0},
};

static PyGetSetDef members[] = {
	{"remaining", loader_figure, NULL, "Batches left in this epoch.", NULL},
	{"_fd", loader_figure, NULL, NULL, (void *)1},
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
