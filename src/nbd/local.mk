# SPDX-License-Identifier: BSD-3-Clause
# The server's side of NBD: stands on base alone, so that other programs can have it.
NBD_CPPFLAGS = -I$(top_srcdir)/%D%

noinst_LTLIBRARIES += libnbdmsg.la libnbdsrv.la
libnbdmsg_la_SOURCES = %D%/nbd-msg.c %D%/nbd-msg.h %D%/nbd-proto.h

libnbdsrv_la_LIBADD = libnbdmsg.la
libnbdsrv_la_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
libnbdsrv_la_SOURCES = \
	%D%/nbd-ahead.c \
	%D%/nbd-ask.c \
	%D%/nbd-buf.c \
	%D%/nbd-buf.h \
	%D%/nbd-conn.c \
	%D%/nbd-in.c \
	%D%/nbd-io.c \
	%D%/nbd-linger.c \
	%D%/nbd-linger.h \
	%D%/nbd-mem.c \
	%D%/nbd-mem.h \
	%D%/nbd-opt.c \
	%D%/nbd-opt.h \
	%D%/nbd-out.c \
	%D%/nbd-priv.h \
	%D%/nbd-recv.c \
	%D%/nbd-req.c \
	%D%/nbd-server.c \
	%D%/nbd-server.h \
	%D%/nbd-tls.h \
	%D%/nbd-turn.c \
	$(NULL)
