/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - Writer: a transaction that samples are put into
 *
 * What is worth a line of C: every sample's way into the library. The rest of the class is
 * in stele/writer.py. One thread at a time has the transaction, by a lock that nobody waits
 * for with the GIL in hand. A child after fork() cannot use its parent's, nor end it: to
 * close it would remove an unfinished file.
 */
#include "py.h"

#include <stdlib.h>

struct writer {
	pthread_mutex_t lock;
	struct py_call call;
	struct stele_txn *txn; /* NULL: closed */
	atomic_int committed;
	unsigned int generation;
	/* Set once, count last, and then read without the lock. */
	atomic_uint column_count;
	struct py_column columns[STELE_FIELDS_MAX];
	/* For the thread that runs a call: */
	const char *target, *name, *note;
	int always;
	struct py_change open_opts;
	struct py_create create_opts;
	struct stele_put_opts put_opts;
	struct stele_build_report report;
	struct stele_snapshot_info snapshot;
};

struct object {
	struct writer *writer; /* never NULL once Python has it */
};

static struct writer *writer_of(PyObject *self)
{
	return ((struct object *)py_data(self))->writer;
}

/* ---- life ----------------------------------------------------------------------------- */

/* With the lock; NULL: closed or from before a fork, an exception is set. */
static struct writer *enter(PyObject *self)
{
	struct writer *w = writer_of(self);
	int err;

	if (w->generation != py_generation) {
		py_raise(-EOWNERDEAD, "the writer was opened before a fork");
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	err = pthread_mutex_lock(&w->lock);
	Py_END_ALLOW_THREADS
	if (err) { /* a callback of its own commit */
		PyErr_SetString(PyExc_ValueError, "the writer is in use");
		return NULL;
	}
	if (w->txn)
		return w;
	pthread_mutex_unlock(&w->lock);
	PyErr_SetString(PyExc_ValueError, "the writer is closed");
	return NULL;
}

static void leave(struct writer *w)
{
	pthread_mutex_unlock(&w->lock);
}

static void close_writer(struct writer *w)
{
	if (w->generation != py_generation)
		return;
	Py_BEGIN_ALLOW_THREADS
	if (!pthread_mutex_lock(&w->lock)) {
		stele_txn_close(w->txn);
		w->txn = NULL;
		pthread_mutex_unlock(&w->lock);
	}
	Py_END_ALLOW_THREADS
}

static PyObject *writer_close(PyObject *self, PyObject *unused)
{
	(void)unused;
	close_writer(writer_of(self));
	Py_RETURN_NONE;
}

/* Not so in a child after fork(): it is the parent's. Waits for nobody, and asks nobody else. */
static PyObject *writer_is_open(PyObject *self, PyObject *unused)
{
	const struct writer *w = writer_of(self);

	(void)unused;
	return PyBool_FromLong(w && w->generation == py_generation && w->txn);
}

static void writer_free(struct writer *w)
{
	close_writer(w);
	for (uint32_t i = 0; i < w->column_count; i++)
		py_column_release(&w->columns[i]);
	py_call_destroy(&w->call);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void writer_dealloc(PyObject *self)
{
	if (writer_of(self))
		writer_free(writer_of(self));
	py_object_free(self);
}

/* _tell(tell): what was said outside of calls that take long, such as by close(). */
static PyObject *writer_tell(PyObject *self, PyObject *tell)
{
	if (py_call_tell(&writer_of(self)->call, tell))
		return NULL;
	Py_RETURN_NONE;
}

/* ---- open ------------------------------------------------------------------------------ */

static int run_create(void *arg)
{
	struct writer *w = arg;
	int err = stele_txn_create(w->target, &w->create_opts.opts, &w->txn);

	return err || !w->create_opts.posix ? err : stele_txn_posix(w->txn, true);
}

static int run_open(void *arg)
{
	struct writer *w = arg;
	const uint64_t size = w->open_opts.size;
	int err = stele_txn_open(w->target, &w->open_opts.opts, &w->txn);

	return err || !size ? err : stele_txn_resize(w->txn, size, NULL);
}

static struct writer *make_writer(void)
{
	struct writer *w = calloc(1, sizeof(*w));
	pthread_mutexattr_t attributes;

	if (!w) {
		PyErr_NoMemory();
		return NULL;
	}
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&w->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	py_call_init(&w->call);
	w->call.quiet = 1; /* only a commit is not undone: see writer_late() */
	w->generation = py_generation;
	PY_CALL_LISTEN(&w->create_opts.opts, &w->call);
	PY_CALL_LISTEN(&w->open_opts.opts, &w->call);
	w->put_opts.size = sizeof(w->put_opts);
	return w;
}

/* Writer(target, new, options, tell) */
static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *options, *tell, *self;
	const char *target;
	struct writer *w;
	int new, err;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "ypO!O:Writer", &target, &new, &PyDict_Type,
			      &options, &tell))
		return NULL;
	self = py_object_new(type);
	if (!self)
		return NULL;
	w = make_writer();
	((struct object *)py_data(self))->writer = w;
	if (w) {
		w->target = target;
		err = new ? py_options_fill(&w->create_opts, PY_CREATE, options) :
			    py_options_fill(&w->open_opts, PY_CHANGE, options);
		if (!err && py_call(&w->call, new ? run_create : run_open, w,
				    tell) >= 0)
			return self;
	}
	Py_DECREF(self);
	return NULL;
}

