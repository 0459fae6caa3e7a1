/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands between enter and leave is exclusive per id, every node gets its turn, and what one
 * holder wrote the next one sees (guarded[] is plain memory: TSan checks the ordering). */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "srv-fence.h"
#include "thread.h"
#include "util.h"

#define IDS 3
#define ROUNDS 20000

struct node {
	struct srv_fence_node fence;
	atomic_bool turn;		/* stands for the inbox of the node's thread */
};

static struct srv_fence fence;
static struct {
	bool inside;
	unsigned long runs;
} guarded[IDS];

static void hold(unsigned id)
{
	check(!guarded[id].inside);
	guarded[id].inside = true;
	guarded[id].runs++;
	guarded[id].inside = false;
}

static void *worker(void *arg)
{
	unsigned seed = (unsigned)*(int *)arg + 1;
	struct node node;

	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned id = (unsigned)rand_r(&seed) % IDS;
		struct srv_fence_node *next;

		atomic_init(&node.turn, false);
		if (!srv_fence_enter(&fence, id, &node.fence)) {
			while (!atomic_load_explicit(&node.turn, memory_order_acquire))
				sched_yield();
		}
		hold(id);
		next = srv_fence_leave(&fence, id, &node.fence);
		if (next)
			atomic_store_explicit(&container_of(next, struct node, fence)->turn, true,
					      memory_order_release);
	}
	return NULL;
}

/* ---- who enters has taken the tail and not linked itself yet ---- */

#define SPIN_NS 20000000

static struct srv_fence_node head;
static atomic_bool left;

static void *leaver(void *arg)
{
	struct srv_fence_node *next = srv_fence_leave(&fence, 0, &head);

	atomic_store(&left, true);
	return next;
}

/* Who leaves waits for the link: it is seen to use the CPU and not to come back. */
static void half_entered(void)
{
	struct srv_fence_node behind;
	struct timespec used = { 0 };
	clockid_t clock;
	pthread_t thread;
	void *next;

	check(srv_fence_enter(&fence, 0, &head));
	atomic_init(&behind.next, NULL);
	atomic_store(&fence.tails[0], &behind);
	check(!pthread_create(&thread, NULL, leaver, NULL));
	check(!pthread_getcpuclockid(thread, &clock));
	while (!atomic_load(&left) && !clock_gettime(clock, &used) && used.tv_nsec < SPIN_NS)
		sched_yield();
	check(!atomic_load(&left));
	atomic_store(&head.next, &behind);
	check(!pthread_join(thread, &next) && next == &behind);
	check(!srv_fence_leave(&fence, 0, &behind));
}

int main(void)
{
	unsigned long runs = 0;

	check(!srv_fence_init(&fence, IDS));
	half_entered();
	run_threads(worker);
	srv_fence_fini(&fence);
	for (unsigned i = 0; i < IDS; i++)
		runs += guarded[i].runs;
	check(runs == (unsigned long)NTHREADS * ROUNDS);
	return 0;
}
