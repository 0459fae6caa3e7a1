# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# One guest, for run.sh and rack.sh, which source it.

# Not $0: rack.sh is itself sourced.
guest_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# guest_prepare 7.3|6.12|6.1: set guest_kernel to the directory of the kernel, made when it is missing.
# Ends the script when it cannot be made: with 77 where that is nobody's fault.
guest_prepare() {
	local dir=${GUEST_CACHE:-$guest_dir/cache}/$1

	command -v qemu-system-x86_64 >/dev/null ||
		{ echo "SKIP: qemu-system-x86_64 is not installed"; exit 77; }
	"$guest_dir/prepare.sh" "$1" "$dir" || exit
	guest_kernel=$(cd "$dir" && pwd)
}

# guest_start DIR ID TIMEOUT QEMU-OPTION... -- SCRIPT [ARG...]: boot $guest_kernel and run the
# script there in the current directory.  DIR is the guest's /run/guest; ID ends its addresses.
# With guest_clock=instructions, and not host, its time does not depend on the load of the host.
# Sets guest_pid, a child of ours that ends with the guest and kills it when it gets SIGTERM or
# when we die. What stands in DIR afterwards: status and out.log of the script, console.log,
# qemu.log, dmesg.log, and booted if anything of ours ran: see guest_died_booting.
guest_start() {
	{ local -; set +x; } 2>/dev/null
	local dir=$1 id=$2 timeout=$3 options=() accel=(-accel tcg,thread=multi)

	shift 3
	# 4 ns for each instruction, and real time while all processors sleep.  Takes one thread.
	[ "${guest_clock-host}" = host ] || accel=(-accel tcg,thread=single -icount shift=2)
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	mkdir -p "$dir"
	rm -f "$dir"/{booted,status,out.log,dmesg.log,console.log}
	{
		printf 'GUEST_ID=%q GUEST_KERNEL=%q GUEST_CWD=%q\n' "$id" "$guest_kernel" "$PWD"
		printf 'GUEST_JOB=('
		printf '%q ' "$@"
		printf ')\n'
	} >"$dir/job"
	# The kernel unpacks one archive over the other.
	mkdir -p "$dir/boot"
	cp "$guest_dir/init" "$dir/boot/init"
	printf '%s\n' "$guest_dir/stage2.sh" >"$dir/boot/stage2"
	{
		cat "$guest_kernel/initramfs.gz"
		( cd "$dir/boot" && printf 'init\nstage2\n' | cpio --quiet -o -H newc -R 0:0 ) |
			gzip -1
	} >"$dir/initrd"
	rm -r "${dir:?}/boot"
	# A comma ends an option's value unless it stands twice.  no_timer_check: on a busy machine
	# a kernel that measures the timer while it boots finds it broken.  rdrand: else the kernel
	# has its random numbers some seconds after the boot, patches its code then, and emulated
	# processors may stumble over that.  cx16: an interrupt behind that instruction takes wrong
	# flags with it, and the kernel panics in kmalloc() (findings/qemu-cmpxchg16b-flags.sh).
	setpriv --pdeathsig TERM timeout --kill-after=5 "$timeout" \
		setpriv --pdeathsig KILL qemu-system-x86_64 \
		"${accel[@]}" -cpu qemu64,+rdrand,-cx16 \
		-nographic -nodefaults -no-reboot \
		-serial "file:$dir/console.log" -kernel "$guest_kernel/vmlinuz" \
		-initrd "$dir/initrd" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check" \
		-virtfs local,path=/,mount_tag=rootfs,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=${dir//,/,,},mount_tag=results,security_model=none" \
		"${options[@]}" </dev/null >"$dir/qemu.log" 2>&1 &
	guest_pid=$!
}

# guest_died_booting DIR: of a guest that has ended.  Emulated processors that patch the kernel's
# code at boot crash it once in some hundred times, before anything that is tested runs: then it
# is worth another try.  Says so.
guest_died_booting() {
	[ ! -e "$1/booted" ] || return 1
	echo "the guest's kernel did not come up, once more; its console:" >&2
	tail -n 20 "$1/qemu.log" "$1/console.log" >&2 || true	# none when QEMU itself died
}
