# SPDX-License-Identifier: Apache-2.0
#
# Blocks.pm - the conventions of the page, crc32c, blocks and streams
#
# The bottom of reader.pl. A check that fails dies, and says why.
package Blocks;
use v5.14;
use warnings;
use Exporter 'import';

use constant { BLOCK => 4096, PAYLOAD => 4064 };
our @EXPORT = qw(BLOCK PAYLOAD check ceil_div round_up is_zero text check_name
	crc32c take image_open image_size bytes_at block_payload payloads stream
	entries);

# ---- conventions ----

sub check($@) {	# OK WHY...; a match that fails is false, not nothing
	my ($ok, @why) = @_;
	die join('', @why), "\n" unless $ok;
}
sub ceil_div { int(($_[0] + $_[1] - 1) / $_[1]) }
sub round_up { ceil_div(@_) * $_[1] }
sub is_zero { $_[0] !~ /[^\0]/ }

sub text {	# FIELD WHAT: without its padding
	my ($bytes, $what) = @_;
	$bytes =~ /\A([^\0]*)\0+\z/ or check(0, "$what: not padded by zero");
	return $1;
}

sub check_name {
	my ($name, $what) = @_;
	check($name =~ /\A[A-Za-z0-9_][A-Za-z0-9._-]{0,62}\z/, "$what: bad name");
}

# Two bytes a step: words by the sum of what their bytes do.
my @crc_byte = map {
	my $c = $_;
	$c = $c >> 1 ^ ($c & 1 ? 0x82f63b78 : 0) for 1 .. 8;
	$c
} 0 .. 255;
my @crc_word = map {
	my $c = $crc_byte[$_ & 255] ^ $_ >> 8;
	$crc_byte[$c & 255] ^ $c >> 8
} 0 .. 65535;

sub crc32c {
	my ($bytes) = @_;
	my $crc = 0xffffffff;
	$crc = $crc_word[($crc ^ $_) & 0xffff] ^ $crc >> 16
		for unpack 'S<*', $bytes;
	$crc = $crc_byte[($crc ^ ord substr $bytes, -1) & 255] ^ $crc >> 8
		if length($bytes) % 2;
	return $crc ^ 0xffffffff;
}
check(crc32c("\0" x 32) == 0x8a9136aa, 'this crc32c is wrong');

# A table of the page, as "name type" pairs; zeroes are checked and left out.
my %template = (le16 => 'S<', le32 => 'L<', le64 => 'Q<', i64 => 'q<');
sub take {	# TABLE BYTES AT WHAT
	my ($table, $bytes, $at, $what) = @_;
	my (%got, @names, $template);
	for (split /,\s*/, $table) {
		my ($name, $type) = split;
		push @names, $name;
		$template .= $template{$type} // "a$type";
	}
	check($at <= length $bytes, "$what: cut off");
	my @values = unpack $template, substr $bytes, $at;
	for (@names) {
		my $value = shift @values;
		check(defined $value, "$what: cut off");
		if ($_ eq 'zero') {
			check($value eq '0' || is_zero($value), "$what: not zero");
		} else {
			$got{$_} = $value;
		}
	}
	return \%got;
}

# ---- blocks ----

my ($image, $image_size);	# file handle; bytes that it has

sub image_open {
	open $image, '<:raw', $_[0] or return;
	$image_size = sysseek $image, 0, 2;
}
sub image_size { $image_size }

sub bytes_at {	# OFFSET SIZE
	my ($offset, $size) = @_;
	check($offset + $size <= $image_size, "$offset+$size: behind the end");
	my $bytes = '';
	sysseek $image, $offset, 0 or check(0, "$offset: $!");
	while (length $bytes < $size) {
		my $got = sysread $image, $bytes, $size - length $bytes,
			length $bytes;
		check($got, "$offset+$size: ", $! || 'short');
	}
	return $bytes;
}

sub block_payload {	# BLOCK OFFSET TYPE OWNER: owner may be undef
	my ($block, $offset, $type, $owner) = @_;
	my $what = "block at $offset";
	my ($magic, $is, $crc, $at, $by) = unpack 'a8 L< L< Q< Q<', $block;
	check($magic eq "\x93STELE\r\n", "$what: magic");
	substr($block, 12, 4) = "\0" x 4;
	check(crc32c($block) == $crc, "$what: crc");
	check($is == $type, "$what: type $is, not $type");
	check($at == $offset, "$what: belongs to $at");
	check(!defined $owner || $by == $owner, "$what: owner");
	return substr $block, 32;
}

sub payloads {	# OFFSET SIZE TYPE OWNER: a list
	my ($offset, $size, $type, $owner) = @_;
	check($offset % BLOCK == 0 && $size % BLOCK == 0, "$offset: alignment");
	my $bytes = bytes_at($offset, $size);
	return map {
		block_payload(substr($bytes, $_ * BLOCK, BLOCK),
			      $offset + $_ * BLOCK, $type, $owner)
	} 0 .. $size / BLOCK - 1;
}

sub stream {	# SIZE WHAT PAYLOADS...
	my ($size, $what, @payloads) = @_;
	check(ceil_div($size, PAYLOAD) == @payloads, "$what: size of the stream");
	my $all = join '', @payloads;
	check(is_zero(substr $all, $size), "$what: tail not zero");
	return substr $all, 0, $size;
}

sub entries {	# PER_BLOCK SIZE COUNT WHAT PAYLOADS...
	my ($per_block, $size, $count, $what, @payloads) = @_;
	check(@payloads == ceil_div($count, $per_block), "$what: size");
	my $all = join '', map { substr $_, 0, $per_block * $size } @payloads;
	check(is_zero(substr $_, $per_block * $size), "$what: tail") for @payloads;
	check(is_zero(substr $all, $count * $size), "$what: tail");
	return substr $all, 0, $count * $size;
}

1;