static PyObject *writer_base(PyObject *self, PyObject *name)
{
	struct writer *w;
	char *text;
	int err;

	if (PyBytes_AsStringAndSize(name, &text, NULL))
		return NULL;
	w = enter(self);
	if (!w)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = stele_txn_base(w->txn, text);
	Py_END_ALLOW_THREADS
	if (err)
		py_raise(err, NULL);
	leave(w);
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

/* ---- schema ---------------------------------------------------------------------------- */

static int give_schema(struct writer *w, uint32_t count)
{
	struct stele_field fields[STELE_FIELDS_MAX];
	int err;

	for (uint32_t i = 0; i < count; i++)
		fields[i] = w->columns[i].field;
	Py_BEGIN_ALLOW_THREADS
	err = stele_txn_schema(
		w->txn, &STELE_OPTS(stele_schema, .fields = fields, .count = count),
		&w->put_opts);
	Py_END_ALLOW_THREADS
	if (err)
		py_raise(err, NULL);
	return err ? -1 : 0;
}

/* All of them or none. */
static int take_schema(struct writer *w, PyObject *list)
{
	const char **names[STELE_FIELDS_MAX] = {0};
	Py_ssize_t count = PyTuple_Size(list);
	int err = 0;

	if (w->column_count) {
		PyErr_SetString(PyExc_ValueError, "the writer has a schema");
		return -1;
	}
	if (count > STELE_FIELDS_MAX) {
		PyErr_Format(PyExc_ValueError, "a schema has at most %d fields, not %zd",
			     STELE_FIELDS_MAX, count);
		return -1;
	}
	for (Py_ssize_t i = 0; !err && i < count; i++)
		err = py_column_take(&w->columns[i], PyTuple_GetItem(list, i),
				     &names[i]);
	if (!err)
		err = give_schema(w, (uint32_t)count);
	for (Py_ssize_t i = 0; i < count; i++) {
		free(names[i]);
		if (err)
			py_column_release(&w->columns[i]);
	}
	if (!err)
		atomic_store(&w->column_count, (unsigned int)count);
	return err;
}

/* _schema(fields, options) */
static PyObject *writer_schema(PyObject *self, PyObject *args)
{
	PyObject *list, *options;
	struct writer *w;
	int err;

	if (!PyArg_ParseTuple(args, "O!O!:_schema", &PyTuple_Type, &list,
			      &PyDict_Type, &options))
		return NULL;
	w = enter(self);
	if (!w)
		return NULL;
	err = py_options_fill(&w->put_opts, PY_PUT, options);
	if (!err)
		err = take_schema(w, list);
	leave(w);
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

/* ---- samples --------------------------------------------------------------------------- */

static int put(const struct writer *w, PyObject *key, const struct py_row *row)
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
	err = stele_txn_put(w->txn, data, (size_t)size, row->values, row->count);
	Py_END_ALLOW_THREADS
	Py_DECREF(bytes);
	/* What is not there is the directory of the temporary file. */
	if (err == -ENOENT)
		py_raise(err, NULL);
	else if (err)
		py_raise_key(err, key);
	return err ? -1 : 0;
}

/* Bytes of a sample that was put. */
static PyObject *size_of(const struct py_row *row)
{
	unsigned long long size = 0;

	for (uint32_t i = 0; i < row->count; i++)
		size += row->values[i].size;
	return PyLong_FromUnsignedLongLong(size);
}

/* _put(key, sample) -> bytes */
static PyObject *writer_put(PyObject *self, PyObject *args)
{
	PyObject *key, *sample, *size = NULL;
	struct writer *w = writer_of(self);
	struct py_row row;

	if (!PyArg_ParseTuple(args, "OO:_put", &key, &sample))
		return NULL;
	if (!py_row_take(&row, w->columns, w->column_count, sample)) {
		w = enter(self);
		if (w && !put(w, key, &row))
			size = size_of(&row);
		if (w)
			leave(w);
	}
	py_row_release(&row);
	return size;
}

static PyObject *writer_delete(PyObject *self, PyObject *key)
{
	struct writer *w = enter(self);
	struct stele_key_ref ref;
	PyObject *bytes;
	Py_ssize_t size;
	char *data;
	int err = -1;

	if (!w)
		return NULL;
	bytes = py_key_bytes(key);
	if (bytes && !PyBytes_AsStringAndSize(bytes, &data, &size)) {
		ref = (struct stele_key_ref){data, (size_t)size};
		Py_BEGIN_ALLOW_THREADS
		err = stele_txn_delete(w->txn, &ref, 1);
		Py_END_ALLOW_THREADS
		if (err)
			py_raise_key(err, key);
	}
	Py_XDECREF(bytes);
	leave(w);
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

/* ---- the end ----------------------------------------------------------------------------- */

static int run_commit(void *arg)
{
	struct writer *w = arg;
	int err;

	w->report = (struct stele_build_report){.size = sizeof(w->report)};
	w->snapshot.size = sizeof(w->snapshot);
	err = stele_txn_flush(w->txn, &w->report);
	w->report.created |= w->always;
	if (!err && w->report.created)
		err = stele_txn_snapshot(w->txn, w->name, w->note, &w->snapshot);
	if (!err)
		err = stele_txn_commit(w->txn);
	atomic_store(&w->committed, !err);
	return err;
}

/* As two dictionaries, of which the first means nothing unless something was created. */
static PyObject *commit_report(const struct writer *w)
{
	PyObject *snapshot = PyDict_New(), *report = PyDict_New(), *both = NULL;

	if (snapshot && report && !py_report(snapshot, &w->snapshot, py_snapshot_report) &&
	    !py_report(report, &w->report, py_build_report))
		both = PyTuple_Pack(2, snapshot, report);
	Py_XDECREF(snapshot);
	Py_XDECREF(report);
	return both;
}

/* _commit(name, note, always, tell) -> (snapshot, report) */
static PyObject *writer_commit(PyObject *self, PyObject *args)
{
	PyObject *tell, *note, *both = NULL;
	const char *name;
	struct writer *w;
	int always;

	if (!PyArg_ParseTuple(args, "yOpO:_commit", &name, &note, &always, &tell))
		return NULL;
	w = enter(self);
	if (!w)
		return NULL;
	w->name = name;
	w->note = NULL;
	w->always = always;
	/* Without a size, bytes with NUL in them are refused. */
	if ((note == Py_None || !PyBytes_AsStringAndSize(note, (char **)&w->note, NULL)) &&
	    py_call(&w->call, run_commit, w, tell) >= 0)
		both = commit_report(w);
	leave(w);
	return both;
}

/* Wherever behind the commit an exception comes, it shall tell. */
static PyObject *writer_late(PyObject *self, PyObject *error)
{
	const struct writer *w = writer_of(self);

	if (w && atomic_load(&w->committed))
		py_add_late(error);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"close", writer_close, METH_NOARGS,
	 "close($self, /)\n--\n\n"
	 "Give up what was not committed: the image is as it was, a new file is removed."},
	{"_is_open", writer_is_open, METH_NOARGS, NULL},
	{"_tell", writer_tell, METH_O, NULL},
	{"_base", writer_base, METH_O, NULL},
	{"_schema", writer_schema, METH_VARARGS, NULL},
	{"_put", writer_put, METH_VARARGS, NULL},
	{"_delete", writer_delete, METH_O, NULL},
	{"_commit", writer_commit, METH_VARARGS, NULL},
	{"_late", writer_late, METH_O, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_new, writer_new},
	{Py_tp_dealloc, writer_dealloc},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_writer_spec = {
	.name = "stele._stele.Writer",
	.basicsize = PY_SIZE(struct object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = slots,
};
