/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <signal.h>

#include "signals.h"

void signals_begin(void)
{
	signal(SIGXFSZ, SIG_IGN);
}
