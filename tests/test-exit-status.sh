#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One table of exit statuses (src/common/base/process.h) for all programs.  2: somebody has to
# mend something, so a unit of systemd does not try again; 1: the same call may work later.
. ./tests/functions.sh
requires_server; requires_gateway
server=("$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none)
gateway=("$RTRS_NBD" -f -U "$tmp/nbd.sock")
bench=("$top_builddir/rtrs-bench" 127.0.0.1:1 disk)
cd "$tmp"

# mistake REGEX COMMAND...: a mistake, told by a line that matches.
mistake() {
	expect_failure 2 "$@"
}
# not_now REGEX COMMAND...
not_now() {
	expect_failure 1 "$@"
}

psk=$(printf '%064d' 1)
echo "gw1:$psk" >key
chmod 600 key
echo 'gw1:short' >bad-key
chmod 600 bad-key
cp key open-key
chmod 644 open-key
printf '%s\n' '[server]' 'threds = 3' >bad.conf
printf '%s\n' '[server]' "tls-psk = $tmp/bad-key" '[export "disk"]' 'path = mem:1M' >bad-key.conf
printf '%s\n' 'server = 127.0.0.1:1' 'exprt = disk' >bad-gateway.conf
printf '%s\n' 'server = 127.0.0.1:1' 'export = disk' "auth-psk = $tmp/open-key" >open-key.conf
mkdir empty.d good.conf.d
echo '[server]' >good.conf
printf '%s\n' '[export "disk"]' >good.conf.d/disk.conf

for line in listen=tcp://nosuch.invalid:7777 allow=uid:nosuchuser; do
	printf '%s\n' '[server]' "$line" '[export "disk"]' 'path = mem:1M' >"${line%%=*}.conf"
done

too_long=/$(printf %0107d 0)
for way in '' --check; do
	# What may come later, in a file as on the command line.
	not_now 'nosuch.invalid' "$RTRS_SERVER" --config=listen.conf $way
	not_now 'nosuchuser' "$RTRS_SERVER" --config=allow.conf $way
	mistake 'threds' "$RTRS_SERVER" --config=bad.conf $way
	mistake 'none.conf: No such file' "$RTRS_SERVER" --config=none.conf $way
	mistake ': expected a regular file' "$RTRS_SERVER" --config=. $way
	mistake "has no path" "$RTRS_SERVER" --config=good.conf $way
	for kind in tls auth; do
		mistake 'line 1: expected a key' "${server[@]}" --$kind-psk=bad-key disk=mem:1M $way
		mistake 'expected mode 0600' "${server[@]}" --$kind-psk=open-key disk=mem:1M $way
		mistake "--$kind-psk=none: No such file" "${server[@]}" --$kind-psk=none \
			disk=mem:1M $way
	done
	mistake 'line 1: expected a key' "$RTRS_SERVER" --config=bad-key.conf --control none $way
	mistake 'ca-cert.pem' "${server[@]}" --tls-certificates=empty.d disk=mem:1M $way
	for option in --control= --metrics=unix:; do
		mistake "${option%%=*}.*1 to 107 bytes" "$RTRS_SERVER" --listen tcp://127.0.0.1:0 \
			$option"$too_long" disk=mem:1M $way
	done
	for option in --unix= control= metrics=unix:; do
		mistake "${option%%=*}.*1 to 107 bytes" "$RTRS_NBD" -f server=127.0.0.1:1 \
			$option"$too_long" $way
	done
	[ ! -x "$RTRS_ATTACH" ] || mistake 'control.*1 to 107 bytes' "$RTRS_ATTACH" \
		127.0.0.1:1/disk control="$too_long" $way
done
"$RTRS_NBD" --check -f server=127.0.0.1:1 --unix="${too_long%?}"
mistake "'--threds=3'" "$RTRS_SERVER" --threds=3
# What nobody can read is not done.
if [ -w /dev/full ]; then
	no_text() {
		local program=$1 status=0
		shift
		"$top_builddir/$program" "$@" >/dev/full 2>"$tmp/told" || status=$?
		[ $status -eq 1 ] || fail "status $status of $program $*"
		grep -x "$program: standard output: No space left on device" "$tmp/told"
	}
	for program in rtrs-server rtrs-nbd rtrs-bench rtrs-psk rtrsctl; do
		no_text $program --help
		no_text $program --version
	done
	no_text rtrs-server --listen tcp://127.0.0.1:0 --check disk=mem:1M
fi
not_now 'cannot be opened' "${server[@]}" --strict disk="$tmp/none"
not_now 'cannot listen|no address' "$RTRS_SERVER" --listen tcp://192.0.2.1:0 --control none \
	disk=mem:1M

for kind in tls auth; do
	for file in bad-key open-key none; do
		mistake "$kind-psk=.*$file" "${gateway[@]}" server=127.0.0.1:1 $kind-psk=$file
		mistake "$kind-psk=.*$file" "${bench[@]}" --$kind-psk=$file
	done
done
mistake '--tls-psk=bad-key' "${gateway[@]}" server=127.0.0.1:1 --tls-psk=bad-key
mistake "'exprt'" "${gateway[@]}" config="$tmp/bad-gateway.conf"
mistake 'expected mode 0600' "${gateway[@]}" config="$tmp/open-key.conf"
mistake 'No such file' "${gateway[@]}" config="$tmp/none.conf"
mistake 'server= is missing' "${gateway[@]}" export=disk
mistake "'--threds" "${gateway[@]}" --threds=3 server=127.0.0.1:1
not_now 'refused|not reached|no server' "${gateway[@]}" server=127.0.0.1:1 export=disk
not_now 'refused|not reached|no server' "${bench[@]}"
mistake 'expected one NAME' "$top_builddir/rtrs-psk"
not_now 'cannot be written' bash -c '"$0" gw1 >/dev/full' "$top_builddir/rtrs-psk"
mistake "no command 'reboot'" "$top_builddir/rtrsctl" reboot
not_now 'No such file' "$top_builddir/rtrsctl" --socket "$tmp/none.sock" status
