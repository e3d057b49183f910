/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c - ids of the samples for which an expression is true
 *
 * In the calling thread, without the GIL, which is taken to look for signals whenever the
 * library asks whether to go on.
 */
#include "py.h"

#include <stdlib.h>

struct selecting {
	PyThreadState *thread; /* NULL: with the GIL */
	uint64_t *ids;
	size_t count, capacity;
	int interrupted; /* an exception is set */
};

static int take(void *user, const uint64_t *ids, size_t count)
{
	struct selecting *s = user;

	if (s->count + count > s->capacity) {
		const size_t capacity = 2 * (s->count + count);
		uint64_t *more = realloc(s->ids, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->ids = more;
		s->capacity = capacity;
	}
	memcpy(s->ids + s->count, ids, count * sizeof(*ids));
	s->count += count;
	return 0;
}

static int look(void *user, const struct stele_progress *progress)
{
	struct selecting *s = user;

	(void)progress;
	PyEval_RestoreThread(s->thread);
	s->interrupted = PyErr_CheckSignals();
	s->thread = PyEval_SaveThread();
	return s->interrupted;
}

PyObject *py_dataset_where(PyObject *self, PyObject *where)
{
	struct selecting s = {0};
	const struct stele_query_opts opts = {
		.size = sizeof(opts),
		.progress = look,
		.progress_user = &s,
	};
	Py_ssize_t size;
	const char *text;
	struct py_core *core;
	PyObject *bytes = NULL;
	int err;

	if (!PyUnicode_Check(where))
		return PyErr_Format(PyExc_TypeError,
				    "where must be a str, such as 'label = 7', not %R",
				    Py_TYPE(where));
	text = PyUnicode_AsUTF8AndSize(where, &size);
	if (text && strlen(text) != (size_t)size) {
		PyErr_SetString(PyExc_ValueError, "embedded null character");
		return NULL;
	}
	core = text ? py_dataset_enter(self) : NULL;
	if (!core)
		return NULL;
	s.thread = PyEval_SaveThread();
	err = stele_dataset_select(core->ds, text, &opts, take, &s);
	PyEval_RestoreThread(s.thread);
	if (!err)
		bytes = PyByteArray_FromStringAndSize((const char *)s.ids,
						      (Py_ssize_t)(s.count * sizeof(*s.ids)));
	else if (err == -EINVAL)
		PyErr_SetString(PyExc_ValueError, stele_errmsg());
	else if (!s.interrupted)
		py_raise(err, NULL);
	py_dataset_leave(core);
	free(s.ids);
	return bytes;
}
