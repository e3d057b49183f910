#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
#
# reader.pl - a second reader of images, written from stele-format(5) alone
#
#	reader.pl [--dump[=SNAPSHOT]] IMAGE
#
# It shares nothing with the library, on purpose: where it and the library
# read the same, the page says enough and the library does what it says.
# Everything that an image holds is checked and summed up. With --dump the
# summary goes to stderr, and the samples of the latest or of the named
# snapshot are listed: id, key in hex, size, SHA-256 of the payload, scalars.
# Status 0: sound. 3: damaged; the first damage ends it, but for that of a copy
# that recovery passes over. Functions stand in the order of the page.
use v5.14;
use warnings;
use FindBin '$RealBin';
use lib "$RealBin/reader";
use Blocks;
use Digest::SHA qw(sha256);
use Segment;

use constant {
	SUPERBLOCK => 1, CATALOG => 2, DELETED => 3,
	START => 0x200000, LIMIT => 2**62,
};

# ---- superblock and recovery ----

sub superblock {	# OFFSET
	my ($offset) = @_;
	my $block = bytes_at($offset, BLOCK);
	my $payload = block_payload($block, $offset, SUPERBLOCK);
	my $s = take('version le32, state le32, compat le64, ro_compat le64,
		incompat le64, uuid 16, label 64, size le64, high_water le64,
		catalog_offset le64, catalog_size le64, catalog_crc le32,
		fence_mode le32, fence_epoch le64, created i64, time i64,
		mirror_offset le64, mirror_crc le32, zero 4, parent le64, lost 64, zero 3800', $payload, 0, "superblock at $offset");
	$s->{generation} = unpack 'Q<', substr $block, 24;
	substr($block, 12, 12) = "\0" x 12;
	$s->{compared} = $block;
	check($s->{version} == 1 && ($s->{incompat} & ~31) == 0,
		'NEWER: version or features');
	check($s->{state} <= 1 && $s->{fence_mode} <= 3, 'state or fence mode');
	$s->{label} = text($s->{label}, 'label');
	check($s->{$_} % BLOCK == 0, $_) for qw(size high_water);
	check(START <= $s->{high_water} && $s->{high_water} <= $s->{size} &&
		START < $s->{size} && $s->{size} <= LIMIT, 'sizes');
	$s->{lost} = text($s->{lost}, 'lost');
	if ($s->{state} == 0) {
		check($s->{$_} == 0, "unfinished: $_") for qw(generation parent
			catalog_offset catalog_size catalog_crc mirror_offset mirror_crc);
		check($s->{high_water} == START, 'unfinished: high-water mark');
		check($s->{lost} eq '', 'unfinished: lost');
		return $s;
	}
	check($s->{generation} && ~$s->{generation}, 'generation');
	check($s->{parent} < $s->{generation}, 'parent');
	my ($at, $size) = @$s{qw(catalog_offset catalog_size)};
	check($at % BLOCK == 0 && $size % BLOCK == 0 && $size > 0 &&
		$size <= 64 << 20 && $at >= START && $at < LIMIT &&
		$at + $size <= $s->{high_water}, 'place of the catalog');
	my $mirror = $s->{mirror_offset};
	check(!$mirror || $s->{incompat} & 16, 'MIRROR missing');
	check($mirror ? ($mirror == 0x102000 || $mirror == 0x181000) && $size <= 0x7f000 :
		!$s->{mirror_crc}, 'place of the mirror');
	return $s;
}

# Of a witness: does it stand in for copies that are not there?
sub counts {	# WITNESS COPIES...
	my ($w, @good) = @_;
	my ($newest) = sort { $b <=> $a } map { $_->{generation} } @good;
	return $w->{state} if !@good;
	return $w->{state} && $w->{generation} > $newest &&
		($newest ? $w->{parent} >= $newest : !$w->{parent}) &&
		grep { $_->{uuid} eq $w->{uuid} && $_->{created} == $w->{created} } @good;
}

sub recover {
	my (@good, @notes, @reasons, @witnesses);
	for my $offset (0x1000, 0x2000, 0x100000, 0x101000, 0x180000, 0x1ff000) {
		my $s = eval { superblock($offset) };
		my $why = $s ? ($s->{state} ? 'ready' : 'unfinished') .
			" generation $s->{generation}" : $@ =~ s/\n//r;
		check(0, sprintf 'superblock at 0x%x: %s', $offset, $why) if $why =~ /^NEWER/;
		push @{$offset < 0x180000 ? \@good : \@witnesses}, $s if $s;
		push @notes, sprintf 'superblock at 0x%x: %s', $offset, $why
			if $offset < 0x180000;
	}
	push @good, grep { counts($_, @good) } @witnesses;
	check(@good, join '; ', @notes);
	my %of = map { join('|', @$_{qw(uuid label created)}) => 1 } @good;
	push @reasons, "copies of several images\n" if %of > 1;
	my %same = map { $_->{compared} => $_->{generation} } @good;
	my %generations = map { $_ => 1 } values %same;
	push @reasons, "copies of one generation differ\n"
		if keys %same != keys %generations;
	for my $s (sort { $b->{generation} <=> $a->{generation} } @good) {
		check($s->{compared} eq $_->{compared}, 'a fork')
			for grep { $_->{generation} == $s->{generation} } @good;
		check($s->{state}, join '; ', 'nothing to read', @notes, @reasons);
		check($s->{size} <= image_size(), 'the target is too short');
		my $first = eval { catalog($s, @$s{qw(catalog_offset catalog_crc)}) };
		push @reasons, "generation $s->{generation}: $@" unless $first;
		my $mirror = !$s->{mirror_offset} ||
			eval { catalog($s, @$s{qw(mirror_offset mirror_crc)}) };
		push @reasons, "generation $s->{generation}, mirror: $@" unless $mirror;
		$s->{catalog} = $first || $s->{mirror_offset} && $mirror;
		return ($s, \@notes, \@reasons) if $s->{catalog};
	}
	check(0, join '; ', @notes, @reasons);
}

# ---- catalog ----

my $segment_row = 'id le64, offset le64, size le64, descriptor_size le64,
	count le64, unused i64, zero 16';
my $snapshot_row = 'name 64, id le64, parent le64, time i64, count le64,
	digest 32, ref_index le32, ref_count le32, note_offset le32,
	note_size le32, signature_index le32, signature_count le32, source_time i64, payload le64,
	deleted i64, zero 16';
my $ref_row = 'segment le32, zero le32, count le64,
	offset0 le64, words0 le64, owner0 le64, offset1 le64, words1 le64, owner1 le64';

sub catalog {	# SUPERBLOCK OFFSET CRC: that one, or its mirror
	my ($s, $offset, $crc) = @_;
	my $blocks = bytes_at($offset, $s->{catalog_size});
	check(crc32c($blocks) == $crc, 'catalog: crc');
	my @payloads = payloads($offset, $s->{catalog_size}, CATALOG, $s->{generation});
	my $c = take('size le64, segments le32, snapshots le32, refs le32,
		free le32, signatures le32, notes le32, next_id le64,
		deleted le32, zero 20',
		$payloads[0], 0, 'catalog');
	my $stream = stream($c->{size}, 'catalog', @payloads);
	check(!$c->{deleted} || $s->{incompat} & 8, 'UNDELETE missing');
	$c->{live} = $c->{snapshots};
	$c->{snapshots} += $c->{deleted};
	check($c->{segments} <= 16384 && $c->{snapshots} <= 16384 &&
		$c->{refs} <= 1 << 20 && $c->{free} <= 65536 &&
		$c->{signatures} <= 65536 && $c->{notes} <= 16 << 20,
		'catalog: too many of something');
	my $at = 64;
	my $table = sub {	# COUNT SIZE ROW WHAT
		my ($count, $size, $row, $what) = @_;
		my @rows = map { take($row, $stream, $at + $_ * $size, $what) }
			0 .. $count - 1;
		$at += $count * $size;
		return \@rows;
	};
	for ([segments => 64, $segment_row], [snapshots => 192, $snapshot_row],
	     [refs => 64, $ref_row], [free => 16, 'offset le64, size le64'],
	     [signatures => 112, 'key 32, sequence le64, zero 8, bytes 64']) {
		my ($name, $size, $row) = @$_;
		$c->{$name} = $table->($c->{$name}, $size, $row, $name);
	}
	check($at + $c->{notes} == $c->{size}, 'catalog: size');
	$c->{notes} = substr $stream, $at;
	check_snapshots($s, $c);
	check_extents($s, $c);
	return $c;
}

sub check_snapshots {	# SUPERBLOCK CATALOG
	my ($s, $c) = @_;
	my ($id, $max, $ref, $note, $signature) = (0) x 5;
	my (%names, %ids, %used, %had);
	for my $index (0 .. $#{$c->{snapshots}}) {
		my $snap = $c->{snapshots}[$index];
		my $deleted = $index >= $c->{live};
		my $what = "snapshot $snap->{id}";
		$snap->{name} = text($snap->{name}, $what);
		check_name($snap->{name}, $what);
		check($deleted || !$names{$snap->{name}}++, "$what: the name twice");
		check($deleted ? $snap->{deleted} > 0 : $snap->{deleted} == 0,
			"$what: time of deletion");
		check(!$ids{$snap->{id}}++, "$what: the id twice");
		$id = 0 if $index == $c->{live};
		check($snap->{id} > $id && $snap->{parent} < $snap->{id},
			"$what: id");
		check($snap->{note_offset} == $note &&
			$snap->{signature_index} == $signature, "$what: a gap");
		$id = $snap->{id};
		$max = $id if $id > $max;
		$ref += $snap->{ref_count};
		$note += $snap->{note_size};
		$signature += $snap->{signature_count};
		my $end = $snap->{ref_index} + $snap->{ref_count};
		check($end <= @{$c->{refs}}, "$what: references");
		$had{$_} = 1 for $snap->{ref_index} .. $end - 1;
		my @refs = @{$c->{refs}}[$snap->{ref_index} .. $end - 1];
		my ($live, %seen) = (0);
		for (@refs) {
			my $of = $c->{segments}[$_->{segment}];
			check($of && !$seen{$_->{segment}}++, "$what: segment");
			check($_->{count} <= $of->{count}, "$what: deleted");
			check(!$_->{count} == !$_->{offset0} && ($_->{offset0} || !$_->{offset1}),
				"$what: deleted");
			check(!$_->{count} || $s->{incompat} & 1, 'DELETED missing');
			for my $i (0, 1) {
				my ($offset, $words, $owner) = @$_{"offset$i", "words$i", "owner$i"};
				check($offset ? $words && $owner : !$words && !$owner, "$what: list");
				check($owner <= $s->{generation}, "$what: owner");
			}
			$live += $of->{count} - $_->{count};
			$used{$_->{segment}} = 1 unless $deleted;
		}
		check($live == $snap->{count}, "$what: count");
		$snap->{refs} = \@refs;
	}
	for (0 .. $#{$c->{segments}}) {
		my $unused = $c->{segments}[$_]{unused};
		check($used{$_} ? $unused == 0 : $unused > 0,
			"segment $_: unused since $unused");
	}
	check($c->{next_id} > $max, 'id of the next snapshot');
	check($ref <= 1 << 20, 'too many references');
	check(keys %had == @{$c->{refs}} && $note == length $c->{notes} &&
		$signature == @{$c->{signatures}}, 'something of no snapshot');
	check(!$signature || $s->{compat} & 1, 'SIGNATURES missing');
}

sub check_extents {	# SUPERBLOCK CATALOG: they lie apart
	my ($s, $c) = @_;
	my (%ids, @all);
	for my $list (qw(segments free)) {
		my $last = -1;
		for (@{$c->{$list}}) {
			check($_->{offset} > $last, "$list: not ascending");
			$last = $_->{offset} + ($list eq 'free' ? $_->{size} : 0);
			push @all, [$_->{offset}, $_->{size}, $list];
		}
	}
	for (@{$c->{segments}}) {
		check($_->{id} && ~$_->{id} && !$ids{$_->{id}}++, 'segment id');
		check($_->{descriptor_size} % BLOCK == 0 &&
			$_->{descriptor_size} <= 512 << 20 &&
			$_->{descriptor_size} * 2 <= $_->{size} &&
			$_->{descriptor_size} && $_->{count} <= 1 << 48,
			"segment $_->{id}: sizes");
	}
	my (%lists, %seconds);
	for my $ref (@{$c->{refs}}) {
		for (lists($ref)) {
			my ($offset, $words) = @$_;
			my $of = join ' ', @$_, $ref->{segment}, @$_[0] == $ref->{offset0} ? '' : $ref->{offset0};
			push @all, [$offset, ceil_div($words, 254) * BLOCK, 'deleted'] unless $lists{$offset};
			check(($lists{$offset} //= $of) eq $of, 'deleted list: two of them');
		}
		$seconds{$ref->{offset0}}{$ref->{offset1}} = 1 if $ref->{offset1};
	}
	check(!grep({ keys %$_ > 64 } values %seconds), 'too many second lists');
	push @all, [@$s{qw(catalog_offset catalog_size)}, 'catalog'];
	my ($end, $last) = (START, '');
	for (sort { $a->[0] <=> $b->[0] } @all) {
		my ($offset, $size, $what) = @$_;
		check($offset % BLOCK == 0 && $size % BLOCK == 0 && $size,
			"$what: alignment");
		check($offset >= $end, "$what: overlap");
		check($offset <= $end, "$what: unused space that is not free");
		$end = $offset + $size if $offset + $size > $end;
		$last = $what;
	}
	check($end == $s->{high_water}, 'the high-water mark');
}

sub lists {	# REFERENCE: offset, words, owner of its deleted lists
	my ($ref) = @_;
	return grep { $_->[0] } map { [@$ref{"offset$_", "words$_", "owner$_"}] } 0, 1;
}

sub deleted {	# REFERENCE: its words, by index; the numbers
	my ($ref) = @_;
	my (%words, @numbers);
	for (lists($ref)) {
		my ($offset, $count, $owner) = @$_;
		my @blocks = payloads($offset, ceil_div($count, 254) * BLOCK, DELETED, $owner);
		my @list = unpack 'Q<*', entries(254, 16, $count, 'deleted list', @blocks);
		my $last = -1;
		while (my ($index, $bits) = splice @list, 0, 2) {
			check($index > $last && $bits, 'deleted list: words');
			$last = $index;
			check(!(($words{$index} // 0) & $bits), 'deleted list: twice');
			$words{$index} |= $bits;
		}
	}
	for my $index (sort { $a <=> $b } keys %words) {
		push @numbers, map { 64 * $index + $_ }
			grep { $words{$index} >> $_ & 1 } 0 .. 63;
	}
	check(@numbers == $ref->{count}, 'deleted list: count');
	return \%words, @numbers;
}

# ---- snapshots ----

sub check_extends {	# SEGMENT SEGMENT WHAT: same fields, names only added
	my ($a, $b, $what) = @_;
	check($a->{field_bytes} eq $b->{field_bytes}, "$what: other fields");
	for my $i (0 .. $#{$a->{fields}}) {
		my ($old, $new) = map { $_->{fields}[$i]{name_list} // [] } $a, $b;
		check(@$new >= @$old && !grep({ $old->[$_] ne $new->[$_] }
			0 .. $#$old), "$what: names change");
	}
}

sub snapshot {	# SUPERBLOCK SNAPSHOT: its live samples
	my ($s, $snap) = @_;
	my $what = "snapshot $snap->{name}";
	my $all = pack 'C Q<', 2, scalar @{$snap->{refs}};
	my ($payload, @live, %keys, $before) = (0);
	for my $ref (@{$snap->{refs}}) {
		my $d = $s->{catalog}{segments}[$ref->{segment}]{read};
		check_extends($before, $d, $what) if $before;
		$before = $d;
		my ($words, @deleted) = deleted($ref);
		check(!@deleted || $deleted[-1] < $d->{count}, "$what: deleted number");
		$all .= $d->{schema} . pack('Q<', $d->{count}) . $d->{root} .
			pack('Q<', scalar @deleted) . (@deleted ?
			sha256(pack 'C Q<*', 4, map { $_, $words->{$_} }
				sort { $a <=> $b } keys %$words) : "\0" x 32);
		my %is_deleted = map { $_ => 1 } @deleted;
		for (grep { !$is_deleted{$_} } 0 .. $d->{count} - 1) {
			my $r = $d->{records}[$_];
			check(!$r->{void}, "$what: sample $_ is void and lives");
			check(!$keys{$r->{key}}++, "$what: key of $_ twice");
			$payload += $r->{size};
			push @live, {%$r, fields => [map {
				$d->{fields}[$_]{type} == F64 } @{$d->{scalars}}]};
		}
	}
	check(sha256($all) eq $snap->{digest}, "$what: digest");
	check($payload == $snap->{payload}, "$what: payload");
	return \@live;
}

sub dump_samples {	# LIVE
	my ($live) = @_;
	for my $id (0 .. $#$live) {
		my $r = $live->[$id];
		my @scalars = map { number($r->{fields}[$_], $r->{scalars}[$_]) }
			0 .. $#{$r->{scalars}};
		say join ' ', $id, unpack('H*', $r->{key}), @$r{qw(size sha)}, @scalars;
	}
}

sub report {	# SUPERBLOCK
	my ($s) = @_;
	my $c = $s->{catalog};
	say "image ", unpack('H*', $s->{uuid}), " label '$s->{label}' size $s->{size}",
		" high-water $s->{high_water}";
	for (map { $_->{read} } @{$c->{segments}}) {
		say "segment $_->{id} samples $_->{count} payload $_->{payload_sum}",
			" granule $_->{granule} boundary $_->{boundary}",
			' runs ', scalar @{$_->{runs}}, ' levels ', $_->{levels} // 0,
			' keys ', $_->{is_sorted} ? 'sorted' : 'unsorted';
		say '  section ', join ' ', 'type', $_->{type},
			"count $_->{count}",
			$_->{field} != NO_FIELD ? "field $_->{field}" : () for @{$_->{sections}};
		say "  field $_->{name} type $_->{type}",
			defined $_->{names} ? " names $_->{names}" : '' for @{$_->{fields}};
	}
	say $_->{deleted} ? 'deleted ' : '',
		"snapshot $_->{name} id $_->{id} samples $_->{count} segments ",
		"$_->{ref_count} digest ", unpack 'H*', $_->{digest}
		for @{$c->{snapshots}};
}

# ---- command line ----

my ($dump, $wanted);
if (@ARGV && $ARGV[0] =~ /\A--dump(?:=(.*))?\z/) {
	($dump, $wanted) = (1, $1);
	shift;
}
@ARGV == 1 && $ARGV[0] !~ /\A-/ or die "usage: reader.pl [--dump[=SNAPSHOT]] IMAGE\n";
image_open($ARGV[0]) or die "$ARGV[0]: $!\n";

eval {
	my ($s, $notes, $reasons) = recover();
	my @snapshots = @{$s->{catalog}{snapshots}};
	$_->{read} = segment($_) for @{$s->{catalog}{segments}};
	$_->{live} = snapshot($s, $_) for @snapshots;
	select STDERR if $dump;
	say for @$notes;
	report($s);
	if ($dump) {
		my @live = grep { !$_->{deleted} } @snapshots;
		my ($from) = grep { $_->{name} eq ($wanted // $live[-1]{name}) }
			@live or check(0, 'no such snapshot');
		select STDOUT;
		dump_samples($from->{live});
	}
	check(!@$reasons && !grep(!/: (ready|unfinished) generation/, @$notes),
		join '; ', @$notes, @$reasons);
	1;
} or do {
	print STDERR "damaged: $@";
	exit 3;
};
