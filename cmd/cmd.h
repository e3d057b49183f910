/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - what every command of the program shares
 *
 * stdout carries data, stderr messages. A message begins with "stele: ", says
 * what failed first, and takes its reason from a code that a function
 * returned, never from errno. A command ends through cmd_finish(), because
 * output that did not reach its file is a failure like any other.
 */
#ifndef STELE_CMD_CMD_H
#define STELE_CMD_CMD_H

#include "stele.h"

#include <getopt.h>

enum cmd_status {
	CMD_OK = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,
	CMD_DAMAGED = 3,
};

struct cmd {
	const char *name;
	int (*run)(const struct cmd *cmd, int argc, char **argv);
	const char *summary;
	const char *usage; /* below "usage: stele ", at most 80 columns */
};

/* Before `cmd` runs with these words: whose messages and remedies these are. */
void cmd_begin(const struct cmd *cmd, char **argv);
/* What stands behind the options, once they are read; ends with NULL. Before cmd_begin(): none. */
char *const *cmd_arguments(void);

#define CMD_FORMAT(n) __attribute__((format(printf, n, (n) + 1)))

/* `stele: MESSAGE`. */
void cmd_message(const char *format, ...) CMD_FORMAT(1);
/* `stele: MESSAGE: REASON`, the reason being that of a negative errno. */
void cmd_error(int error, const char *format, ...) CMD_FORMAT(2);
/* `hint: MESSAGE`, below a message: the next step. */
void cmd_hint(const char *format, ...) CMD_FORMAT(1);
/*
 * A message, and where to find help; NULL: getopt_long() gave one, to which is added the
 * option that may have been meant. Return: CMD_USAGE.
 */
int cmd_misuse(const struct cmd *cmd, const char *format, ...) CMD_FORMAT(2);
/* What is not made a file of that name: "-", a URL. Return: CMD_OK; CMD_USAGE (said). */
int cmd_refuse_target(const struct cmd *cmd, const char *target);
/*
 * For --size of a target: as parse_size(), rounded up to a multiple of 4096, which is said.
 */
const char *cmd_parse_target_size(const char *text, uint64_t *out);
/*
 * The next option, as getopt_long() has it; -1: no more. --help, and a word that is no
 * option, end the program.
 */
int cmd_option(const struct cmd *cmd, int argc, char **argv, const char *letters,
	       const struct option *options);
/* `wanted`: NULL, or what `optarg` had to be for this option, which ends the program. */
void cmd_option_value(const struct cmd *cmd, const struct option *options, int option,
		      const char *wanted);
/*
 * All options of a command that has none but --help and, with `json` (may be NULL),
 * --json. The arguments begin at optind.
 */
void cmd_getopt(const struct cmd *cmd, int argc, char **argv, bool *json);
/* `path` cannot be created, because the directory that it would be in does not exist. */
void cmd_no_directory(const char *path);
/* Part of the output is missing or wrong, for lack of memory. */
void cmd_lost(void);
/* First of all: from now on, why stdout takes no more is known to the end. */
void cmd_output_begin(void);
/* Flush stdout. Return: `status`, or CMD_FAILED (said) if output was lost. */
int cmd_finish(int status);

/*
 * For the log callbacks of the library; `user` is a struct cmd_log. The last error of a
 * failed call is in stele_errmsg(): cmd_log_error() prints it, once,
 * and cmd_finish() prints an error that made no call fail.
 */
struct cmd_log {
	const char *target; /* or another name that the user gave */
	bool quiet;	    /* no warnings */
	unsigned int errors_max; /* lines of them, of which others are dropped; 0: no limit */
	unsigned int errors;
};
void cmd_log_line(void *user, enum stele_log_level level, const char *line);
/*
 * After a call of the library that failed with `error`: its message, and what can be done.
 * `target`: what was named to it, or NULL.
 */
