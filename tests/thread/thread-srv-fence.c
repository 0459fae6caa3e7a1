/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands between enter and leave is exclusive per id, every node gets its turn, and what one
 * holder wrote the next one sees (guarded[] is plain memory: TSan checks the ordering).  With tags
 * nothing runs behind what is newer. */
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
static atomic_uint tags[IDS];
static struct {
	bool inside;
	unsigned long turns, runs;
	uint32_t tag;
} guarded[IDS];

static void hold(unsigned id, struct node *node)
{
	check(!guarded[id].inside);
	guarded[id].inside = true;
	guarded[id].turns++;
	if (srv_fence_turn(&fence, id, &node->fence)) {
		check(node->fence.order.tag > guarded[id].tag);
		guarded[id].tag = node->fence.order.tag;
		guarded[id].runs++;
	} else {
		check(node->fence.order.tag < guarded[id].tag);
	}
	guarded[id].inside = false;
}

/* Returns when it is its turn. */
static void enter(unsigned id, struct node *node)
{
	struct srv_fence_node *front;

	atomic_init(&node->turn, false);
	front = srv_fence_enter(&fence, id, &node->fence);
	if (!front)
		return;
	/* Plain memory of another thread, which may be about to leave and to use it again. */
	check(front->order.tag && front->order.tag != node->fence.order.tag);
	srv_fence_follow(front, &node->fence);
	while (!atomic_load_explicit(&node->turn, memory_order_acquire))
		sched_yield();
}

static void *worker(void *arg)
{
	unsigned seed = (unsigned)*(int *)arg + 1;
	struct node node;

	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned id = (unsigned)rand_r(&seed) % IDS;
		struct srv_fence_node *next;

		node.fence.order.arrival = srv_fence_arrive(&fence, id);
		node.fence.order.tag = atomic_fetch_add(&tags[id], 1) + 1;
		if (rand_r(&seed) % 4 == 0)
			sched_yield();	/* others overtake it */
		enter(id, &node);
		hold(id, &node);
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

	check(!srv_fence_enter(&fence, 0, &head));
	atomic_init(&behind.next, NULL);
	atomic_store(&fence.slots[0].tail, &behind);
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
	unsigned long turns = 0;

	check(!srv_fence_init(&fence, IDS));
	half_entered();
	run_threads(worker);
	srv_fence_fini(&fence);
	for (unsigned i = 0; i < IDS; i++)
		turns += guarded[i].turns;
	check(turns == (unsigned long)NTHREADS * ROUNDS);
	for (unsigned i = 0; i < IDS; i++)
		check(guarded[i].runs && guarded[i].tag == atomic_load(&tags[i]));
	return 0;
}
