# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += rtrs-psk

rtrs_psk_SOURCES = %D%/rtrs-psk.c
rtrs_psk_LDADD = libpsk.la libopt.la libbase.la libclock.la
