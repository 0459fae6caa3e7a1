#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Completion in bash, with bash's own readline on a terminal: what TAB puts on the line, and what it
# offers.  Each option of --help is completed; names that peers chose are text.
. ./tests/functions.sh
requires_server; requires_gateway
requires /usr/bin/python3 --version
completion=$top_srcdir/contrib/completion/rtrsctl

# Programs that show their arguments; rtrsctl tells names that a peer could choose.
mkdir "$tmp/bin" "$tmp/dir" "$tmp/dir/sub" "$tmp/minus"
for program in rtrsctl rtrs-server rtrs-bench rtrs-nbd; do
	cat >"$tmp/bin/$program" <<END
#!/bin/bash
[ "\$*" != --help ] || exec "$(realpath "$top_builddir")/$program" --help
[ "\${*: -1}" != list ] || { printf '%s\n' "\$@" >>"$tmp/listed"; exec cat "$tmp/names"; }
printf '<%s>' "\$@"
printf '\n'
END
	chmod +x "$tmp/bin/$program"
done
cat >"$tmp/names" <<END
rtrs-nbd vm \$(touch $tmp/injected)
  pid  4712

rtrs-attach home
  pid  4713

rtrs-server disk0
  pid  4711
  export disk0
  export old disk
  export -kick
  session --socket=/evil
  session vm-1
  session vm-\$(touch $tmp/injected)\`touch $tmp/injected\`
  path 192.0.2.7:48488@192.0.2.1:1234
  path unix:/run/a@unix:/run/b
END
/usr/bin/python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$tmp/dir/a.sock"
touch "$tmp/dir/disk.img" "$tmp/minus/-e.img"

cat >"$tmp/type.py" <<'END'
import fcntl, os, pty, re, struct, subprocess, sys, termios
tmp, completion, top_builddir = sys.argv[1:]
PROMPT = "%s READY>" % os.getpid()
pid, terminal = pty.fork()
if pid == 0:
    # Readline shows a long line in one piece.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 999, 0, 0))
    os.environ.update(PATH="%s/bin:%s" % (tmp, os.environ["PATH"]), TERM="dumb", INPUTRC="/dev/null", PS1="")
    os.execlp("bash", "bash", "--norc", "--noprofile", "-i")

def run(keys):
    """What is printed until the next prompt."""
    os.write(terminal, keys.encode())
    out = ""
    while not out.endswith(PROMPT):
        out += os.read(terminal, 65536).decode()
    return out

# In two parts, so that the echo of this line is no prompt.
run("bind 'set enable-bracketed-paste off'; PS1='%s'' READY>'\n" % os.getpid())
run("source '%s'\n" % completion)

def arguments(keys):
    out = run(keys)
    lines = [line for line in out.replace("\r", "").split("\n") if line.startswith("<")]
    assert len(lines) == 1, out
    return re.findall(r"<([^>]*)>", lines[0])

def tab(typed, want):
    """TAB behind TYPED, and a word typed behind it: WANT are the arguments."""
    got = arguments(typed + "\tEND\n")
    assert got == want, "%r: TAB gives %r instead of %r" % (typed, got, want)

def offered(typed):
    """All that is offered (insert-completions)."""
    return arguments(typed + "\x1b*\n")

def offers(typed, want):
    got = offered(typed)
    assert got == want, "%r: offers %r" % (typed, got)

# Every option that --help names begins with itself, and takes its value without a blank.
for program in "rtrsctl", "rtrs-server", "rtrs-bench", "rtrs-nbd":
    text = subprocess.run([top_builddir + "/" + program, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    options = set(re.findall(r"(?m)(?:^ +|, | )(--[a-z-]+\[?=?)", text))
    named = set(o.rstrip("[=") for o in options)
    assert len(named) >= 6, named
    got = offered(program + " --")
    assert set(o.rstrip("=") for o in got) == named, (program, set(got), named)
    for option in options:
        if option.endswith("=") and not option.endswith("[="):
            assert option in got and option[:-1] not in got, (program, option, got)

tab("rtrsctl --so", ["--socket=END"])
tab("rtrsctl --socket=%s/dir/a" % tmp, ["--socket=%s/dir/a.sock" % tmp, "END"])
tab("rtrsctl --socket %s/dir/a" % tmp, ["--socket", "%s/dir/a.sock" % tmp, "END"])
tab("rtrsctl --socket=%s/dir/s" % tmp, ["--socket=%s/dir/sub/END" % tmp])
# A directory goes on, and a file that is no socket is not offered.
offers("rtrsctl --socket=%s/dir/" % tmp, ["--socket=%s/dir/a.sock" % tmp, "%s/dir/sub" % tmp])
tab("rtrsctl sess", ["session", "END"])
tab("rtrsctl che", ["check", "END"])
tab("rtrsctl --name=di", ["--name=disk0", "END"])
tab("rtrsctl --name v", ["--name", "vm $(touch %s/injected)" % tmp, "END"])
tab("rtrsctl --name=ho", ["--name=home", "END"])
offers("rtrsctl --pid=", ["--pid=4711", "4712", "4713"])
# Names are those of the program that is chosen.
tab("rtrsctl --server --pid 4711 --name=disk0 session disconnect vm-1",
    ["--server", "--pid", "4711", "--name=disk0", "session", "disconnect", "vm-1", "END"])
listed = open(tmp + "/listed").read().split("\n")
assert listed[-5:] == ["--server", "--pid=4711", "--name=disk0", "list", ""], listed
offers("rtrsctl path ", ["path", "add", "disconnect", "reconnect", "remove", "save"])
offers("rtrsctl --socket=%s/dir/a.sock policy min-" % tmp,
       ["--socket=%s/dir/a.sock" % tmp, "policy", "min-inflight", "min-latency"])
# Names with ':', '@' and '/', from any place in them, as the program that was named tells them.
for typed in "1", "192", "192.0.2.7:", "192.0.2.7:484", "192.0.2.7:48488@", "192.0.2.7:48488@1", "192.0.2.7:48488@192.0.2.1:12":
    tab("rtrsctl --socket=%s/dir/a.sock path disconnect %s" % (tmp, typed),
        ["--socket=%s/dir/a.sock" % tmp, "path", "disconnect", "192.0.2.7:48488@192.0.2.1:1234", "END"])
tab("rtrsctl path remove unix:/ru", ["path", "remove", "unix:/run/a@unix:/run/b", "END"])
tab("rtrsctl export kick o", ["export", "kick", "old disk", "END"])
tab("rtrsctl export kick disk0 vm-1", ["export", "kick", "disk0", "vm-1", "END"])
tab("rtrsctl expl", ["explain", "END"])
tab("rtrsctl explain o", ["explain", "old disk", "END"])
tab("rtrsctl explain disk0 vm-1", ["explain", "disk0", "vm-1", "END"])
tab("rtrsctl explain disk0 ps", ["explain", "disk0", "psk:END"])
tab("rtrsctl export add disk0=%s/dir/di" % tmp,
    ["export", "add", "disk0=%s/dir/disk.img" % tmp, "END"])
tab("rtrsctl export set old pri", ["export", "set", "old", "priority=END"])
tab("rtrsctl export set old priority=i", ["export", "set", "old", "priority=idle", "END"])
tab("rtrsctl export set old allow=uid:roo", ["export", "set", "old", "allow=uid:root", "END"])
tab("rtrsctl export set old allow=uni", ["export", "set", "old", "allow=unix", "END"])
tab("rtrsctl export set old rea", ["export", "set", "old", "read-only=END"])
tab("rtrsctl export set old read-only=ps", ["export", "set", "old", "read-only=psk:END"])
tab("rtrsctl export remove o", ["export", "remove", "old disk", "END"])
tab("rtrsctl session disconnect vm-1", ["session", "disconnect", "vm-1", "END"])
tab("rtrsctl session disconnect vm-\\$",
    ["session", "disconnect", "vm-$(touch %s/injected)`touch %s/injected`" % (tmp, tmp), "END"])
assert len(offered("rtrsctl session disconnect ")) == 4
assert not os.path.exists(tmp + "/injected"), "a peer's name was run"
assert "--socket=%s/dir/a.sock" % tmp in open(tmp + "/listed").read()

tab("rtrs-server --listen=un", ["--listen=unix:END"])
tab("rtrs-server --listen=unix:%s/dir/a" % tmp, ["--listen=unix:%s/dir/a.sock" % tmp, "END"])
tab("rtrs-server --log-level=w", ["--log-level=warning", "END"])
tab("rtrs-server --invalidate=al", ["--invalidate=always", "END"])
tab("rtrs-server --allow=uni", ["--allow=unix", "END"])
tab("rtrs-server --allow=uid:roo", ["--allow=uid:root", "END"])
tab("rtrs-server --state-dir=%s/dir/s" % tmp, ["--state-dir=%s/dir/sub/END" % tmp])
tab("rtrs-server disk0=%s/dir/di" % tmp, ["disk0=%s/dir/disk.img" % tmp, "END"])
tab("rtrs-server disk0=%s/dir/disk.img,readon" % tmp, ["disk0=%s/dir/disk.img,readonly" % tmp, "END"])

# What begins with '-' is no option, and is not offered where it would be read as one.
offers("rtrsctl export kick ", ["export", "kick", "disk0", "old disk"])
# auth= is of an address.
got = sorted(word.split(",")[-1] for word in offered("rtrs-server disk0=/x,"))
assert got == ["allow=", "direct", "force", "priority=", "read-only=", "readonly"], got
tab("rtrs-server disk0=%s/dir/disk.img,al" % tmp, ["disk0=%s/dir/disk.img,allow=END" % tmp])
tab("rtrsctl export kick -- -", ["export", "kick", "--", "-kick", "END"])
tab("rtrsctl -- export kick -k", ["--", "export", "kick", "-kick", "END"])
offers("rtrsctl export kick -- ", ["export", "kick", "--", "-kick", "disk0", "old disk"])
tab("rtrsctl session disconnect -- --s", ["session", "disconnect", "--", "--socket=/evil", "END"])
tab("rtrsctl --socket=%s/dir/a.sock session disconnect -- vm-1" % tmp,
    ["--socket=%s/dir/a.sock" % tmp, "session", "disconnect", "--", "vm-1", "END"])
run("cd '%s/minus'\n" % tmp)
tab("rtrs-server disk0=", ["disk0=-e.img", "END"])
tab("rtrs-server disk0=-", ["disk0=-e.img", "END"])
tab("rtrs-server -- -d=-", ["--", "-d=-e.img", "END"])

tab("rtrs-bench --rw=randr", ["--rw=randrEND"])
offers("rtrs-bench --rw=randr", ["--rw=randread", "randrw"])
tab("rtrs-bench --transport=rd", ["--transport=rdma", "END"])
tab("rtrs-bench --registration=st", ["--registration=static", "END"])
tab("rtrs-bench --iodepth=4 tcp", ["--iodepth=4", "tcp://END"])

# Each parameter of rtrs-nbd, and the kinds of their values.
text = subprocess.run([top_builddir + "/rtrs-nbd", "--help"], stdout=subprocess.PIPE,
                      check=True).stdout.decode()
keys = set(re.findall(r"(?m)^\[?([a-z-]+=)", text))
assert len(keys) >= 15, keys
assert set(offered("rtrs-nbd ")) == keys, (offered("rtrs-nbd "), keys)
offers("rtrs-nbd mode=r", ["mode=ro", "rw"])
tab("rtrs-nbd transport=t", ["transport=tcp", "END"])
tab("rtrs-nbd server=un", ["server=unix:END"])
tab("rtrs-nbd path=rd", ["path=rdma://END"])
tab("rtrs-nbd config=%s/dir/di" % tmp, ["config=%s/dir/disk.img" % tmp, "END"])
tab("rtrs-nbd control=no", ["control=none", "END"])
tab("rtrs-nbd control=%s/dir/a" % tmp, ["control=%s/dir/a.sock" % tmp, "END"])
tab("rtrs-nbd -U %s/dir/a" % tmp, ["-U", "%s/dir/a.sock" % tmp, "END"])
tab("rtrs-nbd --unix=%s/dir/a" % tmp, ["--unix=%s/dir/a.sock" % tmp, "END"])
END
/usr/bin/python3 "$tmp/type.py" "$tmp" "$completion" "$(realpath "$top_builddir")"
