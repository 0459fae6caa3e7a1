#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run the findings, or those that are named, one after the other.  Status 1: one has changed.
set -u
here=$(dirname "$(readlink -f "$0")")
failed=''
if [ $# -eq 0 ]; then
	for file in "$here"/*.sh; do
		case ${file##*/} in
		run.sh | common.sh | guest.sh) ;;
		*) set -- "$@" "$(basename "$file" .sh)" ;;
		esac
	done
fi
for name; do
	status=0
	printf '\n%s\n' "$name"
	bash "$here/$name.sh" || status=$?
	case $status in
	0 | 77) ;;
	*) failed+=" $name" ;;
	esac
done
[ -z "$failed" ] || { printf '\nchanged:%s\n' "$failed"; exit 1; }
