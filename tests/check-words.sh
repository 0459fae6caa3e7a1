#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What users read has the field's words, and none of the words that this project once had for
# itself: in README, SECURITY, doc/peers.md, doc/promises.md, the manuals and the messages of the
# programs (strings of src/).
#
#	check-words.sh [TOP OF A TREE]
#
# Prints each such word as FILE:LINE: "TEXT": WHAT TO WRITE, and fails when there is one.
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
cd "$root"
[ -d man ] && [ -d src ] || { echo "$0: $root: neither man/ nor src/"; exit 99; }
command -v perl >/dev/null || { echo "perl is not installed"; exit 77; }

{
	ls README.md SECURITY doc/peers.md doc/promises.md man/*.pod
	find src -name '*.[ch]'
} | LC_ALL=C sort | perl -e '
use strict; use warnings;
my @words = (
	[qr/\bhaggl\w*/i, "negotiate"],
	[qr/\bshakes?\b(?! hands)/i, "handshake"],
	[qr/\bstrangers?\b/i, "an unknown client, an unauthenticated connection"],
	[qr/\banew\b/i, "again, new"],
	[qr/\b(?:is|are|was|were|been) told\b/i, "is reported, is notified"],
	[qr/\btells? (?:all|that|the|its|of|in|over)\b/i, "reports"],
	[qr/\bmend(?:s|ed)?\b/i, "correct, fix"],
	[qr/\bwho(?:ever)? has it open\b/i, "clients that have it open"],
	[qr/\bwhoever (?:is between|verifies|knows)\b/i, "an attacker, a peer, a client"],
	[qr/\bstays? as it was\b/i, "unchanged"],
	[qr/\bfrom the next start on\b/i, "after a restart"],
	[qr/\bask and command/i, "query and control"],
	[qr/\bservers before one\b/i, "servers sharing one"],
	[qr/\bgo(?:es|ing)? on without\b/i, "continue without"],
);
my $failed = 0;
while (my $file = <STDIN>) {
	chomp $file;
	open my $in, "<", $file or die "$file: $!\n";
	my $text = do { local $/; <$in> };
	my @parts;		# [offset, text]
	if ($file =~ /\.[ch]$/) {
		while ($text =~ m{/\*.*?\*/|"((?:\\.|[^"\\])*)"|\x27(?:\\.|[^\x27\\])+\x27}sg) {
			push @parts, [$-[1], $1] if defined $1;
		}
	} else {
		@parts = ([0, $text]);
	}
	for my $part (@parts) {
		my ($at, $said) = @$part;
		(my $flat = $said) =~ s/\n/ /g;
		for my $word (@words) {
			while ($flat =~ /$word->[0]/g) {
				my $line = 1 + (substr($text, 0, $at + $-[0]) =~ tr/\n//);
				print "$file:$line: \"$&\": write: $word->[1]\n";
				$failed = 1;
			}
		}
	}
}
exit($failed);
'
