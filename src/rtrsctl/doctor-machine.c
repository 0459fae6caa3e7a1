/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a ring for the time of a look. */
#include <config.h>

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "text.h"

void doctor_clock(struct doctor *doctor)
{
	struct timex timex = { 0 };
	time_t now = time(NULL);
	struct stat st;
	char date[16], built[16];

	text_date(now, date, sizeof(date));
	if (!stat("/proc/self/exe", &st) && now < st.st_mtime) {
		doctor_note(doctor, CHECK_CRITICAL, "clock",
			    "it is %s by the clock, and this program was installed on %s: set the "
			    "clock: certificates are not valid yet, and ages of keys are wrong",
			    date, text_date(st.st_mtime, built, sizeof(built)));
		return;
	}
	/* A container may not ask. */
	if (adjtimex(&timex) >= 0 && timex.status & STA_UNSYNC)
		doctor_note(doctor, CHECK_WARNING, "clock",
			    "%s, and no service keeps it right: run one (systemd-timesyncd, "
			    "chrony): certificates need the date", date);
	else
		doctor_note(doctor, CHECK_OK, "clock", "%s", date);
}

void doctor_io_uring(struct doctor *doctor)
{
	struct io_uring_params params = { 0 };
	long fd = syscall(__NR_io_uring_setup, 1, &params);

	if (fd >= 0)
		close((int)fd);
	if (fd >= 0)
		doctor_note(doctor, CHECK_OK, "io_uring", "works");
	else if (errno == EPERM || errno == EACCES)
		doctor_note(doctor, CHECK_CRITICAL, "io_uring",
			    "%s: rtrs-server cannot start: allow it (sysctl "
			    "kernel.io_uring_disabled=0; seccomp profile of a container)",
			    strerror(errno));
	else
		doctor_note(doctor, CHECK_CRITICAL, "io_uring",
			    "%s: rtrs-server cannot start: it needs a kernel with io_uring",
			    strerror(errno));
}
