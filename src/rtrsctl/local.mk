# SPDX-License-Identifier: BSD-3-Clause
sbin_PROGRAMS += rtrsctl

rtrsctl_SOURCES = \
	%D%/answer.c \
	%D%/answer.h \
	%D%/args.c \
	%D%/args.h \
	%D%/call.c \
	%D%/call.h \
	%D%/check-keys.c \
	%D%/check-keys.h \
	%D%/check.c \
	%D%/check.h \
	%D%/clients-nbd.c \
	%D%/clients-row.h \
	%D%/clients.c \
	%D%/clients.h \
	%D%/doctor-check.c \
	%D%/doctor-conf.c \
	%D%/doctor-conf.h \
	%D%/doctor-files.c \
	%D%/doctor-machine.c \
	%D%/doctor-note.c \
	%D%/doctor-note.h \
	%D%/doctor-path.c \
	%D%/doctor-process.c \
	%D%/doctor-rdma.c \
	%D%/doctor-subject.h \
	%D%/doctor-unit.c \
	%D%/doctor-unit.h \
	%D%/doctor-user.c \
	%D%/doctor-user.h \
	%D%/doctor.c \
	%D%/doctor.h \
	%D%/explain.c \
	%D%/explain.h \
	%D%/find.c \
	%D%/find.h \
	%D%/rate.c \
	%D%/rate.h \
	%D%/rtrsctl.c \
	%D%/run.c \
	%D%/run.h \
	%D%/say.c \
	%D%/say.h \
	%D%/state.c \
	%D%/state.h \
	%D%/status.c \
	%D%/status.h \
	%D%/text.c \
	%D%/text.h \
	%D%/top-rows.c \
	%D%/top-rows.h \
	%D%/top-screen.c \
	%D%/top-screen.h \
	%D%/top.c \
	%D%/top.h \
	%D%/which.c \
	%D%/which.h \
	%D%/width.c \
	%D%/width.h \
	$(NULL)
rtrsctl_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
rtrsctl_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(NCURSES_CFLAGS)
rtrsctl_LDADD = libfab.la libctl.la libopt.la libbase.la libclock.la $(JANSSON_LIBS) $(NCURSES_LIBS)
