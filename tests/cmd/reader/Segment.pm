# SPDX-License-Identifier: Apache-2.0
#
# Segment.pm - one segment: descriptor, runs, records, sections
#
# segment() checks it all, and returns the descriptor as a hash, with the
# records by number. Functions stand in the order of the page.
package Segment;
use v5.14;
use warnings;
use Blocks;
use Digest::SHA qw(sha256 sha256_hex);
use Exporter 'import';

use constant {
	DESCRIPTOR => 4, KEYS => 5, ORDER => 6, COLUMN => 7, DIGESTS => 8,
	TREE => 9, NAMES => 10, UTF8 => 2, TENSOR => 3, I64 => 4, F64 => 5, NO_FIELD => 0xffffffff,
};
our @EXPORT = qw(segment number F64 NO_FIELD);

# ---- segments ----

my $descriptor_row = 'id le64, stream le64, offset le64, size le64, count le64,
	payload_sum le64, record_sum le64, slots le64, slots_size le64,
	boundary le64, granule le32, order le32, fields le32, runs le32,
	sections le32, filter_size le32, root 32, schema 32, zero 88';
my $field_row = 'name 64, type le32, dtype le32, rank le32, zero 4, dims 32, zero 16';
my @element_size = (0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16);
my $section_row = 'type le32, field le32, offset le64, size le64, count le64,
	stream le64';

sub descriptor {	# SEGMENT OF THE CATALOG
	my ($in) = @_;
	my $what = "segment $in->{id}";
	my ($offset, $size) = @$in{qw(offset descriptor_size)};
	my $first = join '', payloads($offset, $size, DESCRIPTOR, $in->{id});
	my $second = join '', payloads($offset + $in->{size} - $size, $size,
				       DESCRIPTOR, $in->{id});
	check($first eq $second, "$what: two descriptors");
	my $d = take($descriptor_row, $first, 0, $what);
	check($d->{$_} == $in->{$_}, "$what: $_") for qw(id offset size count);
	my ($fields, $runs, $sections) = @$d{qw(fields runs sections)};
	check($fields >= 1 && $fields <= 64 && $runs <= 1 << 24 &&
		$sections <= 1024, "$what: counts");
	my $filter = $d->{filter_size};
	check(!$filter || ($filter == int((12 * $d->{count} + 63) / 64) * 8 &&
		$filter <= PAYLOAD), "$what: size of the filter");
	check($d->{stream} == 256 + 128 * $fields + 24 * $runs + 40 * $sections + $filter,
		"$what: size of the stream");
	stream($d->{stream}, $what, unpack '(a' . PAYLOAD . ')*', $first);
	check($d->{count} <= $d->{size} / 16, "$what: more samples than slots");
	check($d->{order} <= 1 && $d->{granule} =~ /\A(16|64|512|4096)\z/,
		"$what: order or granule");
	my $at = 256;
	$d->{field_bytes} = substr $first, $at, 128 * $fields;
	$d->{fields} = [map { take($field_row, $first, $at + 128 * $_, "$what: field") }
		0 .. $fields - 1];
	$at += 128 * $fields;
	$d->{runs} = [map { take('first le64, offset le64, slot le64', $first,
		$at + 24 * $_, $what) } 0 .. $runs - 1];
	$at += 24 * $runs;
	$d->{sections} = [map { take($section_row, $first, $at + 40 * $_, $what) }
		0 .. $sections - 1];
	$d->{filter} = substr $first, $at + 40 * $sections, $filter;
	$d->{descriptor_size} = $size;
	my $b = $d->{boundary};
	check(!$b || ($b >= BLOCK && ($b & $b - 1) == 0 && $d->{offset} % $b == 0),
		"$what: boundary");
	check_fields($d);
	check_sections($d, $what);
	return $d;
}

