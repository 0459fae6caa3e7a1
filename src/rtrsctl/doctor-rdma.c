/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a list of names for the time of a look: devices of the kernel, and those that user space can
 * open. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "fab-devices.h"

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

void doctor_rdma(struct doctor *doctor)
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
