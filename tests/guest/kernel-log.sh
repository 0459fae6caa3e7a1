# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What must not stand in a kernel's log, for inside.sh and rack.sh, which source it.

# kernel_complains <LOG: whether it does; prints these lines.
kernel_complains() {
	grep -E -e \
		'Oops|BUG:|BUG at|WARNING:|blocked for more than|soft lockup|general protection' \
		-e 'Call Trace|corruption|use-after-free|unregister_netdevice: waiting'
}
