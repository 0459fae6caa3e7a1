/* SPDX-License-Identifier: BSD-3-Clause */
/* Which mode, and why, in words.  Pure. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "frwr-priv.h"
#include "util.h"

const enum frwr_mode frwr_order_client[3] = { FRWR_MW2, FRWR_MW1, FRWR_REREG };
const enum frwr_mode frwr_order_server[2] = { FRWR_MW1, FRWR_REREG };

const char *frwr_mode_name(enum frwr_mode mode)
{
	static const char *const names[FRWR_NMODES] = { "MW2", "MW1", "REREG", "STATIC" };

	return names[mode];
}

__attribute__((format(printf, 4, 5)))
static void append(char *buf, size_t len, size_t *at, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (*at >= len)
		return;
	va_start(ap, fmt);
	n = vsnprintf(buf + *at, len - *at, fmt, ap);
	va_end(ap);
	*at += (size_t)MAX(n, 0);
}

int frwr_pick(const struct frwr_caps *caps, const enum frwr_mode *order, unsigned n, char *why,
	      size_t len)
{
	unsigned pick = 0;
	size_t at = 0;

	while (pick < n && caps->rc[order[pick]])
		pick++;
	append(why, len, &at, "%s", pick < n ? frwr_mode_name(order[pick]) : "none");
	for (unsigned i = 0; i < pick; i++)
		append(why, len, &at, "%snot %s: %s", i ? "; " : " (", frwr_mode_name(order[i]),
		       caps->why[order[i]]);
	if (pick < n && order[pick] == FRWR_REREG && !caps->dev.rereg_mr)
		append(why, len, &at, "%ssystem calls for each request", pick ? "; " : " (");
	else if (pick == 0)
		return pick < n ? (int)order[pick] : -EOPNOTSUPP;
	append(why, len, &at, ")");
	return pick < n ? (int)order[pick] : -EOPNOTSUPP;
}
