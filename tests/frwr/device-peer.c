/* SPDX-License-Identifier: BSD-3-Clause */
/* Case: one of two processes is killed in the middle of reads and writes.  Who is left sees its
 * connections fail and gives everything back at once; who was killed is gone at once, although its
 * windows were bound (a queue pair that goes before its windows takes rxe 50 s). */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "device-rw.h"

#define ENOUGH 400u			/* requests before the end */
#define DESTROY_MS 1000
#define EXIT_MS 2000

static struct rw_client clt;
static struct rw_server srv;

/* ---- the other process ---- */

_Noreturn void peer_main(const struct fab_provider *p, const char *address)
{
	struct fab_qp_attr attr;
	struct fab_addr to;
	char text[256];
	struct world w;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	world_init(&w, p);
	if (address) {
		check_eq(fab_addr_parse(address, p, 0, &to, text, sizeof(text)), 0);
		attr = rw_attr(&w, false, FRWR_MW2);
		clt = (struct rw_client){ .w = &w, .todo = UINT32_MAX, .random = 1 };
		for (unsigned i = 0; i < RW_CONNS; i++) {
			rw_client_dial(&clt, &to, &attr);
			rw_client_dialed(&clt);
		}
		rw_client_ready(&clt, FRWR_MW2);
	} else {
		attr = rw_attr(&w, true, FRWR_MW1);
		printf("%s\n", fab_addr_format(&w.addr, text, sizeof(text)));
		fflush(stdout);
		srv = (struct rw_server){ .w = &w };
		for (unsigned i = 0; i < RW_CONNS; i++)
			rw_server_accept(&srv, &attr);
		world_until(&w, srv.e[RW_CONNS - 1]->established);
		rw_server_ready(&srv, FRWR_MW1);
	}
	for (;;)
		world_until(&w, false);
}

/* Returns its pid; its standard output comes out of *@out. */
static pid_t start_peer(const struct world *w, const char *address, FILE **out)
{
	char *argv[] = { program_invocation_name, (char *)(uintptr_t)fab_provider_name(w->p),
			 "--peer", (char *)(uintptr_t)address, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2];
	pid_t pid;

	check_eq(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	check_eq(posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	*out = fdopen(fds[0], "r");
	check(*out != NULL);
	return pid;
}

static void kill_peer(pid_t pid)
{
	uint64_t begin = clock_now_ms();
	int status;

	check_eq(kill(pid, SIGKILL), 0);
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	check(clock_now_ms() - begin < EXIT_MS);
}

/* ---- we ---- */

static void check_quick(const char *who, uint64_t ms)
{
	printf("  %s is left: queues destroyed in %u ms\n", who, (unsigned)ms);
	check(ms < DESTROY_MS);
}

static void server_killed(struct world *w)
{
	struct fab_qp_attr attr = rw_attr(w, false, FRWR_MW2);
	char line[FAB_ADDR_STRLEN] = "", err[256];
	struct fab_addr to;
	FILE *out;
	pid_t pid;

	pid = start_peer(w, NULL, &out);
	check(fgets(line, sizeof(line), out) != NULL);
	line[strcspn(line, "\n")] = '\0';
	check_eq(fab_addr_parse(line, w->p, 0, &to, err, sizeof(err)), 0);
	clt = (struct rw_client){ .w = w, .todo = UINT32_MAX, .random = 2 };
	for (unsigned i = 0; i < RW_CONNS; i++) {
		rw_client_dial(&clt, &to, &attr);
		rw_client_dialed(&clt);
	}
	rw_client_ready(&clt, FRWR_MW2);
	world_until(w, clt.done >= ENOUGH);
	kill_peer(pid);
	world_until(w, rw_client_drained(&clt));
	for (unsigned i = 0; i < RW_CONNS; i++)
		check(fab_conn_cause(clt.e[i]->conn)[0] != '\0');
	/* It was in the middle of something. */
	check(clt.number > clt.done);
	check_quick("the client", rw_client_close(&clt));
	fclose(out);
}

static void client_killed(struct world *w)
{
	struct fab_qp_attr attr = rw_attr(w, true, FRWR_MW1);
	char text[FAB_ADDR_STRLEN];
	FILE *out;
	pid_t pid;

	pid = start_peer(w, fab_addr_format(&w->addr, text, sizeof(text)), &out);
	srv = (struct rw_server){ .w = w };
	for (unsigned i = 0; i < RW_CONNS; i++)
		rw_server_accept(&srv, &attr);
	world_until(w, srv.e[RW_CONNS - 1]->established);
	rw_server_ready(&srv, FRWR_MW1);
	world_until(w, srv.answered >= ENOUGH);
	kill_peer(pid);
	world_until(w, rw_server_drained(&srv));
	check_quick("the server", rw_server_close(&srv));
	fclose(out);
}

FAB_TEST(t23_peer_killed)
{
	server_killed(w);
	client_killed(w);
}
