/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py.h - what the files of the extension share
 *
 * Two kinds of things. Python objects (Dataset, Sample, ...) are thin: opaque instance data,
 * found by py_data() alone, so that the same source builds for any interpreter. Below them is
 * plain C with reference counts of its own: a *core* is an open dataset, a *block* the memory
 * of samples that were read together. They can be released by any thread, with or without
 * the GIL, and in any order: a sample keeps its block, a block its core.
 *
 * Locks. py_lock guards all that threads of a process share: the services' queues and the
 * pool of memory. It is held for a few instructions only, never while waiting or while
 * calling into Python, and across fork(), so that the child finds it free.
 */
#ifndef STELE_PY_H
#define STELE_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <string.h>

#include <stele.h>

/* ---- interpreters ------------------------------------------------------- */

/* Of one module: what its types need to make others. */
struct py_state {
	PyTypeObject *dataset, *sample, *tensor, *keys, *loader, *batch, *writer,
		*shuffle;
};

static inline void *py_data(PyObject *self)
{
	return (char *)self + sizeof(PyObject);
}
#define PY_SIZE(type) ((int)(sizeof(PyObject) + sizeof(type)))

/* tp_free of its type, and the reference that instances of heap types have to it. */
void py_object_free(PyObject *self);

extern PyType_Spec py_dataset_spec, py_sample_spec, py_tensor_spec,
	py_keys_spec, py_loader_spec, py_batch_spec, py_writer_spec,
	py_shuffle_spec;

/* ---- errors: error.c ----------------------------------------------------- */

#define PY_NO_ID UINT64_MAX

/*
 * Raise the exception of an errno; always NULL. Without `what` the message is that of the
 * last call into the library by this thread.
 */
PyObject *py_raise(int error, const char *what);
/* The same for a sample; `dataset` may be NULL, `key` is borrowed and may be NULL. */
PyObject *py_raise_sample(int error, uint64_t id, PyObject *key,
			  PyObject *dataset);
/* The same where the last call of this thread says what is wrong with a sample. */
PyObject *py_raise_key(int error, PyObject *key);
PyObject *py_raise_closed(void);

/* ---- what is open: core.c ------------------------------------------------- */

struct py_service;

struct py_core {
	atomic_size_t refs;    /* of objects, blocks, loaders */
	atomic_size_t handles; /* of Datasets that are not closed */
	struct py_state *state;
	struct stele_dataset *ds;
	struct stele_view *view; /* NULL: samples are read by the service */
	struct stele_dataset_info info;
	int direct_pays; /* reads are short, and need not be interrupted */
	uint32_t field_count;
	struct stele_field *fields;
	char *target, *backend; /* as given; backend may be NULL */
	uint32_t verify;
	struct py_service *service; /* under py_lock; NULL: not started */
	atomic_uint callers;	    /* threads that are reading now */
	atomic_size_t direct;	    /* samples that the service was not needed for */
	atomic_size_t held;	    /* bytes of blocks */
	atomic_size_t blocks;
};

extern pthread_mutex_t py_lock;
extern unsigned int py_generation; /* of this process: how many forks ago it began */

void py_fork_watch(void);
/* Return: 0; negative errno of the library. Without the GIL. */
int py_core_open(const char *target, uint32_t verify, const char *backend,
		 int mmap, struct py_core **out);
struct py_core *py_core_ref(struct py_core *core);
void py_core_unref(struct py_core *core);
/* The last one stops the service. May wait for reads in flight: without the GIL. */
void py_core_handle_close(struct py_core *core);
/* Return: index; -1 with KeyError or TypeError set. */
int py_core_field(const struct py_core *core, PyObject *name);

/* ---- memory: block.c ------------------------------------------------------- */

struct py_block;

/* One sample of a block. */
struct py_entry {
	struct stele_sample sample;
	struct py_block *block;
	struct py_core *core; /* kept by the block */
};

