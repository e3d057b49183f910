/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py.h - what the files of the extension share
 *
 * Python objects (Dataset, Sample, ...) are thin: opaque instance data, found by py_data()
 * alone, so that the same source builds for any interpreter. What they share and wait for
 * is below them, in core.h and call.h. References to Python objects are owned, never
 * borrowed from what others can change; and whatever two threads may change has a lock or
 * is atomic, because there may be no GIL.
 */
#ifndef STELE_PY_H
#define STELE_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <string.h>

#include "call.h"
#include "core.h"

/* ---- interpreters -------------------------------------------------------------- */

/* Of one module: what its types need to make others. */
struct py_state {
	PyTypeObject *dataset, *sample, *tensor, *keys, *loader, *batch,
		*batches, *writer, *shuffle;
};

/* Of the module that is imported; NULL with an exception. */
struct py_state *py_state(void);

static inline void *py_data(PyObject *self)
{
	return (char *)self + sizeof(PyObject);
}
#define PY_SIZE(type) ((int)(sizeof(PyObject) + sizeof(type)))

/* Zeroed, by tp_alloc: for types that Python may subclass. */
PyObject *py_object_new(PyTypeObject *type);
/* tp_free of its type, and the reference that instances of heap types have to it. */
void py_object_free(PyObject *self);

extern PyType_Spec py_dataset_spec, py_sample_spec, py_tensor_spec,
	py_keys_spec, py_loader_spec, py_batch_spec, py_batches_spec,
	py_writer_spec, py_shuffle_spec;

/* ---- errors: error.c ----------------------------------------------------------- */

#define PY_NO_ID UINT64_MAX

/*
 * Raise the exception of an errno; always NULL. Without `what` the message is that of the
 * last call into the library by this thread.
 */
PyObject *py_raise(int error, const char *what);
/*
 * The same for a sample of a core. `key` is borrowed; it may be NULL, and so may `dataset`,
 * which finds the key then.
 */
PyObject *py_raise_sample(int error, uint64_t id, PyObject *key, PyObject *dataset,
			  const struct py_core *core);
/* The same where the last call of this thread says what is wrong with a sample. */
PyObject *py_raise_key(int error, PyObject *key);
/* __reduce__ of what lies in memory that a reader lends: refuse_pickle() of errors.py. */
PyObject *py_no_pickle(PyObject *self, PyObject *unused);

/* ---- reading: read.c ----------------------------------------------------------- */

/*
 * Read samples into a new block, waiting without the GIL. Samples have a status each.
 * Return: the block; NULL: an exception is set.
 */
struct py_block *py_read(struct py_core *core, const uint64_t *ids, size_t count);

/* ---- samples and tensors ------------------------------------------------------- */

/* May its bytes be touched in this process? False: BufferError is set. */
int py_block_check(const struct py_block *block);
/* Takes over the caller's reference of the block. */
PyObject *py_sample_new(struct py_state *state, struct py_entry *entry);
/* All of a block as a list; takes over nothing. */
PyObject *py_sample_list(struct py_state *state, struct py_block *block);

/* s[name]; of a class its name, if it has one, as the number may be another class elsewhere. */
PyObject *py_sample_class(PyObject *self, PyObject *name);

/* A piece of a sample as elements; or NULL with an exception. */
PyObject *py_tensor_new(struct py_entry *entry, const void *data, uint64_t size,
			uint32_t dtype, uint32_t rank, const uint64_t *dims);
PyObject *py_asarray(PyObject *self, PyObject *unused);

/* What is in memory, to be handed out by DLPack: dlpack.c */
struct py_array {
	struct py_block *block;
	const void *data;
	uint32_t dtype, rank;
	Py_ssize_t dims[STELE_RANK_MAX];
};

/* Arguments are those of __dlpack__. */
PyObject *py_dlpack(const struct py_array *array, PyObject *args, PyObject *kwargs);
PyObject *py_dlpack_device(PyObject *self, PyObject *unused);

