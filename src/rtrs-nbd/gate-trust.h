/* SPDX-License-Identifier: BSD-3-Clause */
/* Trust that is taken back: when keys or certificates for NBD clients were replaced, clients whose
 * key is gone, or whose certificate would not pass any more, are ended, each with a line in the
 * log.  All others go on: those in clear, too.  The rule is that of rtrs-server for its paths. */
#ifndef GATE_TRUST_H
#define GATE_TRUST_H

struct gate_now;
struct loop_msg;

/* The credentials of the gateway have changed: have each loop look at its clients, soon.  Cannot
 * fail.  Without a gateway: nothing, because there is no client.  Service thread. */
void gate_trust_changed(const struct gate_now *now);

/* The function of gate_loop.trust_msg. */
void gate_trust_msg(struct loop_msg *msg);

#endif
