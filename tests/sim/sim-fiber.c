/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the stacks.  One thread: a fiber runs inside sim_step() and returns there when it waits or
 * ends.  Sanitizers and valgrind are told of each change of stack, or they would see one stack
 * written by another. */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "sim-core.h"
#include "sim-fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifdef SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

#define STACK_SIZE (512u << 10)

struct sim_fiber {
	struct sim_actor actor;
	ucontext_t ctx, back;
	void *stack;
	void (*fn)(void *arg);
	void *arg;
	bool (*cond)(void *arg);
	void *cond_arg;
	bool done;
	unsigned id;
	unsigned valgrind_id;
#ifdef SIM_ASAN
	void *fake_here, *fake_back;
	const void *back_stack;
	size_t back_size;
#endif
};

static struct sim_fiber *running;
static unsigned last_id;

static void switch_to(struct sim_fiber *f)
{
	struct sim_fiber *before = running;

	running = f;
#ifdef SIM_ASAN
	__sanitizer_start_switch_fiber(&f->fake_back, f->stack, STACK_SIZE);
#endif
	swapcontext(&f->back, &f->ctx);
#ifdef SIM_ASAN
	__sanitizer_finish_switch_fiber(f->fake_back, NULL, NULL);
#endif
	running = before;
}

/* On the fiber's stack, each time it gets its turn. */
static void arrived(struct sim_fiber *f)
{
#ifdef SIM_ASAN
	__sanitizer_finish_switch_fiber(f->fake_here, &f->back_stack, &f->back_size);
#endif
}

static void leaving(struct sim_fiber *f, bool for_good)
{
#ifdef SIM_ASAN
	__sanitizer_start_switch_fiber(for_good ? NULL : &f->fake_here, f->back_stack,
				       f->back_size);
#endif
}

static void fiber_main(void)
{
	struct sim_fiber *f = running;

	arrived(f);
	f->fn(f->arg);
	f->done = true;
	leaving(f, true);
	/* uc_link goes back. */
}

static bool fiber_ready(struct sim_actor *a)
{
	struct sim_fiber *f = container_of(a, struct sim_fiber, actor);

	return !f->cond || f->cond(f->cond_arg);
}

static void fiber_run(struct sim_actor *a)
{
	struct sim_fiber *f = container_of(a, struct sim_fiber, actor);

	f->cond = NULL;
	switch_to(f);
	if (f->done)
		sim_actor_del(a);
}

struct sim_fiber *sim_fiber_start(void (*fn)(void *arg), void *arg)
{
	struct sim_fiber *f = calloc(1, sizeof(*f));

	assert(f);
	f->fn = fn;
	f->arg = arg;
	f->id = ++last_id;
	f->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	assert(f->stack != MAP_FAILED);
#ifdef VALGRIND_STACK_REGISTER
	f->valgrind_id = VALGRIND_STACK_REGISTER(f->stack, (char *)f->stack + STACK_SIZE);
#endif
	getcontext(&f->ctx);
	f->ctx.uc_stack.ss_sp = f->stack;
	f->ctx.uc_stack.ss_size = STACK_SIZE;
	f->ctx.uc_link = &f->back;
	makecontext(&f->ctx, fiber_main, 0);
	f->actor.ready = fiber_ready;
	f->actor.run = fiber_run;
	sim_actor_add(&f->actor);
	return f;
}

bool sim_fiber_done(const struct sim_fiber *f)
{
	return f->done;
}

void sim_fiber_free(struct sim_fiber *f)
{
	assert(f->done);
#ifdef VALGRIND_STACK_DEREGISTER
	VALGRIND_STACK_DEREGISTER(f->valgrind_id);
#endif
	munmap(f->stack, STACK_SIZE);
	free(f);
}

struct sim_fiber *sim_fiber_self(void)
{
	return running;
}

void sim_fiber_forget_ids(void)
{
	last_id = 0;
}

unsigned sim_fiber_id(const struct sim_fiber *f)
{
	return f->id;
}

void sim_fiber_wait(bool (*cond)(void *arg), void *arg)
{
	struct sim_fiber *f = running;
	struct sim_place here = { .host = sim_host(), .epoch = sim_epoch() };

	assert(f);
	f->cond = cond;
	f->cond_arg = arg;
	leaving(f, false);
	swapcontext(&f->ctx, &f->back);
	arrived(f);
	sim_enter(here.host, here.epoch);
}
