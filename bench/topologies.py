# SPDX-License-Identifier: BSD-3-Clause
"""What the bench compares: the programs of a topology, started and stopped, and the CPU time that they use."""

import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

VARIANTS = {
    "never": (["--invalidate=never"], []),
    "copy": (["--invalidate=copy"], []),
    "always": (["--invalidate=always"], []),
    "static": ([], ["registration=static"]),
    "window": ([], ["registration=window"]),
}
TOPOLOGIES = ["ours", "peer", "ceiling", "file", "unix", "peer-unix", "limit", "base", "base-gateway",
              "gateway", "gateway-unix", "rbd", "rbd-qemu", "rbd-limit", "tls", "gateway-tls", "peer-tls", "gateway-nbds",
              "peer-nbds", "digest"] + list(VARIANTS)
START_TIMEOUT_S = 15
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """The run cannot go on; the text says why."""


class Process:
    """A server in the foreground with its output in a log file."""

    def __init__(self, workdir, name, argv, pass_fds=(), env=None):
        self.name = name
        self.argv = argv
        self.logpath = os.path.join(workdir, name + ".log")
        with open(self.logpath, "wb") as log:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          pass_fds=pass_fds, env=env)

    def log(self):
        with open(self.logpath, errors="replace") as f:
            return f.read()

    def fail(self, what):
        raise Failed("%s %s\n  command: %s\n  output:\n%s" %
                     (self.name, what, " ".join(self.argv), self.log() or "    (none)"))

    def wait_for(self, what, ready):
        """Return what ready() gives, once it is true; Failed if the process ends or time is up."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            answer = ready()
            if answer:
                return answer
            if self.popen.poll() is not None:
                self.fail("ended with status %d before: %s" % (self.popen.returncode, what))
            if time.monotonic() > deadline:
                self.fail("took more than %d s: %s" % (START_TIMEOUT_S, what))
            time.sleep(0.01)

    def cpu_s(self):
        """CPU time of all its threads, ended ones included."""
        with open("/proc/%d/stat" % self.popen.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(20)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
                self.fail("did not end within 20 s of SIGTERM")
        if self.popen.returncode not in (0, -signal.SIGTERM):
            self.fail("ended with status %d" % self.popen.returncode)


def make_keys(program, path):
    """A file with a key, for all ends with TLS."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        subprocess.run([program, "bench"], stdout=out, check=True)