void cmd_log_error(int error, const char *target);
/* With the remedies of `verb`, which remedy.c knows, instead of the command's. */
void cmd_log_error_as(const char *verb, int error, const char *target);

/* CMD_DAMAGED for checksums and structures, CMD_USAGE for -EINVAL, else CMD_FAILED. */
int cmd_status_of(int error);

/* A file of such a name is written "./rbd:...". */
bool cmd_is_rbd(const char *target);
/* `target` without what selects a snapshot, or the '@' behind a name that has one. Owned. */
char *cmd_path_of(const char *target);
/* What follows the '@' that divides, a name or "sha256:HEX"; NULL: nothing. */
const char *cmd_snapshot_of(const char *target);
/* Does it select a snapshot, by name or digest? */
bool cmd_names_snapshot(const char *target);
/* Is it a whole image that the command is given? Return: -1: it is; the status to end with. */
int cmd_check_whole(const char *name, const char *target);

/*
 * Take --ceph-conf, --ceph-user, --timeout and --progress out of the arguments before "--".
 * False: wrong usage, said.
 */
bool cmd_take_ceph(int *argc, char **argv);
/*
 * Complete abbreviated digests, TARGET@sha256:HEX, from what the target holds. Return: -1 (go
 * on); CMD_FAILED: it holds no such snapshot; CMD_USAGE: several, or too few digits (said).
 */
int cmd_complete_digests(char **words);
/*
 * Are the environment variables that the program honours valid? Not checked if `words`
 * ask for help. Return: -1 (go on); CMD_USAGE (said).
 */
int cmd_check_environment(const struct cmd *cmd, char **words);

/*
 * Open log->target for reading. The log must live as long as the dataset.
 * @verify: enum stele_verify
 * Return: 0; negative errno (said).
 */
int cmd_open_dataset(struct cmd_log *log, uint32_t verify,
		     struct stele_dataset **out);
int cmd_open_image(struct cmd_log *log, struct stele_image **out);

int cmd_append(const struct cmd *cmd, int argc, char **argv);
int cmd_compact(const struct cmd *cmd, int argc, char **argv);
int cmd_bench(const struct cmd *cmd, int argc, char **argv);
int cmd_build(const struct cmd *cmd, int argc, char **argv);
int cmd_cat(const struct cmd *cmd, int argc, char **argv);
int cmd_copy(const struct cmd *cmd, int argc, char **argv);
int cmd_du(const struct cmd *cmd, int argc, char **argv);
int cmd_diff(const struct cmd *cmd, int argc, char **argv);
int cmd_export(const struct cmd *cmd, int argc, char **argv);
int cmd_extract(const struct cmd *cmd, int argc, char **argv);
int cmd_gc(const struct cmd *cmd, int argc, char **argv);
int cmd_info(const struct cmd *cmd, int argc, char **argv);
int cmd_ls(const struct cmd *cmd, int argc, char **argv);
int cmd_map(const struct cmd *cmd, int argc, char **argv);
int cmd_maps(const struct cmd *cmd, int argc, char **argv);
int cmd_mount(const struct cmd *cmd, int argc, char **argv);
int cmd_query(const struct cmd *cmd, int argc, char **argv);
int cmd_repair(const struct cmd *cmd, int argc, char **argv);
int cmd_posix(const struct cmd *cmd, int argc, char **argv);
int cmd_resize(const struct cmd *cmd, int argc, char **argv);
int cmd_snapshot(const struct cmd *cmd, int argc, char **argv);
/* Its verb that is likely meant by a word that is no command; NULL: none. */
const char *cmd_snapshot_verb(const char *word);
int cmd_tune(const struct cmd *cmd, int argc, char **argv);
int cmd_umount(const struct cmd *cmd, int argc, char **argv);
int cmd_unmap(const struct cmd *cmd, int argc, char **argv);
int cmd_verify(const struct cmd *cmd, int argc, char **argv);
int cmd_view(const struct cmd *cmd, int argc, char **argv);

#endif
