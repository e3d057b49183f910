/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_snapshot.c - stele snapshot: versions of an image come, go, are listed
 *
 * One table of options for all verbs; each verb says which of them it takes.
 */
#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "key.h"
#include "keys.h"
#include "layout.h"
#include "parse.h"
#include "snapshots.h"
#include "suggest.h"
#include "text.h"
#include "where.h"

static const struct option longopts[] = {
	{"as", required_argument, NULL, 'a'},
	{"base", required_argument, NULL, 'b'},
	{"delete", required_argument, NULL, 'd'},
	{"deleted", no_argument, NULL, 'D'},
	{"dry-run", no_argument, NULL, 'n'},
	{"force", no_argument, NULL, 'f'},
	{"grace", required_argument, NULL, 'g'},
	{"json", no_argument, NULL, 'J'},
	{"keys-from", required_argument, NULL, 'k'},
	{"note", required_argument, NULL, 'N'},
	{"null", no_argument, NULL, '0'},
	{"time", required_argument, NULL, 't'},
	{"where", required_argument, NULL, 'w'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

#define FILES_MAX 16 /* of --keys-from */

struct request {
	struct stele_txn_opts opts;
	const char *as, *base, *note, *where;
	struct keys keys;
	const char *files[FILES_MAX];
	unsigned int file_count;
	bool deleted, json, null;
	int error; /* of what the options need; to be said */
	char used[32]; /* options that were given, each once */
};

/* ---- verbs -------------------------------------------------------------------- */

static void log_to(struct request *request, struct cmd_log *log)
{
	request->opts.log = cmd_log_line;
	request->opts.log_user = log;
}

static bool is_dry_run(const struct request *request)
{
	return request->opts.flags & STELE_DRY_RUN;
}

static int list(struct request *request, int count, char **words)
{
	struct cmd_log log = {.target = words[0]};
	struct stele_image *image;
	struct snapshots snapshots;
	uint32_t first, end;
	int error;

	(void)count;
	error = cmd_open_image(&log, &image);
	if (error)
		return cmd_status_of(error);
	error = snapshots_load(&snapshots, image);
	if (error)
		cmd_error(error, "cannot list '%s'", words[0]);
	else if (!request->json) {
		layout_begin();
		snapshots_print(&snapshots, request->deleted, "");
		layout_end();
	}
	first = request->deleted ? snapshots.count : 0;
	end = request->deleted ? first + snapshots.deleted_count : snapshots.count;
	for (uint32_t i = first; request->json && i < end; i++)
		json_line(snapshots_json(&snapshots, i));
	snapshots_release(&snapshots);
	stele_image_close(image);
	return error ? CMD_FAILED : CMD_OK;
}

static int read_keys(struct request *request)
{
	int error;

	for (unsigned int i = 0; i < request->file_count; i++) {
		error = keys_read(&request->keys, request->files[i],
				  request->null);
		if (error) {
			cmd_message("cannot read '%s': %s", request->files[i],
				    strerror(-error));
			return error;
		}
	}
	return 0;
}

static void print_made(const struct request *request,
		       const struct stele_snapshot_info *made)
{
	char count[TEXT_SIZE], digest[TEXT_HEX_SIZE] = "";
	json_t *object;

	if (request->json) {
		object = snapshots_info_json(made);
		if (is_dry_run(request)) /* it has none yet */
			json_object_del(object, "digest");
		if (request->note)
			json_set_text(object, "note", request->note);
		if (is_dry_run(request))
			json_set(object, "dry_run", json_boolean(true));
		json_line(object);
		return;
	}
	if (is_dry_run(request)) {
		printf("would create snapshot '%s': %s\n", made->name,
		       text_counted(count, made->sample_count, "sample"));
		return;
	}
	printf("snapshot '%s': %s, sha256:%s\n", made->name,
	       text_counted(count, made->sample_count, "sample"),
	       text_hex(digest, made->digest, sizeof(made->digest)));
}

/* As in a list that was written on Windows. */
static bool ends_in_return(const struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++) {
		const struct stele_key_ref *key = &keys->refs[i];

		if (key->size && key->data[key->size - 1] == '\r')
			return true;
	}
	return false;
}

/* As 'stele ls -0' lists them. */
static bool has_nul(const struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		if (memchr(keys->refs[i].data, '\0', keys->refs[i].size))
			return true;
	return false;
}

/* Is one of the files a text that begins so? */
static bool begins_with(const struct keys *keys, const char *mark)
{
	const size_t size = strlen(mark);

	for (size_t i = 0; i < keys->count; i++) {
		const struct stele_key_ref *key = &keys->refs[i];

		for (size_t j = 0; j < keys->text_count; j++)
			if (key->data == keys->texts[j] && key->size >= size &&
			    !memcmp(key->data, mark, size))
				return true;
	}
	return false;
}

static void hint_list(const struct keys *keys)
{
	if (begins_with(keys, "\xff\xfe") || begins_with(keys, "\xfe\xff")) {
		cmd_hint("a list of keys is in UTF-16: 'iconv -f UTF-16 -t UTF-8 FILE' makes UTF-8 "
			 "of it");
		return;
	}
	if (has_nul(keys)) {
		cmd_hint("a list of keys has NUL bytes: -0 takes each for the end of a key");
		return;
	}
	if (begins_with(keys, "\xef\xbb\xbf"))
		cmd_hint("a list of keys begins with a byte order mark, which is taken as part of "
			 "its first key: 'tail -c +4' leaves that out");
	if (ends_in_return(keys))
		cmd_hint("a list of keys has lines that end in \\r\\n, of which the \\r is taken "
			 "as part of the key: 'tr -d \"\\r\"' removes it");
}

static int create_from(struct request *request, const struct where *where)
{
	struct cmd_log log = {.target = where->target};
	struct stele_snapshot_info made = {.size = sizeof(made)};
	const struct stele_deletions deleted = {
		.size = sizeof(deleted),
		.keys = request->keys.refs,
		.key_count = request->keys.count,
		.ids = where->ids,
		.id_count = where->id_count,
		.base_digest = where->ids ? where->digest : NULL,
	};
	int error;

	log_to(request, &log);
	error = stele_snapshot_create(where->target, *where->base ? where->base : NULL,
				      &deleted, request->note, &request->opts, &made);
	if (!error)
		print_made(request, &made);
	else /* of what is not there, the keys or the base may be meant */
		cmd_log_error(error, error == -ENOENT ? NULL : where->target);
	if (!error && !made.sample_count)
		cmd_message("warning: no sample is left in '%s'", made.name);
	if (error == -ENOENT && request->file_count)
		hint_list(&request->keys);
	return error;
}

static int create(struct request *request, int count, char **words)
{
	struct where where = {.expression = request->where, .target = words[0]};
	int error = read_keys(request);

	(void)count;
	if (error)
		return CMD_FAILED;
	if (request->file_count && !request->keys.count && !request->keys.id_count)
		cmd_message("warning: there are no keys in '%s'", request->files[0]);
	snprintf(where.base, sizeof(where.base), "%s", request->base ? request->base : "");
	error = where_find(&where, &request->keys);
	if (!error)
		error = create_from(request, &where);
	where_release(&where);
	return error ? cmd_status_of(error) : CMD_OK;
}

static int rename_one(struct request *request, int count, char **words)
{
	struct cmd_log log = {.target = words[0]};
	int error;

	(void)count;
	log_to(request, &log);
	error = stele_snapshot_rename(words[0], words[1], &request->opts);
	if (!error && is_dry_run(request))
		printf("would rename '%s' to '%s'\n", words[0], words[1]);
	if (!error)
		return CMD_OK;
	cmd_log_error(error, words[0]);
	return cmd_status_of(error);
}

static void hint_undelete(int count, char **words)
{
	if (count == 1)
		cmd_hint("until gc has freed it, 'stele snapshot undelete %s' brings it back",
			 words[0]);
	else
		cmd_hint("until gc has freed them, 'stele snapshot undelete TARGET@NAME' brings "
			 "one back");
}

/* All, or none. */
static int delete_all(struct request *request, int count, char **words)
{
	struct cmd_log log = {.target = words[0]};
	int error;

	log_to(request, &log);
	error = stele_snapshot_delete((const char *const *)words, (size_t)count,
				      &request->opts);
	if (error)
		cmd_log_error(error, words[0]);
	for (int i = 0; i < count && !error && is_dry_run(request); i++)
		printf("would delete '%s'\n", words[i]);
	if (!error && !is_dry_run(request))
		hint_undelete(count, words);
	return error ? cmd_status_of(error) : CMD_OK;
}

static int undelete(struct request *request, int count, char **words)
{
	struct cmd_log log = {.target = words[0]};
	int error;

	(void)count;
	log_to(request, &log);
	error = stele_snapshot_undelete(words[0], request->as, &request->opts);
	if (error)
		cmd_log_error(error, words[0]);
	else if (is_dry_run(request))
		printf("would undelete '%s'%s%s%s\n", words[0], request->as ? " as '" : "",
		       request->as ? request->as : "", request->as ? "'" : "");
	return error ? cmd_status_of(error) : CMD_OK;
}

/* ---- options ------------------------------------------------------------------- */

static const struct verb {
	const char *name;
	int (*run)(struct request *request, int count, char **words);
	const char *options;
	int words_min, words_max; /* behind the verb */
	const char *words;
} verbs[] = {
	{"create", create, "bdJknNtw0", 1, 1, "one TARGET@NAME"},
	{"list", list, "DJ", 1, 1, "one TARGET"},
	{"rename", rename_one, "fgnt", 2, 2, "a TARGET@OLD and a name"},
	{"delete", delete_all, "fgnt", 1, INT_MAX, "a TARGET@NAME"},
	{"undelete", undelete, "ant", 1, 1, "one TARGET@NAME"},
};

static const char *add_key(struct request *request, const char *text)
{
	const char *key, *wanted = parse_text(text, 1, STELE_KEY_SIZE_MAX, &key);
	uint64_t id;

	if (wanted || request->error)
		return wanted;
	if (key_is_id(key, &id))
		request->error = keys_add_id(&request->keys, id);
	else
		request->error = keys_add(&request->keys, key, strlen(key));
	return wanted;
}

static const char *add_file(struct request *request, const char *text)
{
	_Static_assert(FILES_MAX == 16, "as the message says");
	if (request->file_count == FILES_MAX)
		return "no more than 16 files";
	return parse_text(text, 1, PATH_MAX,
			  &request->files[request->file_count++]);
}

/* Return: NULL; what its value wants to be. */
static const char *set_option(struct request *request, int option,
			      const char *text)
{
	switch (option) {
	case 'a':
		return parse_text(text, 1, STELE_NAME_SIZE_MAX, &request->as);
	case 'b':
		return parse_text(text, 1, STELE_NAME_SIZE_MAX, &request->base);
	case 'd':
		return add_key(request, text);
	case 'f':
		request->opts.flags |= STELE_FORCE;
		return NULL;
	case 'g':
		return parse_duration(text, &request->opts.grace);
	case 'k':
		return add_file(request, text);
	case 'n':
		request->opts.flags |= STELE_DRY_RUN;
		return NULL;
	case 'N':
		request->note = text;
		return NULL;
	case 't':
		return parse_time(text, &request->opts.time);
	case 'w':
		return request->where ? "one expression (AND joins two)" :
					parse_text(text, 1, INT_MAX, &request->where);
	default:
		request->deleted |= option == 'D';
		request->json |= option == 'J';
		request->null |= option == '0';
		return NULL;
	}
}

static void parse(const struct cmd *cmd, int argc, char **argv,
		  struct request *request)
{
	int c;

	while ((c = cmd_option(cmd, argc, argv, "d:fn0h", longopts)) != -1) {
		if (!strchr(request->used, c))
			request->used[strlen(request->used)] = (char)c;
		cmd_option_value(cmd, longopts, c, set_option(request, c, optarg));
	}
	if (!request->error)
		return;
	cmd_error(request->error, "cannot process all options");
	exit(CMD_FAILED);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; name && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

/* Has the verb a use for all options? Return: -1; CMD_USAGE. */
static int check(const struct cmd *cmd, const struct verb *verb,
		 const struct request *request, int count, char **words)
{
	for (const char *c = request->used; *c; c++) {
		if (strchr(verb->options, *c))
			continue;
		for (const struct option *o = longopts; o->name; o++)
			if (o->val == *c)
				return cmd_misuse(cmd,
						  "snapshot %s has no option --%s",
						  verb->name, o->name);
	}
	if (count < verb->words_min || count > verb->words_max)
		return cmd_misuse(cmd, "snapshot %s needs %s", verb->name,
				  verb->words);
	if (verb->run == list && cmd_check_whole("snapshot list", words[0]) >= 0)
		return CMD_USAGE;
	/* To delete the last snapshot takes force, whatever its readers get. */
	if ((request->opts.flags & STELE_FORCE) && request->opts.grace &&
	    verb->run != delete_all)
		return cmd_misuse(cmd, "--force gives no --grace");
	return -1;
}

/* What others call it; NULL: none of these. */
static const char *verb_for(const char *word)
{
	static const char *const words[][2] = {
		{"remove", "delete"}, {"rm", "delete"}, {"drop", "delete"}, {"del", "delete"},
		{"add", "create"}, {"new", "create"}, {"make", "create"}, {"tag", "create"},
		{"ls", "list"}, {"show", "list"}, {"mv", "rename"}, {"move", "rename"},
		{"restore", "undelete"}, {"undo", "undelete"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i][0], word))
			return words[i][1];
	return NULL;
}

/* Who wants one made or shown may mean another command. */
const char *cmd_snapshot_verb(const char *word)
{
	const struct verb *verb = find_verb(word);
	const char *meant = verb ? verb->name : verb_for(word);

	if (!verb && meant && !strcmp(meant, "list"))
		return NULL;
	return meant && !strcmp(meant, "create") ? NULL : meant;
}

static int misuse_verb(const struct cmd *cmd, const char *word)
{
	struct suggest names = {.word = word};
	const char *meant = verb_for(word);

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		suggest_offer(&names, verbs[i].name, strlen(verbs[i].name));
	meant = meant ? meant : names.best;
	return cmd_misuse(cmd,
			  "snapshot needs a verb: create, list, rename, delete or undelete%s%s%s",
			  *meant ? " (did you mean '" : "", meant, *meant ? "'?)" : "");
}

int cmd_snapshot(const struct cmd *cmd, int argc, char **argv)
{
	struct request request = {.opts.size = sizeof(request.opts)};
	const struct verb *verb;
	int status;

	parse(cmd, argc, argv, &request);
	argc -= optind;
	argv += optind;
	verb = find_verb(argc ? argv[0] : NULL);
	if (verb)
		status = check(cmd, verb, &request, argc - 1, argv + 1);
	else
		status = misuse_verb(cmd, argc ? argv[0] : "");
	if (status < 0)
		status = cmd_finish(verb->run(&request, argc - 1, argv + 1));
	keys_release(&request.keys);
	return status;
}
