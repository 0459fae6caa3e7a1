# SPDX-License-Identifier: BSD-3-Clause
# The server's protocol over tcp, by a client that can do anything.
if BUILD_SERVER
check_PROGRAMS += %D%/test-server
TESTS += %D%/test-server.sh
endif
EXTRA_DIST += %D%/test-server.sh

%C%_test_server_SOURCES = \
	%D%/raw.c \
	%D%/raw.h \
	%D%/test-server.c \
	$(NULL)
%C%_test_server_LDADD = librtrs.la librnbd.la libfab.la libbase.la libclock.la
