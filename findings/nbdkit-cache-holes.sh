#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: nbdkit's filter cache knows what it holds, and says so when a client asks for holes, as the filter cow does.  In
# nbdkit 1.32.5 and 1.42.3 the answer is the plugin's alone: data that was written and not flushed reads back, but is a
# hole for BLOCK_STATUS, and nbdcopy, which skips holes, copies zeroes.  --filter=noextents in front helps.
. "$(dirname "$0")/common.sh"

# copied SUITE FILTERS [OPTION...]: what comes back of a file of "x" by nbdcopy with these options.
copied() {
	local root=$tmp/$1 filters=$2
	shift 2
	head -c 65536 /dev/zero | tr '\0' x >"$root/in"
	# shellcheck disable=SC2086,SC2016 # words; nbdkit sets it
	chroot "$root" nbdkit -U - $filters memory 1M \
		--run 'nbdcopy /in "$uri" && nbdcopy '"$*"' "$uri" /out' &&
		case $(head -c 65536 "$root/out" | tr -d '\0' | sort -u | tr -d '\n') in
		'') printf zeroes ;;
		*) cmp -s -n 65536 "$root/in" "$root/out" && printf data ;;
		esac
}

packages bookworm nbdkit=1.32.5-1 libnbd-bin=1.14.2-1
packages trixie nbdkit=1.42.3-1 libnbd-bin=1.22.2-1+b1
for suite in bookworm trixie; do
	expect "$suite, cache" "$(copied $suite --filter=cache)" zeroes
	expect "$suite, cache, nbdcopy --no-extents" "$(copied $suite --filter=cache --no-extents)" data
	expect "$suite, noextents in front of cache" "$(copied $suite '--filter=noextents --filter=cache')" data
	expect "$suite, cow" "$(copied $suite --filter=cow)" data
done
