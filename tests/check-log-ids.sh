#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The messages that matter: each row of the table (src/common/base/log-id.c) has a number of its
# own, a place in the code that logs it, and an item in man/rtrs-server.pod with the same number and
# meaning; the manual and the code have no others.
#
#	check-log-ids.sh [TOP OF A TREE]
#
# Prints each fault and fails when there is one.
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
cd "$root"
table=src/common/base/log-id.c
manual=man/rtrs-server.pod
[ -f $table ] && [ -f $manual ] || { echo "$0: $root: neither $table nor $manual"; exit 99; }
command -v perl >/dev/null || { echo "perl is not installed"; exit 77; }

find src -name '*.[ch]' ! -path $table ! -name log.h ! -name log-id.h | LC_ALL=C sort |
	perl -e '
use strict; use warnings;
my ($table, $manual) = @ARGV;
my $bad = 0;
sub slurp { local $/; open(my $f, "<", $_[0]) or die "$_[0]: $!\n"; return <$f> }
sub fault { print "$_[0]\n"; $bad = 1 }

my (%row, %number);
my $text = slurp($table);
while ($text =~ /^\tID\((\w+),\s*"([^"]*)",\s*"([^"]*)"\)/mg) {
	my ($name, $hex, $means) = ($1, $2, $3);
	$row{$name} = [$hex, $means];
	fault("$table: $name: \"$hex\" is no number of 32 digits 0-9 and a-f")
		if $hex !~ /^[0-9a-f]{32}$/;
	fault("$table: $name has the number of $number{$hex}") if $number{$hex};
	$number{$hex} = $name;
}
%row or fault("$table: no row was found");
my ($enum) = slurp("src/common/base/log-id.h") =~ /enum log_id \{(.*?)\};/s;
for my $name ($enum =~ /^\tLOG_ID_(\w+),/mg) {
	fault("log-id.h: LOG_ID_$name has no row") if $name ne "NONE" && !$row{$name};
}

my %used;
while (my $file = <STDIN>) {
	chomp $file;
	my $code = slurp($file);
	$used{$1} = $file while $code =~ /LOG_FIELDS\(([A-Z_]+)\b/g;
	$used{$1} = $file while $code =~ /(?:CLT_PATH|DEV)_FIELDS\([^,()]+, ([A-Z_]+)\)/g;
}
for my $name (sort keys %row) { fault("$name: nothing in src/ logs it") if !$used{$name} }

my %told;
my $pod = slurp($manual);
while ($pod =~ /^=item ([A-Z_]+) C<([0-9a-f]{32})>\n\n(.+?)\n\n/msg) {
	my ($name, $hex, $says) = ($1, $2, lcfirst $3);
	$says =~ s/\n/ /g;
	$told{$name} = 1;
	if (!$row{$name}) { fault("$manual: $name is in no row of $table"); next }
	fault("$manual: $name: C<$hex>, and $row{$name}[0] in $table") if $hex ne $row{$name}[0];
	fault("$manual: $name: begins otherwise than \"$row{$name}[1]\" in $table")
		if index($says, $row{$name}[1] . " (") != 0;
	fault("$manual: $name: does not say what to do") if $says !~ /\)\. +\S/;
}
for my $name (sort keys %row) { fault("$manual: $name is not told") if !$told{$name} }
exit $bad;
' $table $manual
