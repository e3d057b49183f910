#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# contrib.t - what contrib/ and packaging/ hand to other programs, those take
. "${0%/*}/../tap.sh"

requires file --version
requires rpmspec --version
top=$PWD
cd "$tmp" || bail "cd"

mkdir src
head -c 100000 /dev/urandom >src/a
must stele build -q --label='cats & dogs' src image@v1
must stele build -q --posix src mountable
uuid=$(stele info --json image | jq -r .image.uuid)

# file(1)
magic() { file -b -m "$top/contrib/magic" "$1"; }
is "Stele image, version 1, label \"cats & dogs\", UUID $uuid" "$(magic image)" "magic: an image"
cp image hurt
must dd if=/dev/zero of=hurt bs=4096 seek=1 count=1 conv=notrunc
is "Stele image, first superblock damaged, version 1, label \"cats & dogs\", UUID $uuid" \
	"$(magic hurt)" "magic: by the second superblock"
must stele snapshot create image@v2
is "Stele image, version 1, label \"cats & dogs\", UUID $uuid" "$(magic image)" \
	"magic: after the second commit"
is "data" "$(magic src/a)" "magic: no image"
is "application/x-stele" "$(file -b --mime-type -m "$top/contrib/magic" image)" "magic: its type"

# systemd: a unit for each file, and what it runs.
unit=$top/contrib/systemd/stele-map@.service
sed "s,/usr/bin/stele,$BUILD/stele," "$unit" >stele-map@.service
is "" "$(systemd-analyze verify --man=no "$PWD/stele-map@.service" 2>&1)" "a sound unit"
mkdir maps.d units
printf 'TARGET=%s\nOPTIONS=--read-only\n' "$tmp/image@v1" >maps.d/cats.conf
touch maps.d/{.hidden,'two words',-dash,pets}.conf maps.d/other
must env STELE_MAPS_DIR="$tmp/maps.d" "$top/contrib/systemd/stele-maps-generator" units
is "stele-map@cats.service stele-map@pets.service" \
	"$(cd units/multi-user.target.wants && echo *)" "an instance for each valid name"
must env STELE_MAPS_DIR="$tmp/none" "$top/contrib/systemd/stele-maps-generator" none
is no "$([ -e none ] && echo yes || echo no)" "and none without files"
# shellcheck disable=SC1091 # written above
. ./maps.d/cats.conf
command=$(sed -n 's/^ExecStart=//p' stele-map@.service)
command=${command//%i/cats}
command=${command/\$\{TARGET\}/$TARGET}
# shellcheck disable=SC2086 # as systemd splits it; --read-only is for devices
run ${command/\$OPTIONS/}
is "0 cats" "$status $out" "it maps"

# The node exporter.
must stele map "$tmp/mountable" gone
rm mountable
must "$top/contrib/stele-textfile" "$tmp/stele.prom"
is "stele_mapped_up{name=\"cats\"} 1
stele_mapped_up{name=\"gone\"} 0" "$(grep ^stele_mapped_up stele.prom)" "figures of what is mapped"
is 1 "$(grep -c '^stele_mapped_samples{name="cats",snapshot="v1",digest="[0-9a-f]*"} 1$' \
	stele.prom)" "its samples"
is "" "$(grep -vE '^(# (HELP|TYPE) .+|[a-z_]+\{([a-z]+="[^"]*",?)+\} [0-9]+)$' stele.prom)" \
	"in the text format"
is stele.prom "$(ls stele.prom*)" "and nothing beside it"
for words in "" --help; do
	# shellcheck disable=SC2086 # no word
	run "$top/contrib/stele-textfile" $words
	is "2 usage: stele-textfile FILE [SECONDS [BENCH OPTION...]]" "$status $out$err" \
		"stele-textfile $words: how it is called"
done

# libblkid's prober has the superblock where we have it.
{
	printf '#include <stddef.h>\n#include "format/superblock.h"\n'
	sed -n '/^+struct stele_super_block {/,/^+}/s/^+//p' "$top"/contrib/libblkid/*.patch
	for field in offset generation; do
		echo "enum { AT_$field = offsetof(struct stele_super_block, $field) };"
	done
	for field in version state uuid label; do
		echo "_Static_assert(offsetof(struct stele_super_block, $field) ==
			offsetof(struct stele_disk_superblock, $field), \"\");"
	done
	echo '_Static_assert(AT_offset == offsetof(struct stele_disk_block, offset) &&
		AT_generation == offsetof(struct stele_disk_block, owner) &&
		sizeof(struct stele_super_block) == STELE_BLOCK_SIZE, "");'
} >prober.c
ok "libblkid: offsets" "${CC:-cc}" -I"$top" -fsyntax-only prober.c

is "" "$(cd "$top" && rpmspec -P packaging/stele.spec 2>&1 >/dev/null)" "the RPM spec is sound"
is "$(stele --version)" "stele $(sed -n 's/^Version: *//p' "$top/packaging/stele.spec")" \
	"and of this version"

done_testing
