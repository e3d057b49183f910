/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage.h - what to do when 'stele verify' finds damage, in the words of 'stele help damage'
 *
 * For those who have no manual pages, such as of a wheel; the whole of it is DAMAGE in
 * stele-verify(1).
 */
#ifndef STELE_CMD_DAMAGE_H
#define STELE_CMD_DAMAGE_H

void damage_help(void);

#endif
