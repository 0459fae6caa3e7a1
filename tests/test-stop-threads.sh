#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# stop_all_threads returns behind the last thread that stops, and fails when one does not; a process
# has ended when its last thread has.
. ./tests/functions.sh

# The main thread sleeps, and stops at once.  Another one waits for a child that opens a fifo, where
# SIGSTOP does not reach it (vfork).  Its name looks like the state of a stopped thread.
mkfifo "$tmp/opened"
/usr/bin/python3 - "$tmp/opened" <<'END' &
import os, sys, threading, time

def wait_for_child():
    with open("/proc/thread-self/comm", "w") as f:
        f.write("a) T 1 (b")
    os.posix_spawn("/bin/true", ["true"], {},
                   file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
    time.sleep(100000)

threading.Thread(target=wait_for_child).start()
END
pid=$!
end_with_child() {
	pkill -KILL -P $pid || true
	kill_process $pid
}
cleanup_fn end_with_child
waits_for_child() { grep -q -F '(a) T 1 (b) D ' "/proc/$pid/task/"*/stat; }
wait_until "a thread that waits for its child" waits_for_child
must_fail bash "$top_srcdir/tests/stop-threads.sh" 1 $pid >"$tmp/said"
cat "$tmp/said"
grep -q -F "process $pid does not stop: " "$tmp/said"
grep -q -F '(a) T 1 (b) D ' "$tmp/said"
main_stopped() { grep -q '^State:.T' "/proc/$pid/status"; }
main_stopped || fail "the main thread stands still"

stop_all_threads $pid &
stopping=$!
# Who opens the fifo opens it for the child, too.
wait_until "the child" timeout 1 bash -c ": >'$tmp/opened'"
expect_exit $stopping 0
must_fail waits_for_child

# One that has ended cannot be stopped.
kill_process $pid
must_fail bash "$top_srcdir/tests/stop-threads.sh" 1 $pid

# A test that ends meanwhile ends what it has stopped.
# shellcheck disable=SC2016 # for the inner shell
bash -c '. ./tests/functions.sh
	sleep 1000 &
	cleanup_fn stop_daemon $!
	# Before that it is a shell yet, which may lose a SIGTERM between fork and exec.
	wait_until "sleep to run" grep -qx sleep "/proc/$!/comm"
	stop_all_threads $!'

# The main thread has gone, and another one has not.
/usr/bin/python3 - <<'END' &
import ctypes, platform, threading, time

threading.Thread(target=time.sleep, args=(100000,)).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)	# exit(2)
END
half_pid=$!
cleanup_fn kill_process $half_pid
wait_until "the end of the main thread" grep -q '^State:.Z' "/proc/$half_pid/status"
must_fail process_ended $half_pid
kill -KILL $half_pid
wait_until "the end of the other one" process_ended $half_pid
