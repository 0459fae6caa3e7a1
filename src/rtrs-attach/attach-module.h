/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers of the kernel that are not there yet.  Main thread; blocks. */
#ifndef ATTACH_MODULE_H
#define ATTACH_MODULE_H

/* Load the module @name, or see that it is there.  0, or -1: it cannot be loaded. */
int attach_load_module(const char *name);

#endif
