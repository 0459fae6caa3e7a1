/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a storage has been silent: not at all without a request; since the last answer, or the
 * first request, however many join. */
#include <config.h>

#include <time.h>

#include "clock.h"
#include "export-io-rig.h"
#include "unit.h"

static uint8_t buf[4096];

TestSuite(export_pulse, .init = rig_init, .fini = rig_fini);

/* Let time pass: what is measured here is time itself. */
static void pass_ms(uint64_t ms)
{
	uint64_t until = clock_now_ms() + ms;
	const struct timespec t = { .tv_nsec = 1000000 };

	while (clock_now_ms() < until)
		nanosleep(&t, NULL);
}

static void io_done(struct export_io *io, int status)
{
	cr_assert_eq(status, 0);
}

static void io_begin(struct export *ex, struct export_io *io)
{
	*io = (struct export_io){ .ex = ex, .op = RNBD_OP_READ, .len = sizeof(buf), .buf = buf,
				  .mem = -1, .done = io_done };
	export_io_start(rig.reactor, io);
}

Test(export_pulse, silence)
{
	struct export *ex = rig_export("m=mem:1M"), *other = rig_export("o=mem:1M");
	struct export_io first, second;

	rig_attach();
	cr_assert_eq(export_waits_ns(ex), 0);
	pass_ms(5);
	cr_assert_eq(export_waits_ns(ex), 0, "without a request");
	io_begin(ex, &first);
	pass_ms(30);
	io_begin(ex, &second);
	cr_assert_geq(export_waits_ns(ex), 30000000, "a request that joins is no answer");
	cr_assert_eq(export_waits_ns(other), 0);
	/* Memory answers in the next pass. */
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, 0, sizeof(buf), buf), 0);
	pass_ms(5);
	cr_assert_eq(export_waits_ns(ex), 0, "all is answered");
}
