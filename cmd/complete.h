/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.h - what the words of a command line may go on with, for the completion of shells
 */
#ifndef STELE_CMD_COMPLETE_H
#define STELE_CMD_COMPLETE_H

#include "cmd.h"

/*
 * Print one word a line that the last of `words` can be completed to; ":files" stands for the
 * names of files. `words` follow "stele", are terminated by NULL, and the last may be empty.
 * @commands: all of them
 */
int complete_words(const struct cmd *commands, size_t count, char **words);

#endif
