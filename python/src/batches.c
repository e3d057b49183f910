/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.c - the iterator over one epoch of a Loader
 *
 * A batch is counted in the very call that returns it, after all that may raise: the
 * transform, and signal handlers, which are looked for once more. Nothing of Python runs
 * between counting and the return. The other way round, what was not returned is not
 * counted, and whatever failed, the next call goes on behind it.
 *
 * A loader has one place, so it serves one iterator: the one that began last. Any other
 * would take from an epoch that is not its own, and is told so. Several threads may share
 * that one: the loader's lock lets one at a time look whether it is over, and take.
 */
#include "py.h"

#include <endian.h>
#include <poll.h>

struct batches {
	PyObject *loader, *transform; /* NULL: none */
	uint64_t turn; /* of the loader, with its lock; 0: not begun */
	atomic_int over; /* set with the lock of the loader, once and for all */
};

/* What an iterator may find, beside negative errno. */
enum { END, TAKEN, OUTDATED };

/* What the library's state has after the word of version and digest. */
enum place { SEED = 8, EPOCH = 16, POSITION = 24 };

static uint64_t place_get(const uint8_t *place, enum place what)
{
	uint64_t value;

	memcpy(&value, place + what, sizeof(value));
	return le64toh(value);
}

static void place_set(uint8_t *place, enum place what, uint64_t value)
{
	value = htole64(value);
	memcpy(place + what, &value, sizeof(value));
}

PyObject *py_batches_new(struct py_state *state, PyObject *loader, PyObject *transform)
{
	PyObject *self = py_object_new(state->batches);
	struct batches *b;

	if (!self)
		return NULL;
	b = py_data(self);
	b->loader = Py_NewRef(loader);
	b->transform = transform == Py_None ? NULL : Py_NewRef(transform);
	return self;
}

static int batches_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct batches *b = py_data(self);

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(b->loader);
	Py_VISIT(b->transform);
	return 0;
}

static void batches_dealloc(PyObject *self)
{
	struct batches *b = py_data(self);

	PyObject_GC_UnTrack(self);
	Py_CLEAR(b->loader);
	Py_CLEAR(b->transform);
	py_object_free(self);
}

/* ---- begin ------------------------------------------------------------------------------ */

static int is_outdated(const struct batches *b, const struct py_lender *l)
{
	return b->turn != l->turn;
}

/* With the lock: is there nothing more to wait for? */
static int is_done(const struct batches *b, const struct py_lender *l)
{
	return atomic_load(&b->over) || is_outdated(b, l);
}

/*
 * With the lock: the next epoch, unless the loader was just placed. As long as nothing was
 * taken from it, whoever iterates again gets the same one.
 */
static int begin(struct batches *b, struct py_lender *l)
{
	uint8_t place[STELE_LOADER_STATE_SIZE];
	uint64_t epoch;
	int err = 0;

	if (b->turn)
		return 0;
	if (!l->fresh) {
		stele_loader_save(l->loader, place);
		epoch = place_get(place, EPOCH);
		if (epoch == UINT64_MAX)
			return -EOVERFLOW;
		place_set(place, EPOCH, epoch + 1);
		place_set(place, POSITION, 0);
		err = py_lender_restore(l, place);
	}
	if (!err)
		b->turn = ++l->turn;
	return err;
}

/* For who waits by himself for what next() returns: is there anything to wait for? */
static PyObject *batches_begin(PyObject *self, PyObject *unused)
{
	struct batches *b = py_data(self);
	struct py_lender *l;
	int done, err;

	(void)unused;
	if (atomic_load(&b->over))
		return Py_NewRef(Py_False);
	l = py_loader_enter(b->loader);
	if (!l)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&l->lock);
	err = begin(b, l);
	done = is_done(b, l);
	pthread_mutex_unlock(&l->lock);
	Py_END_ALLOW_THREADS
	py_loader_leave(l);
	return err ? py_raise(err, NULL) : PyBool_FromLong(!done);
}

/* ---- take ------------------------------------------------------------------------------- */

/*
 * Wait for a batch, with the lock and without the GIL; signal handlers run without the
 * lock, and may use the loader, even iterate. Return: 0; -1 with an exception.
 */
static int wait_for_batch(const struct batches *b, struct py_lender *l,
			  PyThreadState **thread)
{
	struct pollfd fd = {.fd = l->fd, .events = POLLIN};
	int ready;

	while (!is_done(b, l) &&
	       (!(ready = poll(&fd, 1, (int)(PY_WAIT_NS / 1000000))) ||
		(ready < 0 && errno == EINTR))) {
		int interrupted;

		pthread_mutex_unlock(&l->lock);
		PyEval_RestoreThread(*thread);
		interrupted = PyErr_CheckSignals();
		*thread = PyEval_SaveThread();
		pthread_mutex_lock(&l->lock);
		if (interrupted)
			return -1;
	}
	return 0;
}

/* Which sample an error is about. */
struct failed {
	uint64_t id; /* PY_NO_ID: it is about none */
	const struct py_core *core; /* of the lender */
	size_t key_size; /* 0: the key cannot be read */
	char key[STELE_KEY_SIZE_MAX];
};

