# SPDX-License-Identifier: BSD-3-Clause
# libstore: exports, and the stages of their IO.  libstorering: what needs an io_uring, and which drivers
# there are; the simulation has its own.
if BUILD_SERVER
noinst_LTLIBRARIES += libstore.la libstorering.la

libstore_la_CPPFLAGS = $(SRV_CPPFLAGS)
libstore_la_SOURCES = $(FILES_src_store) $(FILES_src_store_file)
if HAVE_RBD
libstore_la_SOURCES += $(FILES_src_store_rbd)
endif

libstorering_la_CPPFLAGS = $(SRV_CPPFLAGS)
libstorering_la_SOURCES = \
	%D%/store-uring.c \
	%D%/file/store-file-extents.c \
	%D%/file/store-file-io.h \
	%D%/file/store-file-rw.c \
	%D%/file/store-file-snapshot.c \
	%D%/file/store-file-size.c \
	%D%/file/store-file-sync.c \
	%D%/file/store-file-zero.c \
	%D%/mem/store-mem.c \
	$(NULL)
if HAVE_RBD
libstorering_la_SOURCES += %D%/rbd/store-rbd-io.c %D%/rbd/store-rbd-lost.c
endif
libstorering_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
endif
