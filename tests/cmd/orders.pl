#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
#
# orders.pl - a second implementation of orders, written from stele-format(5) alone
#
#	orders.pl FILE		checks what the page in FILE, or anything in the
#				form of its examples, says
#	orders.pl -p FILE	prints FILE with what should stand there
#
# It shares nothing with the library, on purpose. Functions stand in the order of
# the page. Status 0: all lines are right; 3: some are not, and stderr says which.
use v5.14;
use warnings;
no warnings 'portable';
use Math::BigInt try => 'GMP';

sub big { Math::BigInt->new($_[0]) }
sub floor_div { scalar big($_[0])->bdiv($_[1]) }	# X N
my $word = big(2)->bpow(64);

# ---- permutation ----

sub add { use integer; $_[0] + $_[1] }	# mod 2^64, as a signed number
sub multiply { use integer; $_[0] * $_[1] }
sub plain { 0 + sprintf '%u', $_[0] }
sub shift_right { plain($_[0]) >> $_[1] }

use constant {
	G => 0x9e3779b97f4a7c15, M => 0xbf58476d1ce4e5b9, F => 0x94d049bb133111eb,
};

sub mix {
	my ($x) = @_;
	$x = multiply($x ^ shift_right($x, 30), M);
	$x = multiply($x ^ shift_right($x, 27), F);
	return plain($x ^ shift_right($x, 31));
}

# The product by halves: BigInt would take most of the time.
sub scale {	# X N
	my ($x, $n) = @_;
	my ($xh, $xl, $nh, $nl) = ($x >> 32, $x & 0xffffffff, $n >> 32, $n & 0xffffffff);
	my $low = ($xl * $nl >> 32) + ($xh * $nl & 0xffffffff) + ($xl * $nh & 0xffffffff);
	return $xh * $nh + ($xh * $nl >> 32) + ($xl * $nh >> 32) + ($low >> 32);
}

sub stream {	# SEED EPOCH PURPOSE
	my ($seed, $epoch, $purpose) = @_;
	my $x = mix(add($seed, G));
	$x = mix(add($x ^ $epoch, G));
	return mix(add($x ^ $purpose, G));
}

sub permutation {	# COUNT SEED EPOCH PURPOSE: what it is at a position
	my ($count, @stream) = @_;
	my ($bits, @key) = 0;
	$bits++ while 1 << $bits < $count;
	my $columns = 1 << ($bits >= 4 ? $bits >> 1 : 1);
	my $rows = ($count - 1) / $columns;
	{ use integer; $rows = ($count - 1) / $columns + 1; }
	my $rounds = $count <= 16 ? 32 : $count <= 256 ? 20 : 12;
	my $base = mix(add(stream(@stream) ^ $count, G));
	push @key, mix(add($base, multiply($_, G))) for 1 .. $rounds;
	my $part = sub {	# HALF KEY N
		my $x = plain(multiply($_[0] ^ $_[1], M));
		return scale(plain(multiply($x ^ $x >> 32, F)), $_[2]);
	};
	return sub {
		my ($x) = @_;
		do {
			use integer;
			my ($row, $column) = ($x / $columns, $x % $columns);
			for (my $r = 0; $r < $rounds; $r += 2) {
				$row = ($row + $part->($column, $key[$r], $rows)) % $rows;
				$column = ($column + $part->($row, $key[$r + 1],
					$columns)) % $columns;
			}
			$x = $row * $columns + $column;
		} while $x >= $count;
		return $x;
	};
}

# ---- epochs ----

sub windowed {	# COUNT BLOCK_SIZE BLOCK_COUNT SEED EPOCH PURPOSE
	my ($count, $size, $most, @stream) = @_;
	use integer;
	my $t = stream(@stream);
	my $rotation = scale(stream($t, 0, 1), $count);
	my $blocks = ($count - 1) / $size + 1;
	my $windows = ($blocks - 1) / $most + 1;
	my $block_at = permutation($blocks, $t, 0, 2);
	my ($window, $place, $first, @at) = (0, 0, 0);
	my $samples = sub {	# of the next window
		my $n = $blocks / $windows + ($window < $blocks % $windows ? 1 : 0);
		my @ids = map {
			my $begin = $block_at->($_) * $size;
			my $end = $begin + $size < $count ? $begin + $size : $count;
			map { ($rotation + $_) % $count } $begin .. $end - 1;
		} $place .. $place + $n - 1;
		my $inside = permutation(scalar @ids, $t, $window++, 3);
		$place += $n;
		return map { $ids[$inside->($_)] } 0 .. $#ids;
	};
	return sub {	# from the beginning on
		push @at, $samples->() while $_[0] > $#at;
		return $at[$_[0]];
	};
}

# ---- mixtures ----

# A binary64 as an integer, times 2^1075: exact.
sub exact {
	my $bits = unpack 'Q', pack 'd', $_[0];
	my ($exponent, $fraction) = ($bits >> 52, $bits & (1 << 52) - 1);
	return big($fraction) << 1 unless $exponent;
	return big($fraction | 1 << 52) << $exponent;
}

sub largest {	# the place of the first of the largest
	my $best = 0;
	$_[$_] > $_[$best] and $best = $_ for 1 .. $#_;
	return $best;
}

