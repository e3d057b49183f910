/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell.c - calls that take long, from Python, and what the library says
 *
 * The thread that calls hands events to Python, and looks for signals meanwhile. After an
 * exception, a KeyboardInterrupt among them, the library is told to stop, and the exception
 * is raised once it has returned.
 */
#include "py.h"

static PyObject *texts_tuple(const struct py_event *event)
{
	PyObject *tuple = PyTuple_New(PY_TEXTS);

	for (int i = 0; tuple && i < PY_TEXTS; i++) {
		const struct py_text *text = &event->texts[i];
		PyObject *item = text->data ? py_key_str(text->data, text->size) :
					      Py_NewRef(Py_None);

		if (!item || PyTuple_SetItem(tuple, i, item))
			Py_CLEAR(tuple);
	}
	return tuple;
}

static int tell_event(const struct py_event *event, PyObject *tell)
{
	const uint64_t *f = event->figures;
	PyObject *texts = texts_tuple(event), *ret = NULL;

	if (texts)
		ret = PyObject_CallFunction(
			tell, "iL(KKKKK)N", (int)event->kind,
			(long long)event->number, (unsigned long long)f[0],
			(unsigned long long)f[1], (unsigned long long)f[2],
			(unsigned long long)f[3], (unsigned long long)f[4], texts);
	Py_XDECREF(ret);
	return ret ? 0 : -1;
}

/* Hand over what there is. Return: 0; -1 with an exception. */
static int tell_all(struct py_call *call, PyObject *tell)
{
	struct py_event *events = py_call_take(call);
	int err = 0;

	for (struct py_event *event = events; !err && event; event = event->next)
		err = tell_event(event, tell);
	py_events_free(events);
	return err;
}

int py_call_tell(struct py_call *call, PyObject *tell)
{
	return tell_all(call, tell);
}

/* ---- logs ------------------------------------------------------------------------------ */

static PyObject *logger(void)
{
	PyObject *module = PyImport_ImportModule("stele.progress"), *log = NULL;

	if (module)
		log = PyObject_GetAttrString(module, "log");
	Py_XDECREF(module);
	return log;
}

static void tell_line(PyObject *log, const struct py_line *line)
{
	PyObject *text = py_key_str(line->text, strlen(line->text)), *ret = NULL;

	if (log && text)
		ret = PyObject_CallFunction(log, "iO", (int)line->level, text);
	Py_XDECREF(text);
	Py_XDECREF(ret);
	if (ret)
		return;
	if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
		PyErr_Clear();
		PyErr_SetInterrupt(); /* for who called */
	} else {
		PyErr_WriteUnraisable(log);
	}
}

void py_log_tell(struct py_log *log)
{
	PyObject *type, *value, *traceback, *to;
	struct py_line *lines;

	if (!atomic_load(&log->count))
		return;
	lines = py_log_take(log);
	PyErr_Fetch(&type, &value, &traceback);
	to = logger();
	if (!to)
		PyErr_Clear(); /* the interpreter ends */
	for (const struct py_line *line = lines; to && line; line = line->next)
		tell_line(to, line);
	Py_XDECREF(to);
	py_lines_free(lines);
	PyErr_Restore(type, value, traceback);
}

/* ---- calls ----------------------------------------------------------------------------- */

/* It was done before it could be stopped: who gets the exception shall know. */
void py_add_late(PyObject *error)
{
	PyObject *none = PyObject_CallMethod(error, "add_note", "s", "too late to stop it: what "
					     "was called has been done");

	if (!none)
		PyErr_Clear();
	Py_XDECREF(none);
}

int py_call(struct py_call *call, int (*run)(void *arg), void *arg, PyObject *tell)
{
	PyObject *type = NULL, *value = NULL, *traceback = NULL;
	int running, result = py_call_start(call, run, arg);

	if (result) {
		py_raise(result, "cannot start a thread");
		return -1;
	}
	do {
		Py_BEGIN_ALLOW_THREADS
		running = py_call_wait(call);
		Py_END_ALLOW_THREADS
		if (type) {
			py_events_free(py_call_take(call));
			continue;
		}
		/* What came with the end comes too late to stop it. */
		if (tell_all(call, tell) || (running && PyErr_CheckSignals())) {
			PyErr_Fetch(&type, &value, &traceback);
			py_call_stop(call);
		}
	} while (running);
	result = py_call_finish(call);
	if (!type && result >= 0 && PyErr_CheckSignals())
		PyErr_Fetch(&type, &value, &traceback);
	if (type) {
		if (result >= 0 && !call->quiet) {
			PyErr_NormalizeException(&type, &value, &traceback);
			py_add_late(value);
		}
		PyErr_Restore(type, value, traceback);
		return -1;
	}
	if (result < 0)
		py_raise(result, call->message ? call->message : "");
	return result < 0 ? -1 : result;
}
