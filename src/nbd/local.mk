# SPDX-License-Identifier: BSD-3-Clause
# The server's side of NBD: stands on base alone, so that other programs can have it.
NBD_CPPFLAGS = -I$(top_srcdir)/%D%

noinst_LTLIBRARIES += libnbdmsg.la libnbdsrv.la
libnbdmsg_la_SOURCES = %D%/nbd-msg.c %D%/nbd-msg.h %D%/nbd-proto.h

libnbdsrv_la_LIBADD = libnbdmsg.la
libnbdsrv_la_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
libnbdsrv_la_SOURCES = $(FILES_src_nbd)
