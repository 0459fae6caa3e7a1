/* SPDX-License-Identifier: BSD-3-Clause */
#include "fab-provider.h"

const char *fab_provider_name(const struct fab_provider *p)
{
	return p->name;
}
