/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of NBD clients, for the command "clients" of the control socket (man/rtrsctl.pod).
 * Service thread. */
#ifndef GATE_CLIENTS_H
#define GATE_CLIENTS_H

struct ctl_client;

/* A struct ctl_call.fn: @arg is a struct gate_now.  Answers when all loops have told of their
 * clients; refuses while no gateway serves. */
void gate_clients_call(struct ctl_client *client, const char *value, void *arg);

#endif
