/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - stele._stele: its types and functions
 *
 * Nothing here is for users: the package stele shows what is.
 */
#include "py.h"

struct py_state *py_state(void)
{
	PyObject *module = PyImport_ImportModule("stele._stele");
	struct py_state *state = module ? PyModule_GetState(module) : NULL;

	Py_XDECREF(module); /* the type that is instantiated keeps it */
	return state;
}

PyObject *py_object_new(PyTypeObject *type)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

	return alloc(type, 0);
}

void py_object_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	release(self);
	Py_DECREF(type);
}

/* ---- the module ----------------------------------------------------------------- */

static PyTypeObject *add(PyObject *module, PyType_Spec *spec)
{
	PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec,
								      NULL);

	if (type && PyModule_AddType(module, type))
		Py_CLEAR(type);
	return type;
}

static int fill(PyObject *module)
{
	struct py_state *state = PyModule_GetState(module);

	if (PyInterpreterState_GetID(PyInterpreterState_Get())) {
		PyErr_SetString(PyExc_ImportError,
				"stele does not support subinterpreters");
		return -1;
	}
	py_fork_watch();
	state->dataset = add(module, &py_dataset_spec);
	state->sample = add(module, &py_sample_spec);
	state->tensor = add(module, &py_tensor_spec);
	state->keys = add(module, &py_keys_spec);
	state->loader = add(module, &py_loader_spec);
	state->batch = add(module, &py_batch_spec);
	state->batches = add(module, &py_batches_spec);
	state->shuffle = add(module, &py_shuffle_spec);
	state->writer = add(module, &py_writer_spec);
	if (!state->dataset || !state->sample || !state->tensor || !state->keys ||
	    !state->loader || !state->batch || !state->batches ||
	    !state->writer || !state->shuffle)
		return -1;
	return PyModule_AddStringConstant(module, "version", stele_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct py_state *state = PyModule_GetState(module);

	Py_VISIT(state->dataset);
	Py_VISIT(state->sample);
	Py_VISIT(state->tensor);
	Py_VISIT(state->keys);
	Py_VISIT(state->loader);
	Py_VISIT(state->batch);
	Py_VISIT(state->batches);
	Py_VISIT(state->shuffle);
	Py_VISIT(state->writer);
	return 0;
}

static int clear(PyObject *module)
{
	struct py_state *state = PyModule_GetState(module);

	Py_CLEAR(state->dataset);
	Py_CLEAR(state->sample);
	Py_CLEAR(state->tensor);
	Py_CLEAR(state->keys);
	Py_CLEAR(state->loader);
	Py_CLEAR(state->batch);
	Py_CLEAR(state->batches);
	Py_CLEAR(state->shuffle);
	Py_CLEAR(state->writer);
	return 0;
}

static void release(void *module)
{
	clear(module);
}

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, fill},
#ifdef Py_mod_multiple_interpreters
	{Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
	{Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
	{0, NULL},
};

static PyMethodDef functions[] = {
	{"run", py_run, METH_VARARGS, NULL},
	{"image", py_image, METH_VARARGS, NULL},
	{"backing_check", py_backing_check, METH_VARARGS, NULL},
	{0},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "stele._stele",
	.m_size = sizeof(struct py_state),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
	.m_free = release,
};

PyMODINIT_FUNC PyInit__stele(void);
PyMODINIT_FUNC PyInit__stele(void)
{
	return PyModuleDef_Init(&definition);
}
