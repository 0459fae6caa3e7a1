# SPDX-License-Identifier: BSD-3-Clause
# A client that does everything wrong, one thing at a time; see hostile.h.
check_PROGRAMS += %D%/held-fs %D%/hostile
%C%_held_fs_SOURCES = %D%/held-fs.c
%C%_hostile_SOURCES = \
	%D%/cases-attack.c \
	%D%/cases-dev.c \
	%D%/cases-life.c \
	%D%/cases-meanwhile.c \
	%D%/cases-req.c \
	%D%/cases-rnbd.c \
	%D%/cases-setup.c \
	%D%/cases-tcp.c \
	%D%/good.c \
	%D%/hlog.c \
	%D%/hostile.h \
	%D%/kit.c \
	%D%/main.c \
	%D%/raw.c \
	%D%/raw.h \
	$(NULL)
# A row of a table names what is wrong in it and leaves out the rest.
%C%_hostile_CFLAGS = $(AM_CFLAGS) -Wno-missing-field-initializers
%C%_hostile_LDADD = libpeer.la librnbd.la librtrs.la libfab.la libbase.la libclock.la

# The other way round: the client against a server that does; see hsrv.h.
check_PROGRAMS += %D%/test-hsrv
TESTS += %D%/test-hsrv
%C%_test_hsrv_SOURCES = %D%/hsrv.c %D%/hsrv.h %D%/test-hsrv.c
%C%_test_hsrv_CPPFLAGS = $(CLT_CPPFLAGS) -I$(top_srcdir)/tests/thread
%C%_test_hsrv_CFLAGS = $(AM_CFLAGS) -Wno-missing-field-initializers
%C%_test_hsrv_LDADD = libpeer.la libclt.la libcltthread.la libloop.la libfrwr.la libfab.la librtrs.la librnbd.la libbase.la libclock.la

if BUILD_SERVER
TESTS += tests/test-attack.sh tests/test-hostile.sh tests/test-hostile-slow.sh
endif
EXTRA_DIST += tests/test-attack.sh tests/test-hostile.sh tests/test-hostile-slow.sh
