#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Follows one NBD request over tcp through both programs: which .c files of src/ it enters, and how
often it changes the file.

	trace.py [--walk] SOURCE-DIRECTORY [read|write|fua]...

Builds the source, which must be complete (make dist) and not configured, with
-finstrument-functions in ./trace-build, starts both programs there and does one 4k request of each
kind.  Fails when a read enters more files, or changes the file more often, than LIMITS says.
--walk prints the way.  trace.c does the recording.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nbd

HERE = os.path.dirname(os.path.abspath(__file__))
# of a read: files, changes.  The server was within 16 and 50 while it copied; to close the key of a
# chunk and to open it again leads through srv-key.c, frwr-map.c and tcp-key.c.  srv-rnbd.c stands
# between RTRS and RNBD: 19 and 56 before it.  Where the ring answers a read of the page cache later
# than its submission, the reactor arms its connections before it waits: 3 changes more.
# The client had 16 and 50 before a request was cut at blocks (dev-req.c) apart from the wait for
# its end (dev-req.c): both front ends share the former, and only threads have the latter.
LIMITS = {"client": (19, 64), "server": (20, 61)}
PATIENCE_S = 60


def run(*command, **more):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False, **more)
    if result.returncode:
        sys.exit(f"trace.py: {' '.join(command)}:\n{result.stdout[-4000:]}")


def build(source, top):
    shutil.rmtree(top, ignore_errors=True)
    os.mkdir(top)
    recorder = os.path.join(top, "trace.so")
    run("gcc", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-o", recorder,
        os.path.join(HERE, "trace.c"))
    # A relative path: configure refuses an absolute one with a space.
    run(os.path.join(os.path.relpath(source, top), "configure"),
        "CFLAGS=-O0 -g -finstrument-functions",
        "LDFLAGS=-rdynamic", cwd=top)
    run("make", f"-j{os.cpu_count()}", "rtrs-server", "nbdkit-rtrs-plugin.la", cwd=top)
    return recorder


def until(what, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"trace.py: waited {PATIENCE_S} s for {what}")
        time.sleep(0.01)


class Programs:
    """rtrs-server with one IO thread and nbdkit with the plugin, and an NBD client of them.

    A thread that waits sleeps at once: how often it looks meanwhile (spin.h) is no part of a
    request's way."""

    def __init__(self, top, recorder):
        # Short, for a socket, and without what a server's argument must escape.
        self.tmp = tempfile.mkdtemp(prefix="rtrs-trace.", dir="/tmp")
        self.out = os.path.join(self.tmp, "out")
        env = dict(os.environ, TRACE_OUT=self.out, LD_PRELOAD=recorder)
        disk = os.path.join(self.tmp, "disk")
        with open(disk, "wb") as f:
            f.truncate(64 << 20)
        libs = os.path.join(top, ".libs", "rtrs-server")
        self.server_binary = libs if os.path.exists(libs) else os.path.join(top, "rtrs-server")
        self.plugin = os.path.join(top, ".libs", "nbdkit-rtrs-plugin.so")
        ready, ready_in = os.pipe()
        self.server = subprocess.Popen([self.server_binary, "--listen", "tcp://127.0.0.1:0",
                                        "--threads=1", "--poll=0",
                                        "--ready-fd", str(ready_in), "disk=" + disk],
                                       env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True,
                                       pass_fds=[ready_in])
        os.close(ready_in)
        os.read(ready, 64)
        os.close(ready)
        port = None
        while port is None:
            line = self.server.stdout.readline()
            if not line:
                sys.exit("trace.py: rtrs-server does not say where it listens")
            if "127.0.0.1:" in line:
                port = line.split("127.0.0.1:")[1].split()[0].strip(".,")
        socket = os.path.join(self.tmp, "sock")
        self.nbdkit = subprocess.Popen(["nbdkit", "-f", "-t", "4", "-U", socket, self.plugin,
                                        "127.0.0.1:" + port,
                                        "transport=tcp", "export=disk", "connections=2", "poll=0"],
                                       env=env, stderr=subprocess.DEVNULL)
        until("nbdkit", lambda: os.path.exists(socket))
        self.nbd = nbd.NBD()
        self.nbd.connect_unix(socket)

    def end(self):
        self.nbd.shutdown()
        for process in self.nbdkit, self.server:
            process.terminate()
            process.wait()
        shutil.rmtree(self.tmp)

    def record(self, kind):
        """The files that each program enters for one request, one after another."""
        both = {"client": (self.nbdkit, self.plugin), "server": (self.server, self.server_binary)}
        data = bytes(range(256)) * 16
        # What happens once in a life is not of the way.
        for i in range(5):
            self.nbd.pwrite(data, 4096 * i)
            self.nbd.pread(4096, 4096 * i)
        self.quiet()
        for process, _ in both.values():
            process.send_signal(signal.SIGVTALRM)
        time.sleep(0.05)
        if kind == "read":
            self.nbd.pread(4096, 8192)
        else:
            self.nbd.pwrite(data, 8192, nbd.CMD_FLAG_FUA if kind == "fua" else 0)
        self.quiet()
        ways = {}
        for name, (process, binary) in both.items():
            path = f"{self.out}.{process.pid}"
            process.send_signal(signal.SIGPROF)
            until(path, lambda: os.path.exists(path))
            ways[name] = files(path, binary)
            os.unlink(path)
        return ways

    def quiet(self):
        """Until neither program has got CPU time for a while."""
        def used():
            total = 0
            for process in self.nbdkit, self.server:
                with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
                    total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
            return total

        last = -1
        while last != used():
            last = used()
            time.sleep(0.3)


def files(path, binary):
    base, order = None, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            what, address, *name = line.split(maxsplit=2)
            if what == "enter":
                order.append(int(address, 16))
            elif name and os.path.basename(name[0].strip()) == os.path.basename(binary):
                base = int(address, 16)
            elif not name and base is None and not binary.endswith(".so"):
                base = int(address, 16)
    at = sorted(set(order))
    text = subprocess.run(["addr2line", "-e", binary] + [hex(a - base) for a in at],
                          capture_output=True, text=True,
                          check=True).stdout.splitlines()
    file_of = {a: os.path.basename(t.split(":")[0]) for a, t in zip(at, text)}
    way = []
    for a in order:
        if file_of[a].endswith(".c") and way[-1:] != [file_of[a]]:
            way.append(file_of[a])
    return way


def main():
    args = [a for a in sys.argv[1:] if a != "--walk"]
    if not args or set(args[1:]) - {"read", "write", "fua"}:
        sys.exit(__doc__)
    top = os.path.abspath("trace-build")
    programs = Programs(top, build(os.path.abspath(args[0]), top))
    bad = False
    for kind in args[1:] or ["read"]:
        for name, way in programs.record(kind).items():
            nfiles, changes = len(set(way)), max(0, len(way) - 1)
            most_files, most_changes = LIMITS[name]
            over = kind == "read" and (nfiles > most_files or changes > most_changes)
            bad |= over
            print(f"{kind:5} {name}: {nfiles} .c files, {changes} changes of file" +
                  (f", of {most_files} and {most_changes}{' !' if over else ''}" if kind == "read"
                   else ""))
            if "--walk" in sys.argv:
                print("   ", " > ".join(way))
    programs.end()
    shutil.rmtree(top)
    return bad


if __name__ == "__main__":
    sys.exit(main())
