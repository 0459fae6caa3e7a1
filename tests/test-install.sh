#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make install: what is installed and what is not, scripts that name the programs by their place, a
# plugin directory where this user may not write, and make uninstall.
. ./tests/functions.sh
requires_server; requires_plugin
requires make --version
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR

# variable NAME: as make expands it.
variable() {
	make -s --no-print-directory -C "$top_builddir" -f - print 2>/dev/null <<END | sed -n 's/^value: //p'
include Makefile
print:
	@printf 'value: %s\n' '\$($1)'
END
}
prefix=$(variable prefix) sbindir=$(variable sbindir) bindir=$(variable bindir) \
	plugindir=$(variable plugindir)
bashcompdir=$(variable bashcompdir) pkgdatadir=$(variable pkgdatadir)
case $tmp$prefix$plugindir$top_builddir in
*' '*) skip "libtool cannot install from or to a path with a space" ;;
esac
make -C "$top_builddir" install DESTDIR="$tmp/root"
root=$tmp/root
(cd "$root" && find . ! -type d | sort)
for program in "$sbindir/rtrs-server" "$sbindir/rtrsctl" "$bindir"/rtrs-{bench,nbd,psk}; do
	"$root$program" --version | grep -q -F " $(variable PACKAGE_VERSION)"
done
[ "$(ls "$root$plugindir")" = nbdkit-rtrs-plugin.so ]

# One file completes five commands: bash-completion looks for each by its name.
for program in rtrsctl rtrs-server rtrs-bench rtrs-nbd rtrs-psk; do
	bash -c '. "$1" && complete -p "$2"' - "$root$bashcompdir/$program" "$program"
done

# The scripts attach to what is installed.
attaches() {
	[ -x "$root$pkgdatadir/$1" ]
	sed -n 's/^usdt:\(.*\):rtrs:[a-z_]*$/\1/p' "$root$pkgdatadir/$1" | sort -u >"$tmp/attached"
	[ "$(cat "$tmp/attached")" = "$2" ] || fail "$1 attaches to $(cat "$tmp/attached")"
	[ -f "$root$2" ]
}
attaches rtrs-server-stages.bt "$sbindir/rtrs-server"
attaches rtrs-plugin-requests.bt "$plugindir/nbdkit-rtrs-plugin.so"
attaches rtrs-nbd-requests.bt "$bindir/rtrs-nbd"

make -C "$top_builddir" uninstall DESTDIR="$root"
[ -z "$(find "$root" ! -type d)" ] || fail "uninstall leaves $(find "$root" ! -type d)"

# A user whose prefix is his and for whom nbdkit's directory is read-only: nothing is installed.
# Root is such a user without its capabilities.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
	as_user=(setpriv "--bounding-set=-all" "--inh-caps=-all")
	requires "${as_user[@]}" true
fi
mkdir -m 555 "$tmp/nbdkits"
for dir in "$tmp/nbdkits" "$tmp/nbdkits/to/be/made"; do
	must_fail "${as_user[@]}" make -C "$top_builddir" install prefix="$tmp/x" plugindir="$dir" \
		>"$tmp/refused" 2>&1
	cat "$tmp/refused"
	grep -q -F "cannot write to $tmp/nbdkits, and the plugin belongs into $dir" "$tmp/refused"
	grep -q -F -- "--prefix=$tmp/x --with-plugindir=" "$tmp/refused"
	[ ! -e "$tmp/x" ] || fail "installed all the same: $(find "$tmp/x")"
done
# What the message asks for.
given=$(sed -n 's/.* --with-plugindir=//p' "$tmp/refused" | head -n 1)
"${as_user[@]}" make -C "$top_builddir" install prefix="$tmp/x" plugindir="$given"
preload=$(nbdkit_preload)
env ${preload:+LD_PRELOAD=$preload} nbdkit "$given/nbdkit-rtrs-plugin.so" --dump-plugin |
	grep -q -x name=rtrs
