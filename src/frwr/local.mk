# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libfrwr.la

libfrwr_la_SOURCES = $(FILES_src_frwr)
