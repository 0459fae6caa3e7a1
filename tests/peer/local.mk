# SPDX-License-Identifier: BSD-3-Clause
# What servers made by hand have in common; see peer-srv.h.
check_LTLIBRARIES += libpeer.la
libpeer_la_SOURCES = %D%/peer-srv.c %D%/peer-srv.h
