#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tables of doc/limits.md tell the truth: each limit stands in the named file with the named
# value, each test exists, and no limit of src/ is missing.
#
#	check-limits.sh [TOP OF A TREE]
#
# Prints each mistake, as FILE:LINE: WHY, and fails when there is one.  A row is
#
#	| `NAME` | VALUE | src/FILE | what is beyond | tests/FILE word, word; tests/FILE word |
#
# NAME is a macro, or the name of an option, in quotes there (`--memory`: "memory").  VALUE of a
# macro that is a number is compared: 64 MiB, 5 s, 256.  Several names have as many values, with
# "; " between.  A test is a file with words of it; "none: REASON" says why no test stands there.
# A limit of src/ is a macro whose name has MAX, IOS, GUESTS, MEMORY, MS or TIMEOUT in it; the page
# has its name in a row, or in the list at its end.
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
cd "$root"
[ -f doc/limits.md ] && [ -d src ] || { echo "$0: $root: no doc/limits.md or no src/"; exit 99; }
command -v perl >/dev/null || { echo "perl is not installed"; exit 77; }

find src -name '*.[ch]' | LC_ALL=C sort | perl -e '
use strict; use warnings; no warnings "portable";
my $failed = 0;
sub complain { my ($file, $line, $why) = @_; print "$file:$line: $why\n"; $failed = 1; }
sub text_of { my $file = shift; open my $in, "<", $file or return; local $/; return scalar <$in>; }

# The macros of src/: where they are, and their numbers.
my (%where, %value);
while (my $file = <STDIN>) {
	chomp $file;
	my $text = text_of($file);
	while ($text =~ /^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+(\S[^\n]*)/mg) {
		my ($name, $is, $pos) = ($1, $2, $-[0]);
		$where{$name}{$file} = 1 + (substr($text, 0, $pos) =~ tr/\n//);
		$is =~ s/\/\*.*//;
		$is =~ s/\(size_t\)|UINT64_C//g;
		$is =~ s/\b(0x[\da-f]+|\d+)(?:u?l*)\b/$1/gi;
		$value{"$name $file"} = eval $is
			if $is =~ /^[\s\d()<*+-]*(?:0x[\da-f]+)?[\s\d()<*+-]*$/i;
	}
}

my %unit = (KiB => 1 << 10, MiB => 1 << 20, GiB => 1 << 30, TiB => 1 << 40);
# Is @text, "64 MiB and so on", the number @n of the macro @name?
sub is_value {
	my ($text, $n, $name) = @_;
	my ($number, $unit) = $text =~ /^([\d,]+)(?: (KiB|MiB|GiB|TiB|s|ms)\b)?/ or return 0;
	$number =~ tr/,//d;
	return $number * $unit{$unit} == $n if $unit && $unit{$unit};
	return $number * ($name =~ /_S$/ ? 1 : 1000) == $n if ($unit // "") eq "s";
	return $number == $n;
}

sub check_tests {
	my ($line, $cell) = @_;
	return if $cell =~ /^none: \w+ \w+/;
	if ($cell =~ /^none\b/) {
		complain("doc/limits.md", $line, "it is not told why no test stands there");
		return;
	}
	for my $one (split /;\s*/, $cell) {
		my ($file, $words) = $one =~ /^(tests\/[\w.\/-]+)(?: (.+))?$/;
		my $text = $file && text_of($file);
		if (!defined $text || $text eq "") {
			complain("doc/limits.md", $line, "\"$one\": there is no such test");
			next;
		}
		for my $word (split /,\s*/, $words // "") {
			complain("doc/limits.md", $line, "$file has no $word")
				unless $text =~ /(?<!\w)\Q$word\E(?!\w)/;
		}
	}
}

my (%told, %row_of, $rows);
open my $page, "<", "doc/limits.md" or die;
while (<$page>) {
	chomp;
	$told{$1}{$.} = 1 while /`([A-Z]\w+)`/g;
	next unless /^\| `/;
	my @cells = map { s/^\s+|\s+$//gr } split /\|/, substr $_, 1;
	if (@cells != 5) {
		complain("doc/limits.md", $., "a row has five cells");
		next;
	}
	$rows++;
	my ($names, $value, $file, $beyond, $tests) = @cells;
	my $text = text_of($file);
	complain("doc/limits.md", $., "$file does not exist") unless defined $text;
	my @names = $names =~ /`([^`]+)`/g;
	my @values = @names > 1 ? split /;\s*/, $value : ($value);
	complain("doc/limits.md", $., "a value for each name") if @values < @names;
	for my $i (0 .. $#names) {
		my ($name, $is) = ($names[$i], $values[$i] // "");
		complain("doc/limits.md", $., "$name of $file has another row")
			if $row_of{"$name $file"}++;
		(my $word = $name) =~ s/^--(.*)$/"$1"/;
		complain("doc/limits.md", $., "$file has no $name")
			unless defined $text && ($word =~ /^"/ ? index($text, $word) >= 0 :
						 $text =~ /\b\Q$word\E\b/);
		my $n = $value{"$name $file"};
		complain("doc/limits.md", $., "$name is $n, not $is")
			if defined $n && !is_value($is, $n, $name);
	}
	complain("doc/limits.md", $., "it is not told what is beyond") unless $beyond;
	check_tests($., $tests);
}
complain("doc/limits.md", 0, "has no rows") unless $rows;
for my $name (sort keys %told) {
	complain("doc/limits.md", $_, "there is no $name in src/")
		for $where{$name} ? () : sort keys %{$told{$name}};
}
for my $name (sort keys %where) {
	next unless "_${name}_" =~ /_(?:MAX|IOS|GUESTS|MEMORY|MS|TIMEOUT)_/ && !$told{$name};
	complain($_, $where{$name}{$_}, "$name is not in doc/limits.md")
		for sort keys %{$where{$name}};
}
exit $failed;
'
