/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - another program, run to its end
 */
#ifndef STELE_CMD_TOOL_H
#define STELE_CMD_TOOL_H

#define TOOL_OUTPUT_SIZE 4096

/*
 * Run argv[0] of PATH without input; its standard output is lost. `output`: of standard
 * error, cut. Return: the exit status; -errno (it did not start, or was killed).
 */
int tool_run(char *const argv[], char output[TOOL_OUTPUT_SIZE]);

#endif
