/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: @program of each function is a struct change. */
#include "change-ctl.h"
#include "change.h"

static void ctl_add_export(void *program, const char *spec, srv_ctl_done_fn *done, void *arg)
{
	change_export_add(program, spec, done, arg);
}

static void ctl_remove_export(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			      void *arg)
{
	change_export_remove(program, name, force, done, arg);
}

static void ctl_resize_export(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			      void *arg)
{
	change_export_resize(program, name, force, done, arg);
}

static void ctl_break_export(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			     void *arg)
{
	change_export_break(program, name, force, done, arg);
}

static void ctl_set_export(void *program, const char *text, bool force, srv_ctl_done_fn *done,
			   void *arg)
{
	change_export_set(program, text, force, done, arg);
}

static void ctl_reload(void *program, bool force, srv_ctl_done_fn *done, void *arg)
{
	change_reload(program, force, done, arg);
}

static void ctl_save(void *program, srv_ctl_done_fn *done, void *arg)
{
	change_save(program, done, arg);
}

const struct srv_ctl_ops change_ctl_ops = {
	.export_add = ctl_add_export,
	.export_remove = ctl_remove_export,
	.export_resize = ctl_resize_export,
	.export_break = ctl_break_export,
	.export_set = ctl_set_export,
	.reload = ctl_reload,
	.save = ctl_save,
};
