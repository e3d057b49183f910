/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - stele query: SQL over the fields of samples
 *
 * Reading is all that it does, so a signal may end it at any moment.
 */
#include "cmd.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "query/print.h"
#include "where.h"

static const struct option longopts[] = {
	{"csv", no_argument, NULL, 'c'},
	{"ids", no_argument, NULL, 'i'},
	{"json", no_argument, NULL, 'J'},
	{"table", no_argument, NULL, 't'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int query(struct stele_dataset *ds, const char *sql, enum print_format format,
		 struct cmd_log *log)
{
	const struct stele_query_opts opts = {
		.size = sizeof(opts),
		.log = cmd_log_line,
		.log_user = log,
		.progress = progress_show,
	};
	struct stele_query *rows;
	const char *where = strcasestr(sql, "where");
	uint64_t count = 0;
	int error = stele_query_open(ds, sql, &opts, &rows);

	if (error) {
		cmd_log_error(error, log->target);
		return cmd_status_of(error);
	}
	/* Where rows are shown, they say how far it is. */
	progress_start(!isatty(STDOUT_FILENO));
	error = print_rows(rows, format, &count);
	progress_end();
	if (!error && !count && where)
		where_hint_names(ds, where);
	if (error && error != -ENOENT)
		cmd_log_error(error, log->target);
	stele_query_close(rows);
	return error == -ENOENT ? CMD_USAGE : error ? cmd_status_of(error) : CMD_OK;
}

int cmd_query(const struct cmd *cmd, int argc, char **argv)
{
	enum print_format format = isatty(STDOUT_FILENO) ? PRINT_TABLE : PRINT_CSV;
	struct cmd_log log = {0};
	struct stele_dataset *ds;
	int c, status, given = 0;

	while ((c = cmd_option(cmd, argc, argv, "h", longopts)) != -1) {
		given++;
		format = c == 'c' ? PRINT_CSV :
			 c == 'i' ? PRINT_IDS :
			 c == 'J' ? PRINT_JSON :
				    PRINT_TABLE;
	}
	if (given > 1)
		return cmd_misuse(cmd, "only one of --csv, --ids, --json and --table");
	if (argc - optind != 2)
		return cmd_misuse(cmd, "query needs a TARGET and one SELECT in quotes");
	log.target = argv[optind];
	status = cmd_open_dataset(&log, STELE_VERIFY_DEFAULT, &ds);
	if (status)
		return cmd_finish(cmd_status_of(status));
	status = query(ds, argv[optind + 1], format, &log);
	stele_dataset_close(ds);
	return cmd_finish(status);
}
