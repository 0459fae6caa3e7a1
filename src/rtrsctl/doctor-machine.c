/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine, whatever runs on it: clock, io_uring, RDMA devices. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "fab-devices.h"
#include "text.h"

void doctor_machine_clock(struct doctor *doctor)
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

void doctor_machine_io_uring(struct doctor *doctor)
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

/* ---- RDMA devices: those of the kernel, and those that user space can open ---- */

#define SYS "/sys/class/infiniband"
#define DEV "/dev/infiniband"

struct rdma {
	struct doctor *doctor;
	json_t *seen;			/* by name */
};

/* What RTRS can have of @dev, as words. */
static void note_abilities(struct doctor *doctor, const struct fab_device *dev)
{
	const struct fab_device_attr *attr = &dev->attr;
	char ports[96];

	snprintf(ports, sizeof(ports), "%u of %u ports active, %u bytes in a packet",
		 dev->nactive, dev->nports, dev->mtu);
	doctor_note(doctor, CHECK_OK, "rdma",
		    "%s can RDMA_WRITE_WITH_IMM; %s memory windows of type 1, %s of type 2; "
		    "%s LOCAL_INV; %u elements in a request; %s", attr->name,
		    attr->caps & FAB_CAP_MW_TYPE_1 ? "has" : "has no",
		    attr->caps & FAB_CAP_MW_TYPE_2B ? "has" : "none",
		    dev->local_inv ? "can" : "cannot", attr->max_sge, ports);
}

static void look_at_device(void *arg, const struct fab_device *dev)
{
	struct rdma *rdma = arg;
	struct doctor *doctor = rdma->doctor;
	const char *name = dev->attr.name;

	json_object_set_new(rdma->seen, name, json_true());
	if (dev->error)
		doctor_note(doctor, CHECK_WARNING, "rdma",
			    "%s cannot be opened: %s: a user needs the files of " DEV ", and a "
			    "container those devices", name, strerror(-dev->error));
	else if (dev->kind == FAB_DEVICE_IWARP)
		doctor_note(doctor, CHECK_WARNING, "rdma",
			    "%s is an iWARP device, and cannot RDMA_WRITE_WITH_IMM, which RTRS "
			    "needs: use TCP there (transport=tcp)", name);
	else if (!dev->nactive)
		doctor_note(doctor, CHECK_WARNING, "rdma",
			    "%s: none of its %u ports is active: look at cables and links "
			    "(rdma link)", name, dev->nports);
	else
		note_abilities(doctor, dev);
}

/* Devices that the kernel has, and that nobody sees without files in /dev. */
static unsigned note_unseen(const struct rdma *rdma)
{
	const struct dirent *entry;
	DIR *dir = opendir(SYS);
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || json_object_get(rdma->seen, entry->d_name))
			continue;
		n++;
		doctor_note(rdma->doctor, CHECK_WARNING, "rdma",
			    "the kernel has %s, and user space cannot open it: load ib_uverbs, "
			    "give a container the devices of " DEV ", and install the device's "
			    "provider (ibverbs-providers)", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void note_manager(struct doctor *doctor)
{
	if (access(DEV "/rdma_cm", R_OK | W_OK))
		doctor_note(doctor, CHECK_WARNING, "rdma",
			    DEV "/rdma_cm: %s: no connection over RDMA without it: load rdma_ucm, "
			    "or give the container this device", strerror(errno));
}

void doctor_machine_rdma(struct doctor *doctor)
{
	struct rdma rdma = { .doctor = doctor, .seen = json_object() };
	int rc = fab_devices(look_at_device, &rdma);

	if (rc == -EPROTONOSUPPORT)
		doctor_note(doctor, CHECK_OK, "rdma", "this program was built without RDMA");
	else if (json_object_size(rdma.seen) + note_unseen(&rdma))
		note_manager(doctor);
	else
		doctor_note(doctor, CHECK_OK, "rdma", "no RDMA device: paths are over TCP");
	json_decref(rdma.seen);
}
