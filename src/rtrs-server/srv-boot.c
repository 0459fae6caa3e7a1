/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; main thread, at start.  Cannot fail: see the header for what happens instead. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"
#include "srv-boot.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define UUID_TEXT_LEN 36

void srv_boot_id(uint8_t id[SRV_BOOT_ID_LEN])
{
	_cleanup_close_ int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
	uint8_t text[UUID_TEXT_LEN];
	uint64_t hash = 0xcbf29ce484222325u;	/* FNV-1a: clients are not told the id itself */

	if (fd < 0 || read(fd, text, sizeof(text)) != sizeof(text)) {
		log_warn(NULL, "cannot read " BOOT_ID_PATH
			 ": clients will take a restart of this server for a reboot of its host");
		if (getrandom(id, SRV_BOOT_ID_LEN, 0) != SRV_BOOT_ID_LEN)
			abort();
		return;
	}
	for (unsigned i = 0; i < sizeof(text); i++)
		hash = (hash ^ text[i]) * 0x100000001b3u;
	for (unsigned i = 0; i < SRV_BOOT_ID_LEN; i++)
		id[i] = (uint8_t)(hash >> 8 * i);
}
