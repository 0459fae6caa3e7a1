# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libfrwr.la

libfrwr_la_SOURCES = \
	%D%/frwr-lesson.c \
	%D%/frwr-map.c \
	%D%/frwr-pick.c \
	%D%/frwr-pool.c \
	%D%/frwr-priv.h \
	%D%/frwr-query.c \
	%D%/frwr-unmap.c \
	%D%/frwr.h \
	$(NULL)
