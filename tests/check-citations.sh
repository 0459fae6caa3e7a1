#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What the code, the tests and the manuals cite stands in the tree: a page in doc/, and in it the
# number.
#
#	check-citations.sh [TOP OF A TREE]
#
# Prints each citation that leads nowhere, as FILE:LINE: WHY, and fails when there is one.  A
# citation is
#
#	doc/decisions.md D6		also with a list: D6 and D13; D6, D13
#	doc/traps.md 17
#	doc/protocol.md 3.4		also 1 to 5, and appendix A
#	doc/verbs.md Q1, I2
#
# and may go on in the next line of a comment.  The number is a heading of the page.  In .c and .h
# files a citation of these pages has a number, and D6 or Q1 without a page is a citation, too.
# Other names of pages (*.md) and "pitfall 17" are none.  Pages in doc/ name files that exist, and
# number without gaps; a trap names files with a test that has its number (p17).
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
cd "$root"
[ -d doc ] && [ -d src ] || { echo "$0: $root: neither doc/ nor src/"; exit 99; }
command -v perl >/dev/null || { echo "perl is not installed"; exit 77; }

# This file and its test name what does not exist.
{
	for f in HACKING README.md SECURITY doc/*.md man/*.pod; do
		[ ! -f "$f" ] || echo "$f"
	done
	for d in src tests bench build-aux; do
		[ ! -d "$d" ] ||
			find "$d" -path tests/guest/cache -prune -o -type f \( -name '*.[ch]' \
				-o -name '*.sh' \
			-o -name '*.in' -o -name '*.mk' -o -name '*.py' -o -name '*.list' \
			-o -name README \) \
			! -name '*check-citations.sh' -print
	done
} | LC_ALL=C sort | perl -e '
use strict; use warnings;
my %item = (decisions => qr/D\d+/, verbs => qr/[QI]\d+/, traps => qr/\d+/,
	    protocol => qr/\d+(?:\.\d+)*|[Aa]ppendix [A-Z]/);
my (%number, $failed);
sub complain { my ($file, $line, $why) = @_; print "$file:$line: $why\n"; $failed = 1; }

# The numbers of each page.
for my $page (sort keys %item) {
	my $file = "doc/$page.md";
	open my $in, "<", $file or do { complain($file, 0, "is missing"); next; };
	my %last;
	while (<$in>) {
		next unless /^##+ ($item{$page})(?= |$)/;
		my $this = $1;
		if ($number{$page}{lc $this}++) {
			complain($file, $., "$this stands twice");
		} elsif ($page ne "protocol") {
			my ($letter, $n) = $this =~ /^([A-Z]?)(\d+)$/;
			my $before = $last{$letter} // 0;
			complain($file, $., "$this does not follow $letter$before") if $n != $before + 1;
			$last{$letter} = $n;
		}
	}
	complain($file, 0, "has no numbers") unless $number{$page};
}

while (my $file = <STDIN>) {
	chomp $file;
	open my $in, "<", $file or die "$file: $!\n";
	my $text = do { local $/; <$in> };
	my $code = $file =~ /\.[ch]$/;
	my $at = sub { 1 + (substr($text, 0, shift) =~ tr/\n//) };
	# Between a page and its number: blanks, or the head of the next line of a comment.
	my $w = qr/(?:[ \t]|\n[ \t]*(?:\*(?!\/)|#|\/\/)?[ \t]*)+/;

	my %seen;	# where the lists of numbers are
	while ($text =~ /(?<![\w.\/\$-])((?:[\w.-]+\/)*)([\w-]+)\.md\b/g) {
		my ($dir, $page, $pos) = ($1, $2, $-[0]);
		next if $file =~ /\.py$/ && !$dir;	# a member of a variable
		my $name = "$dir$page.md";
		if ($name !~ /^(?:doc\/[\w-]+|README)\.md$/ || !-f $name) {
			complain($file, $at->($pos), "$name is no page of this tree");
			next;
		}
		next unless $dir && $item{$page};
		my $i = $item{$page};
		if ($text !~ /\G$w($i(?:,?$w(?:and$w|to$w)?$i)*)(?![\w])/gc) {
			complain($file, $at->($pos), "$name without a number") if $code;
			next;
		}
		my ($list, $end) = ($1, pos $text);
		$seen{$_} = 1 for $-[1] .. $end;
		for my $n ($list =~ /$i/g) {
			complain($file, $at->($pos), "$name has no $n") unless $number{$page}{lc $n};
		}
	}
	while ($text =~ /\bpitfalls?$w\(?\d+/gi) {
		complain($file, $at->($-[0]), "a trap is cited as doc/traps.md and its number");
	}
	while ($code && $text =~ /(?<![\w.\/%-])([DQ])(\d{1,2})(?![\w.])/g) {
		next if $seen{$-[0]};
		complain($file, $at->($-[0]), "there is no $1$2") unless $number{$1 eq "D" ? "decisions" : "verbs"}{lc "$1$2"};
	}
	while ($file =~ /^doc\// && $text =~ /(?<![\w.\/-])((?:src|tests|man|bench|build-aux)\/[\w.\/-]*\w)/g) {
		complain($file, $at->($-[0]), "$1 does not exist") unless -e $1;
	}
	# A trap that has a number names the files whose tests have the number.
	while ($file eq "doc/traps.md" && $text =~ /(?<![\w.\/-])tests\/[\w.\/-]+\.(?:c|sh)\b/g) {
		my ($path, $pos) = ($&, $-[0]);
		next unless substr($text, 0, $pos) =~ /.*^##? (\d+)?/ms && defined $1 && -f $path;
		my $test = sprintf "p%02d", $1;
		open my $in, "<", $path or die "$path: $!\n";
		my $content = do { local $/; <$in> };
		complain($file, $at->($pos), "$path has no test $test") unless "$path $content" =~ /$test(?!\d)/;
	}
}
exit($failed ? 1 : 0);
'