/* By enum stele_dtype: dtype.c. NULL: there is no such type, TypeError is set. */
struct py_dtype {
	const char *name, *format; /* NumPy's, the buffer protocol's */
	uint8_t size, code;	   /* bytes; DLPack's code */
};
const struct py_dtype *py_dtype(uint32_t dtype);
/* Is this how such elements look in a buffer? */
int py_dtype_fits(uint32_t dtype, const char *format, Py_ssize_t size);
/* What such elements are called; NULL: there is no such type. */
const char *py_dtype_name(const char *format, Py_ssize_t size);

/* ---- batches ------------------------------------------------------------------- */

struct py_batch_info {
	uint64_t epoch, step, padded, skipped, number; /* of struct py_taken */
};
/* Takes over the caller's reference of the block. */
PyObject *py_batch_new(struct py_state *state, struct py_block *block,
		       const struct py_batch_info *info);
/* Memory of one piece, with a reference for the caller; NULL with an exception. */
struct py_entry *py_piece_new(const struct py_block *block, size_t size);
/* As a tensor, which takes over the piece. */
PyObject *py_piece_tensor(struct py_entry *piece, size_t size, uint32_t dtype,
			  uint32_t rank, const uint64_t *dims);
/* A field of all samples as one tensor: stack.c */
PyObject *py_stack(struct py_block *block, PyObject *field);

/* ---- loaders: loader.c, batches.c ---------------------------------------------- */

/* With a reference; NULL: closed, an exception is set. */
struct py_lender *py_loader_enter(PyObject *self);
/* May let go of the GIL. */
void py_loader_leave(struct py_lender *lender);
/* Count a batch; the GIL stays. */
void py_loader_count(PyObject *self, const struct py_taken *taken);
/* What iterates over one epoch; `transform` may be None. */
PyObject *py_batches_new(struct py_state *state, PyObject *loader, PyObject *transform);

/* ---- selections: ids.c --------------------------------------------------------- */

/* Which samples of a snapshot a Dataset has, in its order. */
struct py_selection {
	uint64_t *ids; /* owned; NULL: the range */
	uint64_t first, count;
};

/* Does this select one sample, rather than several? */
int py_selection_is_index(PyObject *which);
/* Index to id, counted from the end if negative. Return: 0; -1, IndexError or TypeError. */
int py_selection_index(const struct py_selection *in, PyObject *index, uint64_t *id);
/*
 * Several: slice, range, any sequence of int, a 1-D buffer of integers, or as a mask a
 * sequence or buffer of bool, as long as `in`. `wanted` begins the message of a TypeError
 * for anything else. The result has ids of its own, to be released. Return: 0; -1 with an
 * exception.
 */
int py_selection_pick(const struct py_selection *in, PyObject *which,
		      const char *wanted, struct py_selection *out);
void py_selection_release(struct py_selection *selection);
/* The ids in ascending order: its own, or a copy to be freed. NULL: no memory. */
uint64_t *py_selection_sort(const struct py_selection *in);
/* Is this id selected? `sorted` as above, and not used for a range. */
int py_selection_has(const struct py_selection *in, const uint64_t *sorted, uint64_t id);

/* ---- datasets ------------------------------------------------------------------ */

/*
 * A Dataset's core, and a handle of it, so that a close in another thread does not stop the
 * service under the caller. NULL: closed, an exception is set.
 */
struct py_core *py_dataset_enter(PyObject *self);
void py_dataset_leave(struct py_core *core);
/* A core with a reference, and which samples. NULL: TypeError, or closed. */
struct py_core *py_dataset_core(struct py_state *state, PyObject *dataset,
				const struct py_selection **selection);

/* Methods that read no samples: about.c */
PyObject *py_dataset_fields(PyObject *self, PyObject *unused);
PyObject *py_dataset_info(PyObject *self, PyObject *unused);
PyObject *py_dataset_stats(PyObject *self, PyObject *unused);
PyObject *py_dataset_column(PyObject *self, PyObject *name);
PyObject *py_dataset_key(PyObject *self, PyObject *id);
/* And select.c: a bytearray of ids, for which an expression in SQL is true. */
PyObject *py_dataset_where(PyObject *self, PyObject *where);

/* ---- keys: keys.c -------------------------------------------------------------- */

PyObject *py_key_str(const char *key, size_t size);
/* A str or bytes as the bytes of a key; NULL with an exception. */
PyObject *py_key_bytes(PyObject *key);
PyObject *py_keys_new(struct py_core *core, PyObject *prefix);

