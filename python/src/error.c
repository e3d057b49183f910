/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - exceptions for negative errnos
 *
 * The classes are Python's, in stele/errors.py, which also says which errno becomes which:
 * only the slow path needs them.
 */
#include "py.h"

static PyObject *raise_made(PyObject *made)
{
	if (made) {
		PyErr_SetObject((PyObject *)Py_TYPE(made), made);
		Py_DECREF(made);
	}
	return NULL;
}

static PyObject *function(const char *name)
{
	PyObject *module = PyImport_ImportModule("stele.errors");
	PyObject *found;

	if (!module)
		return NULL;
	found = PyObject_GetAttrString(module, name);
	Py_DECREF(module);
	return found;
}

static PyObject *raise(int error, const char *message, PyObject *key)
{
	PyObject *make, *made = NULL;

	if (error == -ENOMEM)
		return PyErr_NoMemory();
	/* Copied first: importing may call the library. */
	PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message),
					      "backslashreplace");
	make = text ? function("make") : NULL;
	if (make)
		made = PyObject_CallFunction(make, "iOOOO", -error, text, Py_None,
					     key, Py_None);
	Py_XDECREF(make);
	Py_XDECREF(text);
	return raise_made(made);
}

PyObject *py_raise(int error, const char *what)
{
	return raise(error, what ? what : stele_errmsg(), Py_None);
}

PyObject *py_raise_key(int error, PyObject *key)
{
	return raise(error, stele_errmsg(), key);
}

PyObject *py_raise_sample(int error, uint64_t id, PyObject *key, PyObject *dataset,
			  const struct py_core *core)
{
	PyObject *make, *target, *made = NULL;

	if (error == -ENOMEM)
		return PyErr_NoMemory();
	target = PyUnicode_DecodeFSDefault(core->target);
	make = target ? function("make") : NULL;
	if (make)
		made = PyObject_CallFunction(make, "isKOOO", -error,
					     stele_strerror(error),
					     (unsigned long long)id,
					     key ? key : Py_None,
					     dataset ? dataset : Py_None, target);
	Py_XDECREF(make);
	Py_XDECREF(target);
	return raise_made(made);
}

PyObject *py_no_pickle(PyObject *self, PyObject *unused)
{
	PyObject *refuse = function("refuse_pickle"), *made = NULL;

	(void)unused;
	if (refuse)
		made = PyObject_CallFunctionObjArgs(refuse, (PyObject *)Py_TYPE(self), NULL);
	Py_XDECREF(refuse);
	return made;
}
