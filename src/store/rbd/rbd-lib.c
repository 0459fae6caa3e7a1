/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the loaded libraries, for as long as the process runs: threads of theirs do not end
 * before. */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "rbd-lib.h"
#include "util.h"

struct rbd_lib rbd_lib;

struct symbol {
	const char *name;
	size_t at;			/* in struct rbd_lib */
};

#define SYMBOL(name) { #name, offsetof(struct rbd_lib, name) },
static const struct symbol rados_symbols[] = { RBD_LIB_RADOS(SYMBOL) };
static const struct symbol rbd_symbols[] = { RBD_LIB_RBD(SYMBOL) };

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char load_error[256];		/* empty: both are loaded */

static void load(const char *file, const struct symbol *symbols, unsigned n)
{
	void *handle = *load_error ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
	void *function;

	for (unsigned i = 0; handle && i < n; i++) {
		function = dlsym(handle, symbols[i].name);
		if (!function)
			handle = NULL;
		memcpy((char *)&rbd_lib + symbols[i].at, &function, sizeof(function));
	}
	if (!handle && !*load_error)
		snprintf(load_error, sizeof(load_error), "%s", dlerror());
}

static void load_both(void)
{
	load("librados.so.2", rados_symbols, ARRAY_SIZE(rados_symbols));
	load("librbd.so.1", rbd_symbols, ARRAY_SIZE(rbd_symbols));
}

int rbd_lib_load(char *err, size_t errlen)
{
	pthread_once(&load_once, load_both);
	if (!*load_error)
		return 0;
	snprintf(err, errlen, "needs Ceph's libraries: %s: install librbd1", load_error);
	return -ENOENT;
}
