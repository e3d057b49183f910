/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage.c - see damage.h; docs/damage.md shows the same, and a test that it does
 */
#include "damage.h"

#include <stdio.h>

void damage_help(void)
{
	fputs("What to do about damage. Whatever is sound can be read, and no read returns\n"
	      "what is not; 'stele verify' lists what is damaged, here IMAGE@v2.\n"
	      "\n"
	      "If the snapshot is whole elsewhere, copy it from there to another target:\n"
	      "\n"
	      "    stele copy ELSEWHERE@v2 OTHER\n"
	      "\n"
	      "Else leave the damaged samples ('record') out, by key, or by id as verify prints\n"
	      "it. Copies are refused until compact has written the others anew:\n"
	      "\n"
	      "    stele snapshot create --base=v2 -d cats/1.jpg -d '#7' IMAGE@less\n"
	      "    stele compact IMAGE@less sound\n"
	      "    stele copy IMAGE@sound OTHER\n"
	      "\n"
	      "If their files are at hand, 'stele append --base=sound' adds them again.\n"
	      "\n"
	      "What is damaged, and what still works:\n"
	      "\n"
	      "  superblock, catalog  Everything that has a sound copy: 'stele repair' writes the\n"
	      "                       others anew, or says why it cannot. If all are damaged,\n"
	      "                       write nothing there: restore the first 2 MiB as they were\n"
	      "                       after the last change, or copy the image from elsewhere.\n"
	      "  image                If it is cut short: give its target the full size again.\n"
	      "  descriptor           Everything, as long as the other one of the segment is\n"
	      "                       sound; if not, the snapshots without that segment.\n"
	      "  order, column        Reading; 'stele compact' writes them anew, as it does a\n"
	      "                       descriptor; then delete the snapshot, and run gc.\n"
	      "  tree \"not what the snapshots make\"\n"
	      "                       All but what is mounted: 'stele posix on' writes it anew.\n"
	      "  keys, digests, tree  Reading all samples: a program can write those that are\n"
	      "                       sound, with their keys and fields, to another image:\n"
	      "\n"
	      "    ds = stele.open(\"IMAGE@v2\")\n"
	      "    names = {}  # that are damaged: {\"label\": [\"cats\", \"dogs\"]}\n"
	      "    with stele.Writer(\"OTHER\", {**ds.fields, **names}) as writer:\n"
	      "        for i in range(len(ds)):\n"
	      "            try:\n"
	      "                writer.put(ds[i].key, ds[i])\n"
	      "            except (stele.ChecksumError, stele.CorruptError) as error:\n"
	      "                print(f\"left out: sample {i}: {error}\")\n"
	      "\n"
	      "  deleted list         All other snapshots. 'stele append --update --base=OLDER'\n"
	      "                       makes this one again from its source.\n"
	      "  names                Reading: labels are numbers. Copy the snapshot from\n"
	      "                       elsewhere, or have the program write it with the names.\n"
	      "  schema               Nothing: copy it from elsewhere, or build it again.\n"
	      "\n"
	      "What any snapshot lacks may keep all from being changed as long as the image can\n"
	      "be mounted: then run 'stele posix off' first.\n"
	      "\n"
	      "More in DAMAGE of stele-verify(1).\n",
	      stdout);
}