def make_certificates(directory):
    """Certificates of an authority, in @directory, for the near end of those with TLS before the NBD client."""
    os.makedirs(directory, 0o700)
    templates = {"ca": 'cn = "bench"\nca\ncert_signing_key\n',
                 "server": 'cn = "localhost"\ndns_name = "localhost"\ntls_www_server\nsigning_key\n'}
    for name, template in templates.items():
        key, cert, text = (os.path.join(directory, name + end) for end in ("-key.pem", "-cert.pem", ".cfg"))
        with open(text, "w") as f:
            f.write(template)
        signer = ["--generate-self-signed"] if name == "ca" else [
            "--generate-certificate", "--load-ca-certificate", os.path.join(directory, "ca-cert.pem"),
            "--load-ca-privkey", os.path.join(directory, "ca-key.pem")]
        for argv in (["--generate-privkey", "--key-type=ecdsa", "--outfile", key],
                     signer + ["--load-privkey", key, "--template", text, "--outfile", cert]):
            done = subprocess.run(["certtool"] + argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise Failed("certtool %s:\n%s" % (" ".join(argv), done.stdout.decode(errors="replace")))


class Topology:
    """The running servers of one topology and the NBD URI of its near end."""

    def __init__(self, name, args, workdir, path):
        self.name = name
        self.args = args
        self.file = path
        self.workdir = tempfile.mkdtemp(prefix=name + ".", dir=workdir)
        self.processes = []
        self.server = None		# address of an rtrs-server
        self.socket = os.path.join(self.workdir, "nbd.sock")
        self.uri = "nbd+unix:///?socket=" + self.socket
        self.near = None		# starts the near end at @socket
        self.other_uri = None		# of a second near end (start_other())
        # Of the pool "rbd" of the cluster of $CEPH_CONF (rbd.sh); a writer locks its image.
        self.image = "bench-" + name

    def start(self):
        if self.name in VARIANTS:
            self.start_ours(*VARIANTS[self.name])
        else:
            getattr(self, "start_" + self.name.replace("-", "_"))()

    def start_other(self):
        """A second near end of the same server, if there is one.  It reads: another writer would be refused."""
        if not self.near:
            return
        first = self.socket
        self.socket = os.path.join(self.workdir, "other.sock")
        self.other_uri = self.uri.replace(first, self.socket)
        self.near("mode=ro")
        self.socket = first

    def begin_near(self, near):
        self.near = near
        near()

    def stop(self):
        while self.processes:
            self.processes.pop().stop()

    def kill(self):
        for p in self.processes:
            if p.popen.poll() is None:
                p.popen.kill()
                p.popen.wait()
        self.processes = []

    def cpu_s(self):
        return sum(p.cpu_s() for p in self.processes)

    def spawn(self, *args, **kwargs):
        name = args[0]
        while name in (p.name for p in self.processes):
            name += "-other"
        p = Process(self.workdir, name, *args[1:], **kwargs)
        self.processes.append(p)
        return p

    def nbdkit(self, name, where, *plugin_and_args, **kwargs):
        """nbdkit with the options all topologies share; returns when it accepts connections."""
        pidfile = os.path.join(self.workdir, name + "-" + os.path.basename(self.socket) + ".pid")
        argv = [self.args.nbdkit, "-f", "-t", str(self.args.threads), "-P", pidfile]
        p = self.spawn(name, kwargs.pop("wrap", []) + argv + where + list(plugin_and_args),
                       **kwargs)
        # nbdkit writes its pid when it is ready; the file may exist a moment before its content.
        p.wait_for("its pid file", lambda: os.path.exists(pidfile) and os.path.getsize(pidfile))

    def rtrs_nbd(self, *parameters):
        """rtrs-nbd, which stands beside the server, in the place of nbdkit."""
        self.rtrs_nbd_with((), parameters)

    def rtrs_nbd_with(self, options, parameters, program=None):
        pidfile = os.path.join(self.workdir, "rtrs-nbd-" + os.path.basename(self.socket) + ".pid")
        program = program or os.path.join(os.path.dirname(self.args.server), "rtrs-nbd")
        p = self.spawn("rtrs-nbd", [program, "-f", "-P", pidfile, "-U", self.socket, *options, "server=" + self.server,
                                    "export=bench", *self.args.plugin_arg, *parameters])
        p.wait_for("its pid file", lambda: os.path.exists(pidfile) and os.path.getsize(pidfile))

    def start_ceiling(self):
        self.begin_near(lambda *_: self.nbdkit("nbdkit-ceiling", ["-U", self.socket], self.args.ceiling,
                                            "file=" + self.file))

    def start_file(self):
        """Nothing: the file as it is."""

    def start_limit(self):
        self.begin_near(lambda *_: self.nbdkit("nbdkit-file", ["-U", self.socket], "file", self.file))

    def start_peer(self, far_arg=(), near_arg=(), near_options=()):
        # The listening socket is ours and handed over, so that no port has to be guessed.
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            port = listener.getsockname()[1]
            fd = listener.fileno()
            # Socket activation: descriptor 3, and the pid of the process that gets it.
            wrap = ["/bin/sh", "-c",
                    'exec 3<&%d; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"' % fd, "sh"]
            self.nbdkit("nbdkit-file", list(far_arg), "file", self.file, pass_fds=(fd,), wrap=wrap)
        self.begin_near(lambda *_: self.nbdkit("nbdkit-nbd", ["-U", self.socket, *near_options], "nbd",
                                            "hostname=127.0.0.1", "port=%d" % port, *near_arg))

    def start_peer_tls(self):
        self.start_peer(["--tls=require", "--tls-psk=" + self.args.keys],
                        ["tls=require", "tls-psk=" + self.args.keys, "tls-username=bench"])

    def near_tls(self):
        """TLS between the NBD client and the near end, by certificates, which fio's engine has from $HOME."""
        self.uri = self.uri.replace("nbd+", "nbds+", 1)
        return ["--tls=require", "--tls-certificates=" + self.args.certificates]

    def start_gateway_nbds(self):
        options = self.near_tls()
        self.start_ours(front=lambda *parameters: self.rtrs_nbd_with(options, parameters))

    def start_peer_nbds(self):
        self.start_peer(near_options=self.near_tls())

    def start_peer_unix(self):
        between = os.path.join(self.workdir, "between.sock")
        self.nbdkit("nbdkit-file", ["-U", between], "file", self.file)
        self.begin_near(lambda *_: self.nbdkit("nbdkit-nbd", ["-U", self.socket], "nbd", "socket=" + between))

    def start_unix(self):
        self.start_ours(listen="unix:" + os.path.join(self.workdir, "between.sock"))

    def start_tls(self, front=None):
        self.start_ours(["--tls=require", "--tls-psk=" + self.args.keys],
                        ["tls=require", "tls-psk=" + self.args.keys], front=front)

    def start_gateway_tls(self):
        self.start_tls(front=self.rtrs_nbd)

    def start_gateway(self):
        self.start_ours(front=self.rtrs_nbd)

    def start_digest(self):
        self.start_ours(plugin_arg=["digest=crc32c"], front=self.rtrs_nbd)

    def start_gateway_unix(self):
        self.start_ours(front=self.rtrs_nbd, listen="unix:" + os.path.join(self.workdir, "between.sock"))

    def start_rbd(self):
        target = "rbd:rbd/%s,conf=%s" % (self.image, os.environ["CEPH_CONF"])
        self.start_ours(front=self.rtrs_nbd, listen="unix:" + os.path.join(self.workdir, "between.sock"), target=target)

    def start_rbd_qemu(self):
        p = self.spawn("qemu-nbd", ["qemu-nbd", "--persistent", "--shared=0", "--cache=none", "--format=raw",
                                    "--socket=" + self.socket,
                                    "rbd:rbd/%s:conf=%s" % (self.image, os.environ["CEPH_CONF"])])
        p.wait_for("its socket", lambda: os.path.exists(self.socket))

    def start_rbd_limit(self):
        """Nothing: fio's own engine."""
        self.uri = "rbd:" + self.image

    def start_base(self):
        self.start_ours(server_program=os.path.join(self.args.base, "rtrs-server"),
                        plugin=os.path.join(self.args.base, ".libs/nbdkit-rtrs-plugin.so"))

    def start_base_gateway(self):
        program = os.path.join(self.args.base, "rtrs-nbd")
        self.start_ours(server_program=os.path.join(self.args.base, "rtrs-server"),
                        front=lambda *parameters: self.rtrs_nbd_with((), parameters, program))

    def shared_file_options(self, server):
        """All topologies run at once, on one file, and one at a time does something.  An older server has no lock."""
        text = subprocess.run([server, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
        options = []
        if "--no-lock" in text:
            options.append("--no-lock")
        if "--state-dir" in text:
            options += ["--state-dir", os.path.join(self.args.workdir,
                                                    "state-" + self.name + "-" + os.path.basename(self.file))]
        return options

    def start_ours(self, server_arg=(), plugin_arg=(), server_program=None, plugin=None, listen="tcp://127.0.0.1:0",
                   front=None, target=None):
        server_program = server_program or self.args.server
        rd, wr = os.pipe()
        try:
            server = self.spawn(
                "rtrs-server",
                [server_program, "--listen", listen, "--ready-fd", str(wr)]
                + self.shared_file_options(server_program) + self.args.server_arg + list(server_arg)
                + ["bench=" + (target or self.file + getattr(self.args, "export_flags", ""))], pass_fds=(wr,))
        finally:
            os.close(wr)
        try:
            server.wait_for("readiness on --ready-fd",
                            lambda: select.select([rd], [], [], 0)[0] and os.read(rd, 64))
        finally:
            os.close(rd)
        where = server.wait_for("where it listens", lambda: re.search(r"^listening on (\S+)$", server.log(), re.M))
        self.server = where.group(1)
        if front:
            self.begin_near(lambda *more: front(*plugin_arg, *more))
            return
        self.begin_near(lambda *more: self.nbdkit("nbdkit-rtrs", ["-U", self.socket], plugin or self.args.plugin,
                                                  "server=" + self.server, "export=bench", *self.args.plugin_arg,
                                                  *plugin_arg, *more))