/* ---- fields and their values: field.c, column.c -------------------------------- */

/* Return: index; -1 with KeyError or TypeError set. */
int py_field_index(const struct py_core *core, PyObject *name);
/* (name, type, names of classes or None: they are damaged, dtype, dims) */
PyObject *py_field_tuple(const struct stele_field *field);

/* A field of a schema, and what finds the values of its classes; NULL: it has none. */
struct py_column {
	struct stele_field field;
	PyObject *name, *classes;
};

/*
 * From a tuple (name, type, dtype, dims, names of classes as bytes, dict from them or None).
 * @class_names: to be freed, of the field, point into the tuple. Return: 0; -1.
 */
int py_column_take(struct py_column *column, PyObject *tuple, const char ***class_names);
void py_column_release(struct py_column *column);

/* The values of a sample's fields, and what they point into. */
struct py_row {
	uint32_t count;
	PyObject *objects[STELE_FIELDS_MAX];
	Py_buffer views[STELE_FIELDS_MAX];
	struct stele_txn_value values[STELE_FIELDS_MAX];
};

/* To be released even if it fails. Return: 0; -1 with an exception. */
int py_row_take(struct py_row *row, const struct py_column *columns, uint32_t count,
		PyObject *sample);
void py_row_release(struct py_row *row);

/* ---- options of the library, by name: options.c -------------------------------- */

/* What snapshot_create(), resize() and a Writer take beside the options. */
struct py_change {
	struct stele_txn_opts opts;
	uint64_t size;
};

/* And what a Writer takes beside those of a new image. */
struct py_create {
	struct stele_create_opts opts;
	uint32_t posix;
};

enum py_options {
	PY_BUILD,
	PY_APPEND,
	PY_COMPACT,
	PY_COPY,
	PY_VERIFY,
	PY_OPEN,
	PY_CHANGE, /* struct py_change */
	PY_CREATE, /* struct py_create */
	PY_PUT,
	PY_OPTIONS_COUNT,
};

/*
 * Fill in a struct of that kind. What is None stays as it is; a name that the struct does
 * not have is a TypeError. Texts and UUIDs are bytes, which the dictionary keeps.
 */
int py_options_fill(void *to, enum py_options which, PyObject *dict);

/* ---- structs of the library as dictionaries: report.c -------------------------- */

/* Tables of these end with one that has no name. */
struct py_member {
	const char *name;
	unsigned int kind; /* of report.c */
	size_t offset;
};

extern const struct py_member py_build_report[], py_copy_report[], py_verify_report[],
	py_gc_report[], py_resize_report[], py_no_report[], py_snapshot_report[],
	py_image_report[], py_info_report[], py_reader_report[], py_loader_report[];

/* Add its members. Return: 0; -1 with an exception. */
int py_report(PyObject *dict, const void *from, const struct py_member *members);
int py_report_u64(PyObject *dict, const char *name, uint64_t value);
int py_report_str(PyObject *dict, const char *name, const char *value);

/* ---- calls that take long, and images: tell.c, verbs.c, image.c ---------------- */

/*
 * Hand what the library said to Python's logging, before anybody learns what came of it: an
 * exception that is set stays set. What a handler raises is reported, and goes no further.
 */
void py_log_tell(struct py_log *log);

/* A note for an exception that came when a call was over; one of adding it is dropped. */
void py_add_late(PyObject *error);
/*
 * Run it in a thread of its own, and wait without the GIL. Meanwhile this thread hands
 * events to tell(kind, number, figures, texts) and looks for signals; an exception stops
 * the call. Return: what it returned; -1 with an exception.
 */
int py_call(struct py_call *call, int (*run)(void *arg), void *arg, PyObject *tell);
/* Hand over what was said since the last one. Return: 0; -1 with an exception. */
int py_call_tell(struct py_call *call, PyObject *tell);
/* run(verb, arguments, options, tell) */
PyObject *py_run(PyObject *module, PyObject *args);
/* image(target, backend) */
PyObject *py_image(PyObject *module, PyObject *args);
/* backing_check(path), which raises: backing.c */
PyObject *py_backing_check(PyObject *module, PyObject *args);

#endif
