# SPDX-License-Identifier: BSD-3-Clause

# What nbdkit lets any remote disk be.
EXTRA_LTLIBRARIES = ceiling.la
ceiling_la_SOURCES = %D%/ceiling.c
ceiling_la_CFLAGS = $(AM_CFLAGS) $(NBDKIT_CFLAGS)
ceiling_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
CLEANFILES += ceiling.la

# The queue of a disk by ublk over a kernel that does nothing, beside rtrs-bench.
if HAVE_LIBURING
EXTRA_PROGRAMS += bench/ublk-null
bench_ublk_null_SOURCES = %D%/ublk-null.c
bench_ublk_null_CPPFLAGS = $(CLT_CPPFLAGS) $(UBLK_CPPFLAGS)
bench_ublk_null_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
bench_ublk_null_LDADD = \
	libublk.la libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(JANSSON_LIBS)
CLEANFILES += bench/ublk-null

bench-ublk: all bench/ublk-null$(EXEEXT)
	top_builddir=$(top_builddir) /usr/bin/python3 $(srcdir)/%D%/ublk.py $(BENCH)
endif

# Options for the script: make bench BENCH='--rounds=1 --rows=4k-*'.  Not part of make check: numbers
# of a busy machine are no pass or fail.
BENCH =
BENCH_KERNEL = 6.12
.PHONY: bench bench-attach bench-kernel bench-ktls bench-rbd bench-ublk budget plots sizes
bench: all ceiling.la
	top_builddir=$(top_builddir) /usr/bin/python3 $(srcdir)/%D%/run.py $(BENCH)

# Images of a Ceph that the script starts.
bench-rbd: all tests/functions.sh tests/speed
	bash $(srcdir)/%D%/rbd.sh $(BENCH)

# What one read costs, in system calls.
budget: all
	top_builddir=$(top_builddir) /usr/bin/python3 $(srcdir)/%D%/budget.py

# What a fleet costs: a server with 1,000 sessions, and the disks of a host behind one gateway or many.
SIZES =
sizes: all
	top_builddir=$(top_builddir) /usr/bin/python3 $(srcdir)/%D%/sizes.py $(SIZES)

# make bench BENCH=--plots records anew what this draws.
plots:
	$(srcdir)/%D%/plots.py $(srcdir)/doc/speed.csv >$(srcdir)/doc/speed.svg

# The kernel's rnbd-client with our server and with the kernel's, in a guest.
bench-kernel: all
	bash $(srcdir)/tests/guest/run.sh --kernel $(BENCH_KERNEL) --timeout 3000 \
		$(srcdir)/%D%/kernel.sh $(BENCH)

# TLS by GnuTLS and by the kernel, in a guest.
bench-ktls: all
	bash $(srcdir)/tests/guest/run.sh --kernel $(BENCH_KERNEL) --timeout 3000 \
		$(srcdir)/%D%/ktls.sh $(BENCH)

# Ways to have a block device, in a guest of one processor whose time passes by its instructions.
bench-attach: all
	bash $(srcdir)/tests/guest/run.sh --kernel $(BENCH_KERNEL) --clock instructions --smp 1 --timeout 6000 \
		$(srcdir)/%D%/attach.sh $(BENCH)
