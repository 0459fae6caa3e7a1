/* SPDX-License-Identifier: BSD-3-Clause */
/* The suite: one function per promise of fabric.h and per corner of setting up. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "harness.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* cf-setup.c */
void setup_connect(struct world *w);
void setup_reject(struct world *w);
void setup_admit(struct world *w);
void setup_seal(struct world *w);
void setup_unreachable(struct world *w);
void setup_abort(struct world *w);
void setup_port_in_use(struct world *w);
void setup_many(struct world *w);
void setup_limits(struct world *w);

/* cf-queue.c: order, completion, failure */
void promise_a_order(struct world *w);
void promise_b_unsignaled(struct world *w);
void promise_c_flush(struct world *w);
void promise_c_peer(struct world *w);
void promise_e_p12_no_receive(struct world *w);
void promise_f_only_poll(struct world *w);
void promise_g_both_ways(struct world *w);
void promise_l_buffers(struct world *w);
void sleep_and_post(struct world *w);
void edge_before_poll(struct world *w);

/* cf-data.c: what arrives where */
void promise_d_visibility(struct world *w);
void send_kinds(struct world *w);
void send_lists(struct world *w);
void send_too_long(struct world *w);
void promise_i_checks(struct world *w);
void promise_i_edges(struct world *w);
void promise_i_domains(struct world *w);
void region_by_iova(struct world *w);
void rereg_by_iova(struct world *w);
void promise_k_rereg(struct world *w);
void promise_k_suspend(struct world *w);
void promise_k_suspend_placing(struct world *w);
void promise_k_placing(struct world *w);
void promise_n_hold(struct world *w);
void memory_given_back(struct world *w);

/* cf-mw.c: windows; where a device has none they say so */
void promise_k_windows(struct world *w);
void promise_m_bind(struct world *w);
void promise_m_all_memory(struct world *w);
void promise_m_zero_based(struct world *w);
void promise_m_t18_chain(struct world *w);
void promise_m_remote_inv(struct world *w);
void promise_m_t20_type_1(struct world *w);
void promise_m_mixed(struct world *w);
void promise_m_rules(struct world *w);
void promise_m_remote_rules(struct world *w);
void promise_m_both_invalidate(struct world *w);
void promise_m_t20_writes(struct world *w);
void promise_m_dead(struct world *w);
/* False, with a word of it, if the device of @p has no windows of @type. */
bool has_windows(const struct pair *p, enum ibv_mw_type type);
/* @n bytes were placed after the key of a window was taken away. */
void check_late(unsigned n);
/* The connection failed on both ends: nothing succeeded at b. */
void check_refused(struct world *w, struct pair *p);

/* cf-thread.c; only where provider_threads */
void promise_h_threads(struct world *w);
void promise_k_threads(struct world *w);
void promise_n_threads(struct world *w);
void promise_k_window_threads(struct world *w);

#endif