sub check_fields {
	my ($d) = @_;
	my %names;
	for (@{$d->{fields}}) {
		$_->{name} = text($_->{name}, 'field');
		check_name($_->{name}, 'field');
		check(!$names{$_->{name}}++, 'field: the name twice');
		check($_->{type} =~ /\A[12345]\z/, 'field: type');
		check_shape($_);
	}
	$d->{scalars} = [grep { $d->{fields}[$_]{type} >= I64 } 0 .. $#{$d->{fields}}];
	my $parts = @{$d->{fields}} - @{$d->{scalars}};	# of the payload
	$d->{ends} = $parts ? $parts - 1 : 0;
	$d->{payload_limit} = $parts ? 2 ** 47 - 1 : 0;
}

sub check_shape {	# FIELD; sets what its length must be, or be a multiple of
	my ($field) = @_;
	my @dims = unpack 'L<8', $field->{dims};
	my $rank = $field->{rank};
	if ($field->{type} != TENSOR) {
		check(is_zero($field->{dims}) && !$rank && !$field->{dtype},
			'field: shape');
		return;
	}
	my $size = $element_size[$field->{dtype}] or check(0, 'field: element type');
	check($rank <= 8 && !grep($_, @dims[$rank .. 7]), 'field: rank');
	check($_ < 2 ** 31, 'field: dimension') for @dims;
	$field->{varies} = $rank && !$dims[0];
	for (($field->{varies} ? 1 : 0) .. $rank - 1) {
		check($dims[$_], 'field: dimension of 0');
		$size *= $dims[$_];
		check($size < 2 ** 47, 'field: size');
	}
	$field->{row} = $size;
}

sub check_payload {	# SEGMENT PAYLOAD WHAT END...: what lies in its fields
	my ($d, $payload, $what, @ends) = @_;
	my $at = 0;
	push @ends, length $payload;
	for (grep { $_->{type} < I64 } @{$d->{fields}}) {
		my $end = shift @ends;
		my $part = substr $payload, $at, $end - $at;
		$at = $end;
		check(utf8::decode($part) && $part !~ /[\x{d800}-\x{dfff}]/,
			"$what: text") if $_->{type} == UTF8;
		next if $_->{type} != TENSOR;
		check($_->{varies} ? length($part) % $_->{row} == 0 :
			length($part) == $_->{row}, "$what: tensor");
	}
}

sub check_sections {	# which there are, and where
	my ($d, $what) = @_;
	my ($count, %has) = ($d->{count});
	my $end = round_up($d->{slots} + $d->{slots_size}, BLOCK);
	my $is_first = 1;
	for (@{$d->{sections}}) {
		my ($type, $field) = @$_{qw(type field)};
		check($type >= KEYS && $type <= NAMES, "$what: section type");
		check($_->{offset} % BLOCK == 0 && $_->{size} % BLOCK == 0 &&
			$_->{size} && $_->{offset} >= $end, "$what: place of a section");
		check(!$is_first || $_->{offset} == $end, "$what: first section");
		$is_first = 0;
		check_gap($d, $end, $_->{offset});
		$end = $_->{offset} + $_->{size};
		check(!$has{"$type $field"}, "$what: a section twice");
		check($type == NAMES || !$_->{stream}, "$what: section: not zero");
		if ($type == COLUMN || $type == NAMES) {
			my $of = $d->{fields}[$field];
			check($of && $of->{type} >= I64 &&
				($type == COLUMN || $of->{type} == I64), "$what: field");
		} else {
			check($field == NO_FIELD, "$what: section without field");
		}
		$has{"$type $field"} = $_;
	}
	check($end <= $d->{size} - $d->{descriptor_size}, "$what: sections");
	check_gap($d, $end, $d->{size} - $d->{descriptor_size});
	$d->{section} = \%has;
	return unless $count;
	my @need = map { "$_ @{[NO_FIELD]}" } KEYS, ORDER, DIGESTS, TREE;
	check($has{$_}, "$what: no section $_") for @need,
		map { COLUMN . " $_" } @{$d->{scalars}};
}

sub check_gap {	# SEGMENT FROM TO: what belongs to nothing is zero
	my ($d, $from, $to) = @_;
	check($from <= $to, "segment $d->{id}: overlap at $from");
	while ($from < $to) {
		my $size = $to - $from < 1 << 20 ? $to - $from : 1 << 20;
		check(is_zero(bytes_at($d->{offset} + $from, $size)),
			"segment $d->{id}: bytes at $from are not zero");
		$from += $size;
	}
}

sub section {	# SEGMENT TYPE [FIELD]: what it refers to, and the payloads
	my ($d, $type, $field) = @_;
	my $in = $d->{section}{$type . ' ' . ($field // NO_FIELD)} or return;
	return ($in, payloads($d->{offset} + $in->{offset}, $in->{size}, $type,
			      $d->{id}));
}

# ---- runs and records ----

sub slots {	# SEGMENT: offset and size of each, by number
	my ($d) = @_;
	my $what = "segment $d->{id}: runs";
	my ($count, $b, @runs) = (@$d{qw(count boundary)}, @{$d->{runs}});
	my (@slots, $end);
	check(@runs ? $count && $runs[0]{first} == 0 : !$count, $what);
	$end = $d->{descriptor_size};
	check($b || $d->{slots} == $end, "$what: first slot");
	for my $i (0 .. $#runs) {
		my ($first, $start, $slot) = @{$runs[$i]}{qw(first offset slot)};
		my $next = $i < $#runs ? $runs[$i + 1]{first} : $count;
		check($first < $next && $next <= $count && $slot &&
			slot_size($slot, $d->{granule}) == $slot, $what);
		check($start % $d->{granule} == 0, "$what: alignment");
		check_gap($d, $end, $start);
		my $n = $b && $slot <= $b ? int($b / $slot) : 0;
		my $before = $n ? int(($b - $start % $b) / $slot) : 0;
		check(!$n || $before, "$what: slot across a boundary");
		for my $k (0 .. $next - $first - 1) {
			my $j = $k - $before;
			my $offset = $n && $j >= 0 ?
				$start - $start % $b + $b + int($j / $n) * $b +
				($j % $n) * $slot : $start + $k * $slot;
			check_gap($d, $end, $offset) if $n && $k;
			push @slots, [$offset, $slot];
			$end = $offset + $slot;
		}
	}
	check(!@slots || $d->{slots} == $slots[0][0], "$what: first slot");
	check($d->{slots} + $d->{slots_size} == $end, "$what: size of the slots");
	check_gap($d, $end, round_up($end, BLOCK));
	return \@slots;
}

sub slot_size {	# RECORD_SIZE GRANULE
	my ($r, $unit) = @_;
	my $bits = length(sprintf '%b', $r) - 1;
	$unit = 2 ** ($bits - 8) if $bits > 8 && 2 ** ($bits - 8) > $unit;
	return round_up($r, $unit);
}

sub record {	# SEGMENT NUMBER OFFSET SLOT_SIZE
	my ($d, $number, $offset, $slot) = @_;
	my $what = "record $number of segment $d->{id}";
	my $bytes = bytes_at($d->{offset} + $offset, $slot);
	my ($low, $high, $zero, $key_size, $flags, $crc) =
		unpack 'L<S<S<S<S<L<', substr $bytes, -16;
	check($crc == crc32c(pack('Q<2', $d->{id}, $number) . substr $bytes, 0, -4),
		"$what: checksum");
	my $size = $low | $high << 32;
	my $tail = $key_size + 8 * ($d->{ends} + @{$d->{scalars}}) + 16;
	check($zero == 0 && $flags <= 1 && $size <= $d->{payload_limit} &&
		$size + $tail <= $slot, "$what: trailer");
	my $payload = substr $bytes, 0, $size;
	my $tailed = substr $bytes, $slot - $tail, $tail - 4;
	check(is_zero(substr $bytes, $size, $slot - $tail - $size),
		"$what: padding");
	my $key = substr $tailed, 0, $key_size;
	my @ends = unpack 'Q<*', substr $tailed, $key_size, 8 * $d->{ends};
	my @scalars = unpack '(a8)*', substr $tailed,
		$key_size + 8 * $d->{ends}, 8 * @{$d->{scalars}};
	if ($flags) {
		check($size == 0 && $key_size == 0 &&
			!grep($_, @ends) && is_zero(join '', @scalars), "$what: void");
	} else {
		check($key_size >= 1 && $key_size <= 4000 && $key !~ /\0/,
			"$what: key");
		check(slot_size($size + $tail, $d->{granule}) == $slot,
			"$what: size of the slot");
	}
	my $last = 0;
	for (@ends) {
		check($_ >= $last && $_ <= $size, "$what: ends");
		$last = $_;
	}
	check_payload($d, $payload, $what, @ends) if !$flags;
	return {key => $key, size => $size, record_size => $size + $tail,
		void => $flags, sha => sha256_hex($payload), scalars => \@scalars,
		leaf => sha256("\0" . $payload . $tailed)};
}

# ---- sections ----

sub records {	# SEGMENT: all, by number
	my ($d) = @_;
	my $slots = slots($d);
	my ($payload_sum, $record_sum) = (0, 0);
	my @records = map {
		my $r = record($d, $_, @{$slots->[$_]});
		$payload_sum += $r->{size};
		$record_sum += $r->{record_size};
		$r
	} 0 .. $d->{count} - 1;
	check($payload_sum == $d->{payload_sum} && $record_sum == $d->{record_sum},
		"segment $d->{id}: sums");
	$d->{records} = \@records;
}

sub filter_places {	# KEY BITS: those of its filter that it sets
	my ($key, $bits) = @_;
	use integer;	# wraps at 64 bits
	no warnings 'portable';
	my $h = 0xcbf29ce484222325;
	$h = ($h ^ $_) * 0x100000001b3 for unpack 'C*', $key;
	$h = ($h ^ ($h >> 32 & 0xffffffff)) * 0x9e3779b97f4a7c15;
	$h ^= $h >> 32 & 0xffffffff;
	my ($at, $step) = ($h & 0xffffffff, $h >> 32 & 0xffffffff | 1);
	return map { ($at + $_ * $step & 0xffffffff) * $bits >> 32 } 0 .. 5;
}

sub check_keys {	# SEGMENT; sets the keys of void records
	my ($d) = @_;
	my ($in, @pages) = section($d, KEYS);
	my ($key, %seen);
	my $filter = "\0" x $d->{filter_size};
	for my $page (@pages) {
		my ($count, $used, $zero) = unpack 'S<S<L<', $page;
		my ($at, $last_of_page) = (8);
		check($count >= 1 && $used <= PAYLOAD && !$zero, 'keys: page');
		for (1 .. $count) {
			check($at + 16 <= $used, 'keys: cut off');
			my ($shared, $rest, @le48) =
				unpack 'S<S<L<S<L<S<', substr $page, $at, 16;
			my ($number, $size) =
				($le48[0] | $le48[1] << 32, $le48[2] | $le48[3] << 32);
			check($at + 16 + $rest <= $used && $shared <=
				length($last_of_page // ''), 'keys: sizes');
			my $next = substr($last_of_page // '', 0, $shared) .
				substr $page, $at + 16, $rest;
			check($rest && substr($next, $shared, 1) ne
				substr($last_of_page // '', $shared, 1),
				'keys: more is shared');
			check($next =~ /\A[^\0]{1,4000}\z/, 'keys: bad key');
			check(!defined $key || $key lt $next, 'keys: not ascending');
			check($number < $d->{count} && !$seen{$number}++,
				'keys: number');
			my $r = $d->{records}[$number];
			check($r->{void} || ($r->{key} eq $next && $r->{size} == $size),
				"keys: not those of record $number");
			$at += 16 + $rest;
			$key = $last_of_page = $next;
			vec($filter, $_, 1) = 1
				for $filter ne '' ? filter_places($next, 8 * length $filter) : ();
		}
		check($at == $used && is_zero(substr $page, $used), 'keys: tail');
	}
	check($in->{count} == $d->{count} && keys %seen == $d->{count}, 'keys: count');
	check($filter eq $d->{filter}, 'keys: filter');
}

sub check_order {	# SEGMENT: whether the source had the keys sorted
	my ($d) = @_;
	my ($in, @blocks) = section($d, ORDER);
	my $n = $d->{count};
	my $w = $n > 1 ? length sprintf '%b', $n - 1 : 1;
	my $per_block = int(32512 / $w);
	my $blocks = ceil_div($n, $per_block);
	check($in->{count} == $n && @blocks == 2 * $blocks, 'order: size');
	my ($numbers, $ordinals) = map {
		my $bits = join '', map {
			my $bits = unpack 'b*', $_;
			check(substr($bits, $per_block * $w) !~ /1/, 'order: tail');
			substr $bits, 0, $per_block * $w
		} splice @blocks, 0, $blocks;
		check(substr($bits, $n * $w) !~ /1/, 'order: tail');
		[map { oct '0b' . reverse substr $bits, $_ * $w, $w } 0 .. $n - 1]
	} 1, 2;
	for (0 .. $n - 1) {
		check($numbers->[$_] < $n && $ordinals->[$numbers->[$_]] == $_,
			"order: of ordinal $_");
		check($d->{order} == 0 || $numbers->[$_] == $_, 'order: not the source');
	}
	my @keys = map { $_->{key} } grep { !$_->{void} }
		@{$d->{records}}[@$numbers];
	return !grep { $keys[$_ - 1] ge $keys[$_] } 1 .. $#keys;
}

sub check_columns {	# SEGMENT
	my ($d) = @_;
	for my $i (0 .. $#{$d->{scalars}}) {
		my $field = $d->{scalars}[$i];
		my $name = $d->{fields}[$field]{name};
		my ($in, @blocks) = section($d, COLUMN, $field);
		check($in->{count} == $d->{count} &&
			@blocks == ceil_div($d->{count}, 506), "column $name: size");
		my $is_f64 = $d->{fields}[$field]{type} == F64;
		for my $block (0 .. $#blocks) {
			my ($least, $most, @values) = unpack '(a8)*', $blocks[$block];
			my $first = $block * 506;
			my $last = $d->{count} - $first - 1;
			check(is_zero(join '', splice @values, $last + 1),
				"column $name: tail") if $last < $#values;
			check($values[$_] eq
				$d->{records}[$first + $_]{scalars}[$i],
				"column $name: value ", $first + $_) for 0 .. $#values;
			my ($min, $max) = extremes($is_f64, @values);
			check($min eq $least && $max eq $most,
				"column $name: minimum or maximum");
		}
	}
}
sub number { unpack $_[0] ? 'd<' : 'q<', $_[1] }
sub extremes {	# IS_F64 VALUES...: of equal ones the first
	my ($is_f64, @values) = @_;
	my ($min, $max) = (9**9**9, -9**9**9);
	my ($min_bits, $max_bits) = map { pack 'd<', $_ } $min, $max;
	for my $bits (@values) {
		my $value = number($is_f64, $bits);
		($min, $min_bits) = ($value, $bits) if $value < $min;
		($max, $max_bits) = ($value, $bits) if $value > $max;
	}
	return ($min_bits, $max_bits);
}

sub check_digests {	# SEGMENT
	my ($d) = @_;
	return check(is_zero($d->{root}), 'root of nothing') unless $d->{count};
	my ($in, @blocks) = section($d, DIGESTS);
	check($in->{count} == $d->{count}, 'digests: count');
	check(join('', map { $_->{leaf} } @{$d->{records}}) eq entries(
		127, 32, $d->{count}, 'digests', @blocks), 'digests: of samples');
	my ($tree, @tree) = section($d, TREE);
	my $hashes = 0;
	my @below = grep { $_->{type} != TREE } @{$d->{sections}};
	my @hashes = map { sha256("\1" . $_) } map { payloads(
		$d->{offset} + $_->{offset}, $_->{size}, $_->{type}, $d->{id})
	} @below;
	while (@hashes > 1) {
		$hashes += @hashes;
		@blocks = splice @tree, 0, ceil_div(scalar @hashes, 127);
		check(join('', @hashes) eq entries(127, 32,
			scalar @hashes, 'tree', @blocks), 'tree: of the level below');
		@hashes = map { sha256("\1" . $_) } @blocks;
		$d->{levels}++;
	}
	check(!@tree && (!$tree || $tree->{count} == $hashes), 'tree: size');
	my $table = join '', map { pack 'L<2Q<4', @$_{qw(type field)}, 0,
		@$_{qw(size count stream)} } @below;
	check(sha256("\5" . $table . $hashes[0]) eq $d->{root},
		'root of the digest tree');
}

sub check_schema {	# SEGMENT: names, and the schema digest
	my ($d) = @_;
	my $all = pack('C L<', 3, scalar @{$d->{fields}}) . $d->{field_bytes};
	for my $field (0 .. $#{$d->{fields}}) {
		my ($in, @blocks) = section($d, NAMES, $field) or next;
		check($in->{stream} <= 16 << 20, 'names: size');
		my $names = stream($in->{stream}, 'names', @blocks);
		$all .= pack('L< Q<', $field, $in->{stream}) . $names;
		my @names;
		while (length $names) {
			my ($size) = unpack 'S<', $names . "\0";
			push @names, substr $names, 2, $size;
			check($names[-1] =~ /\A[^\0]{1,4000}\z/ &&
				length $names[-1] == $size, 'names: bad name');
			substr($names, 0, 2 + $size) = '';
		}
		check($in->{count} == @names, 'names: count');
		$d->{fields}[$field]{names} = @names;
		$d->{fields}[$field]{name_list} = \@names;
	}
	check(sha256($all) eq $d->{schema}, 'schema digest');
}

sub segment {	# SEGMENT OF THE CATALOG: all of it
	my ($in) = @_;
	my $d = descriptor($in);
	records($d);
	if ($d->{count}) {
		check_keys($d);
		$d->{is_sorted} = check_order($d);
	}
	check_columns($d);
	check_digests($d);
	check_schema($d);
	return $d;
}

1;
