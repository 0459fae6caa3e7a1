#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each `FILE:FUNCTION` of doc/walks.md is the definition of a function in that file, and each
# `src/FILE` exists.
#
#	check-walks.sh [DIRECTORY THAT HAS doc/ and src/]
set -u -o pipefail
root=${1:-${srcdir:-$(dirname "$0")/..}}
walks=$root/doc/walks.md
bad=0 n=0
[ -f "$walks" ] || { echo "$walks does not exist"; exit 99; }
while IFS= read -r name; do
	file=${name%%:*} function=
	case $name in *:*) function=${name#*:} ;; esac
	n=$((n + 1))
	if [ ! -f "$root/$file" ]; then
		echo "doc/walks.md: $name: there is no $file"
		bad=1
	# A line that begins with the type and does not end as a declaration does.
	elif [ -n "$function" ] &&
		! grep -E "^[a-z][a-zA-Z0-9_ *]*[ *]$function\(" "$root/$file" | grep -qv ';$'; then
		echo "doc/walks.md: $name: $file does not define it"
		bad=1
	fi
done < <(grep -o "\`src/[^\`]*\`" "$walks" | tr -d "\`" | sort -u)
for walk in 'A read' 'A read through rtrs-nbd' 'A write with FUA' 'A lost path' \
	'An export that comes, grows and goes'; do
	grep -qx "## $walk" "$walks" || { echo "doc/walks.md: no '## $walk'"; bad=1; }
done
[ $n -ge 30 ] || { echo "doc/walks.md names $n places: the walks are not there"; bad=1; }
exit $bad
