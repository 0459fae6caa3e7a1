/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: modprobe(8) does the work. */
#include <config.h>

#include "attach-module.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

int attach_load_module(const char *name)
{
	char modprobe[] = "modprobe", quiet[] = "-q";
	char *argv[] = { modprobe, quiet, (char *)name, NULL };
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, modprobe, NULL, NULL, argv, environ))
		return -1;
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}