sub apportion {	# SIZE N WEIGHTS
	my ($size, $n, $weights) = @_;
	my (@share, @draws, @rest);
	if (grep { $_ != 0 } @$weights) {
		my @w = map { $weights->[$_] != 0 ? exact($weights->[$_]) :
			big($n->[$_]) << 1075 } 0 .. $#$n;
		my $most = $w[largest(@w)];
		@share = map { floor_div($_ << 48, $most) } @w;
	} else {
		@share = map { big($_) } @$n;
	}
	my $sum = big(0);
	$sum += $_ for @share;
	for (@share) {
		my ($quotient, $rest) = ($_ * $size)->bdiv($sum);
		push @draws, $quotient;
		push @rest, $rest;
	}
	my $missing = big($size);
	$missing -= $_ for @draws;
	for (; $missing > 0; $missing--) {
		my $s = largest(@rest);
		$draws[$s]++;
		$rest[$s] = -1;
	}
	for my $s (0 .. $#draws) {
		next if $draws[$s] > 0;
		$draws[largest(@draws)]--;
		$draws[$s]++;
	}
	return @draws;
}

sub draw {	# SIZE DRAWS SEED EPOCH POSITION
	my ($size, $draws, $seed, $epoch, $x) = @_;
	my ($low, $high) = (0, scalar @$draws);
	if ($high > 1) {
		use integer;
		my $period = $x / 4096;
		my $length = $size - $period * 4096;
		$length = 4096 if $length > 4096;
		$x = $period * 4096 + permutation($length, $seed, $epoch,
			plain(add(1 << 63, $period)))->($x % 4096);
	}
	$x = big($x);
	while ($high - $low > 1) {
		my $middle = int(($low + $high) / 2);
		my ($all, $left) = (big(0), big(0));
		$all += $draws->[$_] for $low .. $high - 1;
		$left += $draws->[$_] for $low .. $middle - 1;
		my $before = floor_div($x * $left, $all);
		if (floor_div(($x + 1) * $left, $all) > $before) {
			($x, $high) = ($before, $middle);
		} else {
			($x, $low) = ($x - $before, $middle);
		}
	}
	return ($low, $x);
}

sub mixture {	# SIZE SEED EPOCH N WEIGHTS
	my ($size, $seed, $epoch, $n, $weights) = @_;
	my @draws = apportion($size, $n, $weights);
	return [@draws], sub {
		my ($s, $x) = draw($size, \@draws, $seed, $epoch, $_[0]);
		my ($pass, $at) = (big($epoch) * $draws[$s] + $x)->bdiv($n->[$s]);
		$pass %= $word;
		return "$s:" . permutation($n->[$s], $seed, plain($pass->bstr),
			$s)->($at->numify);
	};
}

# ---- the page ----

# How many follow, from where on, and what each of them is: of a line that names an order.
sub order_of {
	local ($_) = @_;
	my @a = /\((\d+(?:, \d+)*)\)/ ? split(/, /, $1) : ();
	if (/^permutation\(.*\)$/) {
		return ($a[0] <= 17 ? $a[0] : 16, 0, permutation(@a));
	} elsif (/^windowed\(.*\)$/) {
		return ($a[0] <= 100 ? $a[0] : 16, 0, windowed(@a));
	} elsif (/^mixture\(.*\) of( [\d.e*+-]+)+$/) {
		my @parts = map { [split /\*/] } split ' ', s/.* of //r;
		my ($draws, $at) = mixture(@a[0 .. 2], [map { $_->[0] } @parts],
			[map { $_->[1] } @parts]);
		my $all = $a[0] <= 48 && !$a[3];
		my $left = plain(add($a[0], -$a[3]));
		return ($all ? $a[0] : $left < 16 ? $left : 16, $a[3], $at,
			"    draws @$draws[0 .. ($#$draws < 7 ? $#$draws : 7)]");
	}
	return;
}

# Lines of up to 71 columns.
sub lines {
	my ($text, @lines) = ('   ');
	for (@_) {
		if (length("$text $_") > 71) {
			push @lines, $text;
			$text = '   ';
		}
		$text .= " $_";
	}
	return (@lines, $text);
}

sub wanted {
	my ($line) = @_;
	return sprintf '%s = 0x%016x', $1, stream(split /, /, $2)
		if $line =~ /^(stream\((\d+, \d+, \d+)\)) = /;
	my ($count, $first, $at, @head) = order_of($line) or return;
	return $line, @head, lines(map { $at->(plain(add($first, $_))) }
		0 .. $count - 1);
}

my $printing = @ARGV && $ARGV[0] eq '-p' && shift;
my ($orders, $wrong) = (0, 0);
my @lines = map { s/\n\z//r } <>;
while (defined(my $line = shift @lines)) {
	my @wanted = wanted($line);
	if (!@wanted) {
		say $line if $printing;
		next;
	}
	my @found = $line;
	push @found, shift @lines while @wanted > 1 && @lines && $lines[0] =~ /^    /;
	$orders++;
	if ($printing) {
		say for @wanted;
	} elsif ("@wanted" ne "@found") {
		say STDERR "wrong: $line";
		$wrong++;
	}
}
say "$orders orders" unless $printing;
exit($wrong ? 3 : 0);
