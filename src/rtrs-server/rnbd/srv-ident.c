/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of this server.  A file apart from srv-rnbd.c, so that the simulation can have
 * several hosts and reboot each.  Clients get hashes and not the ids themselves. */
#include <fcntl.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "srv-rnbd-state.h"
#include "util.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LEN 36
#define MACHINE_ID_PATH "/etc/machine-id"
#define MACHINE_ID_LEN 32
#define ID_MAX 64

/* Hash the first @len bytes of @path.  False: the file is shorter or cannot be read. */
static bool ident_hash_file(const char *path, size_t len, uint64_t *hash)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t text[ID_MAX];

	if (fd < 0 || read(fd, text, len) != (ssize_t)len)
		return false;
	*hash = fnv1a(FNV1A_INIT, text, len);
	return true;
}

void srv_ident_boot(uint8_t id[SRV_IDENT_BOOT_LEN])
{
	uint64_t hash;

	if (!ident_hash_file(BOOT_ID_PATH, BOOT_ID_LEN, &hash)) {
		log_warn(NULL, "cannot read " BOOT_ID_PATH
			 ": clients will treat a restart of this server as a reboot of its host");
		random_bytes(&hash, sizeof(hash));
	}
	for (unsigned i = 0; i < SRV_IDENT_BOOT_LEN; i++)
		id[i] = (uint8_t)(hash >> 8 * i);
}

uint64_t srv_ident_host(bool *lasts)
{
	uint64_t hash;

	*lasts = ident_hash_file(MACHINE_ID_PATH, MACHINE_ID_LEN, &hash);
	if (*lasts || ident_hash_file(BOOT_ID_PATH, BOOT_ID_LEN, &hash))
		return hash;
	random_bytes(&hash, sizeof(hash));
	return hash;
}

uint32_t srv_ident_instance(void)
{
	uint32_t instance;

	do
		random_bytes(&instance, sizeof(instance));
	while (!instance);
	return instance;
}
