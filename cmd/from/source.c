/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - the table of formats, and what the command line names as one source
 */
#include "from/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "from/foreign.h"
#include "from/lmdb.h"
#include "from/names.h"
#include "from/read.h"
#include "from/row.h"
#include "from/shards.h"
#include "libarchive.h"
#include "parse.h"
#include "text.h"
#include "tree.h"

/* What may begin as several of them is the first that says so. */
static const struct from_format *const formats[] = {
	&from_tfrecord, /* has a checksum */
#ifdef HAVE_LMDB
	&from_lmdb,
#endif
	&from_tar,
	&from_recordio,
	&from_npy,
	&from_npz,
#ifdef HAVE_HDF5
	&from_hdf5,
#endif
	&from_mindrecord,
	&from_jsonl,
	&from_csv,
	&from_ffrecord,
	&from_manifest,
	&from_text,
	&from_webdataset,
};
#define FORMATS (sizeof(formats) / sizeof(*formats))
#define DIRECTORY "dir"

/* ---- detection ----------------------------------------------------------- */

static const struct from_format *find_format(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

const char *from_parse(const char *text, const char **format)
{
	static char wanted[256];
	size_t at = (size_t)snprintf(wanted, sizeof(wanted), DIRECTORY);

	*format = text;
	if (!strcmp(text, DIRECTORY) || find_format(text))
		return NULL;
	for (size_t i = 0; i < FORMATS; i++)
		at += (size_t)snprintf(wanted + at, sizeof(wanted) - at, "%s%s",
				       i + 1 < FORMATS ? ", " : " or ",
				       formats[i]->name);
	return wanted;
}

const char *from_parse_type(const char *text, struct from_opts *opts)
{
	static const char *const words[] = {
		[FROM_TYPE_CLASS] = "class", [FROM_TYPE_TEXT] = "text", [FROM_TYPE_F64] = "f64",
		[FROM_TYPE_NONE] = "none", NULL};
	struct from_column *column = &opts->columns[opts->column_count];
	const char *colon = strrchr(text, ':');
	const size_t size = colon ? (size_t)(colon - text) : 0;

	if (opts->column_count == FROM_COLUMNS_MAX)
		return "given for no more than 4096 columns";
	if (!size || size > STELE_NAME_SIZE_MAX || parse_word(colon + 1, words, &column->type))
		return "COLUMN:class, COLUMN:text, COLUMN:f64 or COLUMN:none";
	memcpy(column->name, text, size);
	column->name[size] = '\0';
	opts->column_count++;
	return NULL;
}

void from_each(void (*fn)(const char *name, void *user), void *user)
{
	fn(DIRECTORY, user);
	for (size_t i = 0; i < FORMATS; i++)
		fn(formats[i]->name, user);
}

int from_refuse_image(const char *source, const char *path)
{
	const bool snapshot = strcmp(source, path) != 0 && cmd_names_snapshot(source);

	if (stele_image_detect(path) <= 0)
		return 0;
	cmd_message("'%s' %s an image, which is no source", source,
		    snapshot ? "is a snapshot of" : "holds");
	cmd_hint("'stele copy SOURCE TARGET' copies a snapshot of one to another; to add "
		 "samples to it, name it last, behind what they come from");
	return -EMEDIUMTYPE;
}

/* By its first line: the path of a file, or JSON that is not one object a line. */
static void hint_unknown(const struct from_shard *shard)
{
	FILE *file = shard->regular ? fopen(shard->path, "re") : NULL;
	char line[PATH_MAX + 2] = "";

	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	if (row_names_file(shard, line, strcspn(line, "\r\n")))
		cmd_hint("%s", FROM_HEADER);
	else if (line[0] == '{' || line[0] == '[')
		cmd_hint("of JSON, %s", FROM_OBJECTS);
	else
		cmd_hint("of single files, such as pictures, name the directory; unpack what is a "
			 "zip");
}

static int unknown(struct from *from, const struct from_shard *shard)
{
	const char *format;

	from->complained = true;
	if (from_refuse_image(shard->name, shard->name))
		return -EMEDIUMTYPE;
	if (from->empty) {
		cmd_message("'%s' is empty", shard->name);
		cmd_hint("see whether what writes it has failed");
		return -EMEDIUMTYPE;
	}
	format = foreign_file(shard->path);
	if (format) {
		cmd_message("'%s' is %s, which the command does not read", shard->name, format);
		cmd_hint("'python3 -m stele.sources build SOURCE... TARGET' does, of the package "
			 "for Python");
		return -EMEDIUMTYPE;
	}
	cmd_message("cannot tell the format of '%s'; name it with --from: %s",
		    shard->name, from_parse("", &format));
	hint_unknown(shard);
	return -EMEDIUMTYPE;
}

static void find_by_begin(struct from *from, const uint8_t *data, int64_t size)
{
	for (size_t i = 0; i < FORMATS && size > 0 && !from->format; i++)
		if (formats[i]->detect && formats[i]->detect(data, (size_t)size))
			from->format = formats[i];
}

/*
 * By how the first shard begins. That is also where bad compression shows; of a format that
 * verifies its samples, there may be some before it.
 */
static int detect(struct from *from, const struct from_shard *shard,
		  struct input *input, bool left_out)
{
	const uint8_t *data;
	int64_t got;
	int ret;

	input->rewinds = true;
	ret = input_open(input);
	got = ret ? ret : input_look(input, FROM_HEAD_SIZE, &data);
	from->empty = !got;
	find_by_begin(from, data, got);
	if (!ret && got == -EBADMSG) {
		const int64_t before = input_look(input, 1, &data);

		find_by_begin(from, data, before);
		if (from->format && from->format->verifies)
			return 0;
		from->format = NULL;
	}
	if (got != -EBADMSG || left_out)
		return got < 0 ? (int)got : 0;
	cmd_message("'%s' at byte 0, decompressed: %s", shard->name, input_why(input));
	from->complained = true;
	return -EBADMSG;
}

static bool is_payload(const struct from_opts *opts, const struct from_format *format,
		       const char *name)
{
	return format->options & FROM_PAYLOAD &&
	       !strcmp(name, opts->payload ? opts->payload : FROM_PAYLOAD_COLUMN);
}

/* What a table takes its keys from, and a manifest its paths, is no field. */
static const char *taken(const struct from_opts *opts, const struct from_format *format,
			 const char *name)
{
	if (!strcmp(name, opts->key ? opts->key : FROM_KEY_COLUMN))
		return "the column of the keys";
	return is_payload(opts, format, name) ? "the column of the paths" : NULL;
}

static int compare_columns(const void *a, const void *b)
{
	const struct from_column *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int check_types(const struct from_opts *opts, const struct from_format *format)
{
	for (uint32_t i = 0; i < opts->column_count; i++) {
		const char *name = opts->columns[i].name, *what = taken(opts, format, name);

		if (what) {
			cmd_message("--type cannot be given for '%s': it is %s", name, what);
			return -EINVAL;
		}
		if (i && !strcmp(opts->columns[i - 1].name, name)) {
			cmd_message("--type is given twice for '%s'", name);
			return -EINVAL;
		}
	}
	return 0;
}

/* An option that means nothing for the format is a mistake. NULL: a directory. */
static int check_options(const struct from_opts *opts, const struct from_format *format)
{
	const struct {
		bool given;
		uint32_t option;
		const char *name;
	} given[] = {
		{opts->key, FROM_KEY, "key"},
		{opts->payload, FROM_PAYLOAD, "payload"},
		{opts->example, FROM_EXAMPLE, "example"},
		{opts->datum, FROM_DATUM, "datum"},
		{opts->database, FROM_DATABASE, "database"},
		{opts->column_count, FROM_TYPES, "type"},
		{opts->arrays, FROM_ARRAYS, "arrays"},
	};
	const uint32_t known = format ? format->options : 0;

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		if (!given[i].given || known & given[i].option)
			continue;
		cmd_message("--%s does not go with %s%s", given[i].name,
			    format ? "sources of format " : "a directory",
			    format ? format->name : "");
		return -EINVAL;
	}
	if (format && opts->key && is_payload(opts, format, opts->key)) {
		cmd_message("--key=%s names the column of the paths, which are the keys if there "
			    "is no column 'key'", opts->key);
		return -EINVAL;
	}
	return format ? check_types(opts, format) : 0;
}

/* Of a table any text may be one: a name has to say so. */
static const struct from_format *format_by_name(const char *path)
{
	static const struct {
		const char *end;
		const struct from_format *format;
	} known[] = {{".csv", &from_csv}, {".tsv", &from_csv}, {".ffr", &from_ffrecord}};
	static const char *const compressed[] = {"", ".gz", ".bz2", ".xz", ".zst", ".lz4"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		for (size_t k = 0; k < sizeof(compressed) / sizeof(*compressed); k++) {
			const size_t size = strlen(known[i].end) + strlen(compressed[k]);
			const char *end = path + strlen(path) - size;

			if (strlen(path) > size &&
			    !strncmp(end, known[i].end, strlen(known[i].end)) &&
			    !strcmp(end + strlen(known[i].end), compressed[k]))
				return known[i].format;
		}
	return NULL;
}

static int look_at(struct from *from, struct from_shard *shard, bool left_out)
{
	struct input input = {.fd = -1};
	int ret = from_shard_open(from, shard, &input);

	if (!ret && from->opts.format)
		from->format = find_format(from->opts.format);
	else if (!ret)
		ret = detect(from, shard, &input, left_out && shard->regular);
	input_close(&input);
	return ret;
}

/* Or the next one, if that may be damaged, and will be left out then. */
static int look_at_first(struct from *from)
{
	struct from_shard *shard = from->shards, *last = shard + from->shard_count - 1;
	int ret = look_at(from, shard, from->opts.skip && shard < last);

	while (from->opts.skip && shard->compression && shard->regular && shard < last &&
	       (ret == -EBADMSG || (!ret && !from->format))) {
		shard++;
		ret = look_at(from, shard, shard < last);
	}
	if (ret)
		return from_shard_failed(from, shard, ret);
	if (!from->format)
		from->format = format_by_name(shard->path);
	if (from->format == &from_tfrecord && from->opts.example)
		from->format = &from_example;
#ifdef HAVE_LMDB
	if (from->format == &from_lmdb && from->opts.datum)
		from->format = &from_datum;
#endif
	return from->format ? check_options(&from->opts, from->format) : unknown(from, shard);
}

static struct from *from_new(void)
{
	struct from *from = calloc(1, sizeof(*from));

	if (from)
		from->store.fd = from->index.fd = -1;
	return from;
}

static void shard_release(struct from_shard *shard)
{
	lmdb_release(shard->lmdb);
	if (shard->pipe >= 0)
		close(shard->pipe);
	free(shard->path);
}

const char *from_guess(const char *path)
{
	char *copy = strdup(path);
	struct from_shard shard = {.path = copy, .name = copy, .pipe = -1};
	struct from *from = from_new();
	const char *name = NULL;
	struct stat st;

	if (from && copy && !stat(path, &st) && S_ISREG(st.st_mode) && libarchive_load() &&
	    !look_at(from, &shard, true)) {
		if (!from->format)
			from->format = format_by_name(path);
		name = from->format ? from->format->name : NULL;
	}
	from_close(from);
	shard_release(&shard);
	return name;
}

/* ---- open ---------------------------------------------------------------- */

/* A name that exists stands for itself, whatever is in it. */
static int take_source(struct names *names, const char *source)
{
	struct stat st;

	if (!strcmp(source, "-") || stat(source, &st) == 0)
		return names_add(names, source);
	return names_expand(names, source);
}

static int check_names(const struct names *names)
{
	unsigned int pipes = 0;

	for (size_t i = 0; i < names->count; i++)
		pipes += !strcmp(names->list[i], "-");
	if (pipes <= (names->count == 1))
		return 0;
	cmd_message("standard input cannot be combined with other sources");
	return -EINVAL;
}

static int take_names(struct from *from, struct names *names)
{
	from->shards = calloc(names->count, sizeof(*from->shards));
	if (!from->shards)
		return -ENOMEM;
	for (size_t i = 0; i < names->count; i++) {
		struct from_shard *shard = &from->shards[i];
		struct stat st;

		shard->pipe = -1;
		shard->path = names->list[i];
		shard->name = strcmp(shard->path, "-") ? shard->path :
							 "standard input";
		names->list[i] = NULL;
		from->shard_count++;
		if (stat(shard->path, &st) == 0 && S_ISREG(st.st_mode))
			from->total += (uint64_t)st.st_size;
	}
	return 0;
}

/* It may be there by chance. */
static void warn_beside(const char *environment)
{
	char name[NAME_MAX + 1];

	if (shards_find_beside(environment, name))
		cmd_message("warning: '%s' is an environment of LMDB, so '%s' and all else in it "
			    "is left out (--from=dir takes the files)", environment, name);
}

/* A directory may be an environment of LMDB. Return: 0; -ENOENT (it has to be one; said). */
static int find_environments(struct names *names, const struct from_opts *opts)
{
	const bool wanted = opts->format && !strcmp(opts->format, "lmdb");
	struct stat st;

	for (size_t i = 0; i < names->count; i++) {
		char *path = !opts->format || wanted ? lmdb_data_file(names->list[i]) : NULL;

		if (path) {
			if (!wanted)
				warn_beside(names->list[i]);
			free(names->list[i]);
			names->list[i] = path;
		} else if (wanted && !stat(names->list[i], &st) && S_ISDIR(st.st_mode)) {
			cmd_message("the directory '%s' has no environment of LMDB ('data.mdb')",
				    names->list[i]);
			return -ENOENT;
		}
	}
	return 0;
}

/* What is not there is reported by who opens it: the library, which takes directories. */
static bool is_directory(const struct names *names, const struct from_opts *opts)
{
	struct stat st;

	if (opts->format)
		return !strcmp(opts->format, DIRECTORY);
	return names->count == 1 && strcmp(names->list[0], "-") &&
	       (stat(names->list[0], &st) < 0 || S_ISDIR(st.st_mode));
}

/* What is not there as a file may be a snapshot. Return: 0; -EMEDIUMTYPE (said); -ENOMEM. */
static int check_sources(char *const *sources, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count && !ret; i++) {
		char *path;

		if (access(sources[i], F_OK) == 0)
			continue;
		path = cmd_path_of(sources[i]);
		ret = path ? from_refuse_image(sources[i], path) : -ENOMEM;
		free(path);
	}
	return ret;
}

/* As the library takes it, which knows of no other source, nor of --from. */
static int check_directory(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return 0;
	cmd_message("'%s' is not a directory", path);
	cmd_hint("leave --from=dir out: what an archive or another file holds is seen then");
	return -ENOTDIR;
}

/* Nor does an option go wrong with it. */
static bool is_there(const struct names *names, const struct from_opts *opts)
{
	return opts->format || access(names->list[0], F_OK) == 0;
}

/* A snapshot of it may be named. */
static int find_target(struct from *from)
{
	const char *target = from->opts.target;
	struct stat st;
	char *path;

	if (!target || cmd_is_rbd(target))
		return 0;
	path = cmd_path_of(target);
	if (!path)
		return -ENOMEM;
	if (stat(path, &st) == 0)
		from_span_find(&st, &from->target);
	free(path);
	return 0;
}

static int make(struct names *names, const struct from_opts *opts,
		struct from **out)
{
	struct from *from = from_new();
	int ret;

	if (!from)
		return -ENOMEM;
	from->opts = *opts;
	qsort(from->opts.columns, opts->column_count, sizeof(*opts->columns), compare_columns);
	from->blob = (struct stele_field){
		.size = sizeof(from->blob), .name = "data", .type = STELE_TYPE_BYTES};
	ret = find_target(from);
	if (!ret)
		ret = take_names(from, names);
	if (!ret && !libarchive_load())
		ret = -ENOSYS;
	if (!ret)
		ret = look_at_first(from);
	if (ret)
		from_close(from);
	else
		*out = from;
	return ret;
}

int from_open(char *const *sources, size_t count, const struct from_opts *opts,
	      struct from **out)
{
	struct names names = {0};
	int ret = 0;

	*out = NULL;
	for (size_t i = 0; i < count && !ret; i++)
		ret = take_source(&names, sources[i]);
	if (ret)
		cmd_error(ret, "cannot expand the names of sources");
	else
		ret = check_sources(sources, count);
	if (!ret)
		ret = find_environments(&names, opts);
	if (!ret && !is_directory(&names, opts)) {
		ret = check_names(&names);
		if (!ret)
			ret = make(&names, opts, out);
	} else if (!ret && is_there(&names, opts)) {
		ret = check_options(opts, NULL);
		if (!ret)
			ret = check_directory(names.list[0]);
	}
	if (!ret && !*out && count > 1) {
		cmd_message("a directory cannot be combined with other sources");
		ret = -EINVAL;
	}
	names_release(&names);
	return ret;
}

void from_close(struct from *from)
{
	if (!from)
		return;
	for (size_t i = 0; i < from->shard_count; i++)
		shard_release(&from->shards[i]);
	free(from->shards);
	free(from->first.data);
	store_release(&from->store);
	store_release(&from->index);
	record_fields_release(&from->fields);
	free(from);
}

bool from_groups(const struct from *from)
{
	return from && from->format == &from_webdataset;
}

uint64_t from_replaced(const struct from *from)
{
	return from ? from->replaced : 0;
}

void from_warn_keys(const struct from *from)
{
	char count[TEXT_SIZE];

	if (!from || !from->unfit)
		return;
	cmd_message("warning: extract, mount and export --to=tar leave out %s that no file can "
		    "have, such as '%s': %s", text_counted(count, from->unfit, "key"),
		    from->unfit_key, tree_refusal(from->unfit_key, strlen(from->unfit_key)));
	if (from->format->options & FROM_KEY)
		cmd_hint("the column 'key', or --key=COLUMN, gives samples other keys");
}

/* One that would have been that of the keys in lower case. NULL: there is none. */
static const char *likely_key(const struct from *from)
{
	const bool numbers = from->keys == FROM_KEYS_NUMBERS && from->format->options & FROM_KEY;

	for (uint32_t i = 0; numbers && i < from->fields.count; i++) {
		const struct stele_field *field = &from->fields.list[i].field;

		if (!strcasecmp(field->name, FROM_KEY_COLUMN) && field->type != STELE_TYPE_F64 &&
		    field->type != STELE_TYPE_TENSOR)
			return field->name;
	}
	return NULL;
}

void from_hint(const struct from *from)
{
	const char *paths = from ? from->paths : "";
	const bool payload = strcmp(paths, FROM_PAYLOAD_COLUMN) != 0;
	const char *key = from ? likely_key(from) : NULL;

	if (from && from->parser)
		cmd_hint("a sample is stored as the bytes that it is, and can be parsed: %s makes "
			 "fields of what it consists of", from->parser);
	if (key && !*paths)
		cmd_hint("keys are numbers: --key=%s takes them from the column '%s'", key, key);
	if (!from || from->opts.format)
		return;
	if (from->members_share)
		cmd_hint("each member is a sample by itself: --from=webdataset makes one sample of "
			 "those that have a name in common");
	if (*paths && row_names_file(from->shards, paths, strlen(paths)))
		cmd_hint("%s", FROM_HEADER);
	else if (*paths)
		cmd_hint("the column '%s' names files, and the samples are only rows: "
			 "--from=manifest%s%s takes the files", paths,
			 payload ? " --payload=" : "", payload ? paths : "");
}

bool from_has_types(const struct from *from)
{
	return from && from->format->options & FROM_TYPES;
}

void from_progress(const struct from *from, struct stele_progress *progress)
{
	progress->bytes_done = __atomic_load_n(&from->done, __ATOMIC_RELAXED);
	progress->bytes_total = __atomic_load_n(&from->total, __ATOMIC_RELAXED);
}

const struct stele_source_ops *from_ops(const struct from *from)
{
	return from_read_ops[from->format->kind];
}
