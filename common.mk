# SPDX-License-Identifier: BSD-3-Clause
# Flags shared by all that is compiled here.  NULL ends lists, so a diff that adds a line adds one line.
NULL =

AM_CPPFLAGS = \
	-I$(top_srcdir)/src/common/base \
	-I$(top_srcdir)/src/common/reactor \
	-I$(top_srcdir)/src/common/ctl \
	-I$(top_srcdir)/src/common/journal \
	-I$(top_srcdir)/src/common/metrics \
	-I$(top_srcdir)/src/common/opt \
	-I$(top_srcdir)/src/common/auth \
	-I$(top_srcdir)/src/common/secrets \
	-I$(top_srcdir)/src/common/fabric \
	-I$(top_srcdir)/src/common/fabric/tcp \
	-I$(top_srcdir)/src/common/fabric/verbs \
	-I$(top_srcdir)/src/common/rtrs \
	-I$(top_srcdir)/src/common/rnbd \
	-I$(top_srcdir)/src/frwr \
	$(NULL)
AM_CFLAGS = -std=gnu11 -pthread $(WARN_CFLAGS) $(HARDEN_CFLAGS) $(SAN_CFLAGS)
AM_LDFLAGS = -pthread $(HARDEN_LDFLAGS) $(SAN_CFLAGS)
