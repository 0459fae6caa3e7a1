# SPDX-License-Identifier: BSD-3-Clause
# The backend of the NBD server on the client library, for the programs with both.
RELAY_CPPFLAGS = $(CLT_CPPFLAGS) $(NBD_CPPFLAGS) -I$(top_srcdir)/%D%

noinst_LTLIBRARIES += librelay.la
librelay_la_CPPFLAGS = $(RELAY_CPPFLAGS)
librelay_la_SOURCES = $(FILES_src_nbd_relay)
librelay_la_LIBADD = libnbdsrv.la
