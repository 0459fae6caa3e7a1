/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "srv-prio.h"

/* Levels of each class with levels.  The bits between level and class are hints of newer kernels,
 * refused by older kernels. */
#define LEVELS 8u

/* What the kernel gives IO of a process that has chosen no priority and is not nice(1). */
#define DEFAULT_PRIO (IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT | 4)

static bool has_capability(const struct __user_cap_data_struct *data, unsigned cap)
{
	return data[cap / 32].effective & (1u << cap % 32);
}

bool srv_prio_may_realtime(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &hdr, data) == 0 &&
	       (has_capability(data, CAP_SYS_ADMIN) || has_capability(data, CAP_SYS_NICE));
}

uint16_t srv_prio(uint16_t wire, bool may_realtime)
{
	unsigned class = wire >> IOPRIO_CLASS_SHIFT, level = wire % LEVELS;

	if (class == IOPRIO_CLASS_RT && !may_realtime)
		return IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT;
	switch (class) {
	case IOPRIO_CLASS_RT:
	case IOPRIO_CLASS_BE:
		return (uint16_t)(class << IOPRIO_CLASS_SHIFT | level);
	case IOPRIO_CLASS_IDLE:
		return IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT;
	default:
		return 0;
	}
}

uint16_t srv_prio_limit(uint16_t client, uint16_t export)
{
	if (client == DEFAULT_PRIO)
		return export;
	/* The better class and the better level have the lower number, and 0 is none. */
	return client > export ? client : export;
}
