# SPDX-License-Identifier: BSD-3-Clause
# libstore: exports, and the stages of their IO.  libstorering: what needs an io_uring, and which drivers
# there are; the simulation has its own.
if BUILD_SERVER
noinst_LTLIBRARIES += libstore.la libstorering.la

libstore_la_CPPFLAGS = $(SRV_CPPFLAGS)
libstore_la_SOURCES = \
	%D%/store.c \
	%D%/store-snapshot.c \
	%D%/store-snapshot.h \
	%D%/store.h \
	%D%/store-lead.c \
	%D%/store-lead.h \
	%D%/store-taking.c \
	%D%/store-taking.h \
	%D%/store-wait.c \
	%D%/store-wait.h \
	%D%/export-io-failed.c \
	%D%/export-io-share.c \
	%D%/export-io.c \
	%D%/export-life.c \
	%D%/export-life.h \
	%D%/export-retry.c \
	%D%/export-retry.h \
	%D%/export-ring.c \
	%D%/export-ring.h \
	%D%/store-driver.h \
	%D%/store-uring.h \
	%D%/store-drivers.h \
	%D%/export-io.h \
	%D%/export-line.c \
	%D%/export-line.h \
	%D%/export-spec.c \
	%D%/export-spec.h \
	%D%/export-record.c \
	%D%/export-record.h \
	%D%/export-state.c \
	%D%/export-state.h \
	%D%/export.c \
	%D%/export.h \
	%D%/exports-losses.c \
	%D%/exports.c \
	%D%/exports.h \
	%D%/file/store-file-claim.c \
	%D%/file/store-file-desc.c \
	%D%/file/store-file-format.c \
	%D%/file/store-file-fs.c \
	%D%/file/store-file-geometry.c \
	%D%/file/store-file-holder.c \
	%D%/file/store-file-holder.h \
	%D%/file/store-file-ident.c \
	%D%/file/store-file-inuse.c \
	%D%/file/store-file-lock.c \
	%D%/file/store-file-pr-ask.c \
	%D%/file/store-file-pr-priv.h \
	%D%/file/store-file-pr.c \
	%D%/file/store-file-pr.h \
	%D%/file/store-file-share.c \
	%D%/file/store-file-sysfs.c \
	%D%/file/store-file-users.c \
	%D%/file/store-file.c \
	%D%/file/store-file-priv.h \
	%D%/mem/store-mem.c \
	%D%/mem/store-mem.h \
	$(NULL)
if HAVE_RBD
libstore_la_SOURCES += \
	%D%/rbd/rbd-lib.c \
	%D%/rbd/rbd-lib.h \
	%D%/rbd/rbd-target.c \
	%D%/rbd/rbd-target.h \
	%D%/rbd/store-rbd-aside.c \
	%D%/rbd/store-rbd-connect.c \
	%D%/rbd/store-rbd-keyring.c \
	%D%/rbd/store-rbd-keyring.h \
	%D%/rbd/store-rbd-lock.c \
	%D%/rbd/store-rbd-owner.c \
	%D%/rbd/store-rbd-share.c \
	%D%/rbd/store-rbd-snapshot.c \
	%D%/rbd/store-rbd-steps.c \
	%D%/rbd/store-rbd-steps.h \
	%D%/rbd/store-rbd.c \
	%D%/rbd/store-rbd-priv.h \
	$(NULL)
endif

libstorering_la_CPPFLAGS = $(SRV_CPPFLAGS)
libstorering_la_SOURCES = \
	%D%/store-uring.c \
	%D%/store-drivers-io.c \
	%D%/store-drivers.c \
	%D%/file/store-file-extents.c \
	%D%/file/store-file-inline.c \
	%D%/file/store-file-io.h \
	%D%/file/store-file-rw.c \
	%D%/file/store-file-snapshot.c \
	%D%/file/store-file-size.c \
	%D%/file/store-file-sync.c \
	%D%/file/store-file-zero.c \
	%D%/mem/store-mem-io.c \
	$(NULL)
if HAVE_RBD
libstorering_la_SOURCES += %D%/rbd/store-rbd-io.c %D%/rbd/store-rbd-lost.c \
	%D%/rbd/store-rbd-lost.h
endif
libstorering_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
endif