static void name_failed(struct py_lender *l, const struct stele_batch *batch,
			struct failed *failed)
{
	failed->id = batch->failed_id;
	failed->key_size = 0;
	if (failed->id == PY_NO_ID)
		return;
	failed->core = l->cores[batch->failed_source];
	if (stele_dataset_key(failed->core->ds, failed->id, failed->key, &failed->key_size))
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
		py_raise_sample(error, failed->id, key, NULL, failed->core);
	Py_XDECREF(key);
}

/* What came from the library. */
struct found {
	struct py_taken taken;
	struct py_batch_info info;
	struct py_block *block; /* NULL: no memory */
	struct failed failed;
};

/* With the lock. Return: TAKEN; END; OUTDATED; negative errno, `failed` is set. */
static int take(struct batches *b, struct py_lender *l, struct found *found)
{
	struct stele_batch batch = {.size = sizeof(batch)};
	uint8_t place[STELE_LOADER_STATE_SIZE];
	int ret;

	if (atomic_load(&b->over)) /* another thread found that, and the loader is behind it */
		return END;
	if (is_outdated(b, l))
		return OUTDATED;
	stele_loader_save(l->loader, place);
	ret = stele_loader_next(l->loader, &batch);
	if (!ret) {
		py_lender_place(l);
		atomic_store(&b->over, 1);
	}
	if (ret < 0)
		name_failed(l, &batch, &found->failed);
	if (ret > 0 || batch.failed_id != PY_NO_ID)
		py_lender_take(l, &found->taken);
	if (ret <= 0)
		return ret;
	found->info = (struct py_batch_info){
		.epoch = batch.epoch,
		.step = place_get(place, POSITION) / l->step_size + l->worker,
		.padded = batch.padded,
		.skipped = batch.skipped,
		.number = found->taken.number,
	};
	found->block = py_lender_lend(l, &batch);
	return TAKEN;
}

static void raise_outdated(void)
{
	PyErr_SetString(PyExc_RuntimeError,
			"a later iteration of this Loader has begun, and it reads one epoch "
			"at a time: open a Loader for each loop");
}

/* A Batch; NULL without an exception: the epoch is over. */
static PyObject *take_batch(struct batches *b, struct py_lender *l, struct py_taken *taken)
{
	struct found found = {.failed.id = PY_NO_ID};
	PyThreadState *thread = PyEval_SaveThread();
	int interrupted = 0, ret;

	pthread_mutex_lock(&l->lock);
	py_lender_collect(l);
	ret = begin(b, l);
	if (!ret) {
		interrupted = wait_for_batch(b, l, &thread);
		if (!interrupted)
			ret = take(b, l, &found);
	}
	pthread_mutex_unlock(&l->lock);
	PyEval_RestoreThread(thread);
	if (ret < 0)
		raise_failed(ret, &found.failed);
	else if (ret == OUTDATED)
		raise_outdated();
	if (ret != TAKEN)
		return NULL;
	*taken = found.taken;
	return found.block ? py_batch_new(l->state, found.block, &found.info) :
			     PyErr_NoMemory();
}

/* ---- next --------------------------------------------------------------------------------- */

static PyObject *transformed(const struct batches *b, PyObject *batch)
{
	PyObject *out;

	if (!batch || !b->transform)
		return batch;
	out = PyObject_CallFunctionObjArgs(b->transform, batch, NULL);
	Py_DECREF(batch);
	return out;
}

/* What ends an iteration is its end alone, as in generators. */
static void no_stop(void)
{
	PyObject *type, *value, *traceback, *cause;

	if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_StopIteration))
		return;
	PyErr_Fetch(&type, &cause, &traceback);
	PyErr_NormalizeException(&type, &cause, &traceback);
	Py_XDECREF(type);
	Py_XDECREF(traceback);
	PyErr_SetString(PyExc_RuntimeError, "the transform raised StopIteration");
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	PyException_SetCause(value, cause); /* takes it over */
	PyErr_Restore(type, value, traceback);
}

static PyObject *batches_next(PyObject *self)
{
	struct batches *b = py_data(self);
	struct py_taken taken;
	struct py_lender *l;
	PyObject *out;

	if (atomic_load(&b->over))
		return NULL;
	l = py_loader_enter(b->loader);
	if (!l)
		return NULL;
	out = take_batch(b, l, &taken);
	py_loader_leave(l);
	out = transformed(b, out);
	if (out && PyErr_CheckSignals())
		Py_CLEAR(out);
	if (out) /* the last thing to do */
		py_loader_count(b->loader, &taken);
	else
		no_stop();
	return out;
}

static PyMethodDef methods[] = {
	{"_begin", batches_begin, METH_NOARGS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "An iterator over the batches of one epoch."},
	{Py_tp_dealloc, batches_dealloc},
	{Py_tp_traverse, batches_traverse},
	{Py_tp_iter, PyObject_SelfIter},
	{Py_tp_iternext, batches_next},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_batches_spec = {
	.name = "stele._stele.Batches",
	.basicsize = PY_SIZE(struct batches),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