struct py_block {
	atomic_size_t refs;
	struct py_core *core; /* whose service read it, kept; NULL: a loader's */
	void *memory;	      /* of the pool; NULL: not ours */
	size_t memory_size;
	void (*release)(struct py_block *block); /* of what is not ours; or NULL */
	void *owner;				 /* for release */
	unsigned int generation; /* where the memory exists; 0: in any process */
	int readonly;
	/* While it is read: the service's. */
	struct py_block *next;
	size_t submitted, missing;
	sem_t done;
	size_t count;
	struct py_entry entries[];
};

/* Zeroed, one reference; NULL: no memory. */
struct py_block *py_block_new(struct py_core *core, size_t count);
/* Memory for its samples from the pool. Return: 0; -ENOMEM. */
int py_block_allocate(struct py_block *block, size_t size);
void py_block_ref(struct py_block *block, size_t count);
void py_block_unref(struct py_block *block);
/* May its bytes be touched in this process? False: BufferError is set. */
int py_block_check(const struct py_block *block);

/* ---- reading: service.c ------------------------------------------------------ */

/*
 * Read samples into a new block, waiting without the GIL. Samples have a status each.
 * Return: the block; NULL: an exception is set.
 */
struct py_block *py_service_read(struct py_core *core, const uint64_t *ids,
				 size_t count);
/* Waits for what it reads. Without the GIL. */
void py_service_stop(struct py_core *core);
/* Return: whether there is one, and its figures. Without the GIL. */
int py_service_stats(struct py_core *core, struct stele_reader_stats *stats,
		     uint64_t *rounds);
/* What the process waits for in slices of: how long a KeyboardInterrupt may take. */
#define PY_WAIT_NS 100000000L

/* ---- objects ------------------------------------------------------------------ */

/* Takes over the caller's reference of the block. */
PyObject *py_sample_new(struct py_state *state, struct py_entry *entry);
/* `count` entries from `first` as a list; takes over nothing. */
PyObject *py_sample_list(struct py_state *state, struct py_block *block);
PyObject *py_key_str(const char *key, size_t size);
PyObject *py_keys_new(struct py_core *core, const char *prefix, size_t size);

/* A piece of a sample as elements; or NULL with an exception. */
PyObject *py_tensor_new(struct py_entry *entry, const void *data, uint64_t size,
			uint32_t dtype, uint32_t rank, const uint64_t *dims);
PyObject *py_dlpack(struct py_block *block, const void *data, uint32_t dtype,
		    uint32_t rank, const uint64_t *dims, PyObject *kwargs);
PyObject *py_dlpack_device(PyObject *self, PyObject *unused);
PyObject *py_asarray(PyObject *self, PyObject *unused);

/* ---- selections: ids.c ---------------------------------------------------------- */

/* Which samples of a snapshot a Dataset has, in its order. */
struct py_selection {
	uint64_t *ids; /* owned; NULL: the range */
	uint64_t first, count;
};

/* Index to id, counted from the end if negative. Return: 0; -1, IndexError or TypeError. */
int py_selection_index(const struct py_selection *in, PyObject *index, uint64_t *id);
/*
 * Several: slice, range, any sequence of int, a 1-D buffer of integers. The result has
 * ids of its own, to be released. Return: 0; -1 with an exception.
 */
int py_selection_pick(const struct py_selection *in, PyObject *which,
		      struct py_selection *out);
void py_selection_release(struct py_selection *selection);

/* A Dataset's core, with a reference, and which samples. NULL: TypeError, or closed. */
struct py_core *py_dataset_core(struct py_state *state, PyObject *dataset,
				const struct py_selection **selection);

struct py_batch_info {
	struct py_state *state;
	uint64_t epoch, step, padded, skipped;
};
/* Takes over the caller's reference of the block. */
PyObject *py_batch_new(struct py_state *state, struct py_block *block,
		       const struct py_batch_info *info);

/* ---- structs and dictionaries: struct.c ------------------------------------------- */

enum py_kind {
	PY_U32, /* and enums */
	PY_U64,
	PY_I64,
	PY_UUID, /* hexadecimal; as an option 16 bytes that the dictionary keeps */
	PY_F64,  /* from here on only to Python */
	PY_BOOL,
	PY_NAME,   /* an array of char */
	PY_DIGEST, /* hexadecimal */
	PY_TEXT,   /* only an option: bytes, which the dictionary keeps */
};

