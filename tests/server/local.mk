# SPDX-License-Identifier: BSD-3-Clause
# The server's protocol over tcp, by a client that can do anything.
if BUILD_SERVER
check_PROGRAMS += %D%/test-server
TESTS += %D%/test-server.sh
endif
EXTRA_DIST += %D%/test-server.sh

%C%_test_server_SOURCES = \
	%D%/test-server.c \
	tests/hostile/hostile.h \
	tests/hostile/kit.c \
	$(NULL)
%C%_test_server_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/hostile
%C%_test_server_LDADD = libpeer.la librtrs.la librnbd.la libfab.la libbase.la libclock.la