/* Tables of these end with one that has no name. */
struct py_member {
	const char *name;
	enum py_kind kind;
	size_t offset;
};
#define PY_MEMBER(type, kind, name) {#name, PY_##kind, offsetof(struct type, name)}

/* Return: 0; -1 with an exception. */
int py_struct_dict(PyObject *dict, const void *from, const struct py_member *members);
/* Options that are None stay as they are; one that is not in the table is a TypeError. */
int py_struct_fill(void *to, const struct py_member *members, PyObject *dict);
int py_dict_u64(PyObject *dict, const char *name, uint64_t value);
int py_dict_str(PyObject *dict, const char *name, const char *value);
PyObject *py_info_dict(const struct py_core *core);
int py_dict_reader(PyObject *dict, const struct stele_reader_stats *stats);

/* ---- calls that take long: call.c --------------------------------------------------- */

enum py_event_kind {
	PY_EVENT_LOG,	     /* number: level; texts: line */
	PY_EVENT_PROGRESS,   /* phase; figures: samples done, total, bytes done, total */
	PY_EVENT_SKIP,	     /* reason; figures: errno; texts: key */
	PY_EVENT_DAMAGE,     /* errno; figures: offset, size, id; texts: what, key, detail */
	PY_EVENT_DIFFERENCE, /* kind; figures: ids and sizes of a, b; texts: key */
	PY_EVENT_UNUSED,     /* 1: due, 2: deleted; figures: segment, offset, size, samples, time;
				texts: name */
};

#define PY_FIGURES 5
#define PY_TEXTS   3

struct py_text {
	const char *data; /* NULL: None */
	size_t size;
};

/* What a thread of the library has to say. */
struct py_event {
	struct py_event *next;
	enum py_event_kind kind;
	int64_t number;
	uint64_t figures[PY_FIGURES];
	struct py_text texts[PY_TEXTS];
};

struct py_call {
	pthread_mutex_t lock;
	pthread_cond_t news, room;
	struct py_event *events, **end, *progress; /* newest progress; NULL: told */
	unsigned int count;
	unsigned int phase; /* of the newest progress; 0: none */
	int urgent;	    /* that it has changed */
	int running, stop, result;
	char *message; /* of the failure */
	int (*run)(void *arg);
	void *arg;
};

void py_call_init(struct py_call *call);
void py_call_destroy(struct py_call *call);
/*
 * Run it in a thread of its own, and wait without the GIL. Meanwhile this thread hands
 * events to tell(kind, number, figures, texts) and looks for signals; an exception stops
 * the call. Return: what it returned; -1 with an exception.
 */
int py_call(struct py_call *call, int (*run)(void *arg), void *arg, PyObject *tell);
/* Queues a copy. Waits while the queue is full, as long as the call is not stopped. */
void py_call_add(struct py_call *call, const struct py_event *event);
/* Callbacks for the library; `user` is the call. */
void py_call_log(void *user, enum stele_log_level level, const char *line);
int py_call_progress(void *user, const struct stele_progress *progress);
void py_call_skip(void *user, enum stele_skip_reason reason, const char *key,
		  size_t key_size, int error);

/* run(verb, arguments, options, tell): verbs.c */
PyObject *py_run(PyObject *module, PyObject *args);
/* image(target, backend): image.c */
extern const struct py_member py_snapshot_members[];
PyObject *py_image(PyObject *module, PyObject *args);

/* ---- what is written: column.c -------------------------------------------------------- */

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
/*
 * A Python object as the value of a field, which may point into it or into @view, to be
 * released where view->obj is set. Return: 0; -1 with an exception.
 */
int py_column_value(const struct py_column *column, PyObject *object,
		    struct stele_txn_value *value, Py_buffer *view);
/* Is this how such elements look in a buffer? */
int py_dtype_fits(uint32_t dtype, const char *format, Py_ssize_t size);

#endif
