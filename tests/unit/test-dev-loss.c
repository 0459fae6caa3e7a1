/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses of a device and the handles that are told: the order of epochs, which the simulation meets
 * by chance only.  A case is a line of steps; b: in front names a handle other than a.
 *
 *	b:open b:close		a handle comes or goes; a is there from the begin
 *	wrote			by the handle
 *	found 2			a loss, in epoch 2
 *	flush 2 EIO		a FLUSH that is answered in epoch 2 with this
 *	begin1 end1 2 EIO	the same in two steps, up to three at a time
 *	asks1 2 EIO fail1	the end of what is no FLUSH; the end with another error
 *	heir EIO		a handle opens, is answered so, and closes
 *	reset			the server is another one
 *	kept next		the process keeps what it knows; the next one, with handle a
 *	arrived			the user has the answer
 *	loss? 1 untold? 1	is there something to lose; must the next process tell once more? */
#include <errno.h>

#include "dev-loss.h"
#include "unit.h"

static struct dev_loss loss;
static struct dev_told told[2];
static struct dev_cover covers[4];
static struct dev_loss_kept kept;
static const char *current;		/* case */

static int flush(struct dev_told *t, unsigned epoch, bool covers_all)
{
	struct dev_cover cover;
	int r;

	dev_cover_begin(&cover, t, &loss);
	r = dev_loss_tell(&loss, t, &cover, epoch, true);
	if (r == 0 && covers_all)
		dev_loss_flushed(&loss, &cover);
	return r;
}

static int heir(void)
{
	struct dev_told t;
	int r;

	dev_told_init(&t, &loss);
	r = flush(&t, loss.epoch, false);
	dev_told_fini(&t, &loss);
	return r;
}

static void next_process(void)
{
	dev_loss_fini(&loss);
	dev_loss_init(&loss);
	dev_loss_resume(&loss, &kept);
	dev_told_init(&told[0], &loss);
}

/* The next word of @line: a number, EIO, or ok. */
static int number(char **line)
{
	const char *word = strsep(line, " ");

	cr_assert_not_null(word, "%s", current);
	return !strcmp(word, "EIO") ? -EIO : atoi(word);
}

/* Steps with a result, which stands behind them. */
static bool step_told(const char *word, struct dev_told *t, char **line)
{
	struct dev_cover *cover = &covers[word[strlen(word) - 1] & 3];
	unsigned epoch = 0;
	int r;

	if (!strncmp(word, "flush", 5) || !strncmp(word, "end", 3) || !strncmp(word, "asks", 4))
		epoch = (unsigned)number(line);
	if (!strcmp(word, "flush"))
		r = flush(t, epoch, true);
	else if (epoch)
		r = dev_loss_tell(&loss, t, cover, epoch, *word == 'e');
	else if (!strcmp(word, "heir"))
		r = heir();
	else if (!strcmp(word, "loss?"))
		r = dev_loss_unflushed(&loss);
	else if (!strcmp(word, "untold?"))
		r = (int)kept.untold;
	else
		return false;
	cr_assert_eq(r, number(line), "%s: %s: %d in front of \"%s\"", current, word, r,
		     *line ? *line : "the end");
	return true;
}

static void step(const char *word, struct dev_told *t, char **line)
{
	struct dev_cover *cover = &covers[word[strlen(word) - 1] & 3];

	if (step_told(word, t, line))
		return;
	if (!strcmp(word, "open"))
		dev_told_init(t, &loss);
	else if (!strcmp(word, "close"))
		dev_told_fini(t, &loss);
	else if (!strcmp(word, "wrote"))
		dev_loss_wrote(&loss, t);
	else if (!strcmp(word, "found"))
		dev_loss_found(&loss, (unsigned)number(line));
	else if (!strncmp(word, "begin", 5))
		dev_cover_begin(cover, t, &loss);
	else if (!strncmp(word, "fail", 4))
		dev_cover_fail(cover, t, &loss);
	else if (!strcmp(word, "reset"))
		dev_loss_reset(&loss);
	else if (!strcmp(word, "kept"))
		dev_loss_keep(&loss, &kept);
	else if (!strcmp(word, "next"))
		next_process();
	else if (!strcmp(word, "arrived"))
		dev_told_arrived(t, &loss);
	else
		cr_assert_fail("%s: no step: %s", current, word);
}

static void run(const char *name, const char *steps)
{
	char text[256], *line = text, *word;

	current = name;
	kept = (struct dev_loss_kept){ 0 };
	snprintf(text, sizeof(text), "%s", steps);
	dev_loss_init(&loss);
	if (strncmp(steps, "kept", 4))
		dev_told_init(&told[0], &loss);
	while ((word = strsep(&line, " "))) {
		unsigned handle = word[1] == ':' ? (unsigned)(*word - 'a') : 0;

		cr_assert_lt(handle, ARRAY_SIZE(told));
		step(word + (word[1] == ':' ? 2 : 0), &told[handle], &line);
	}
}

Test(dev_loss, steps)
{
	static const struct { const char *name, *steps; } cases[] = {
		{ "is told once, and a FLUSH that failed covers nothing",
		  "flush 1 ok wrote found 2 flush 2 EIO loss? 1 flush 2 ok loss? 0" },
		/* The server that answered had all; the loss of the next one is for the next. */
		{ "later than the answer", "wrote begin1 found 2 end1 1 ok flush 2 EIO" },
		{ "of two losses the first is older than the answer",
		  "wrote begin1 found 2 found 4 end1 3 EIO flush 4 EIO flush 4 ok" },
		/* An epoch that is over does not make later losses older than they are. */
		{ "found in an epoch that is over",
		  "wrote found 4 begin1 found 2 end1 3 ok flush 4 EIO flush 4 ok" },
		/* Each late write of an epoch is a loss; an answer of before is older than all. */
		{ "two losses of an epoch",
		  "wrote begin1 found 2 found 2 end1 1 ok flush 2 EIO flush 2 ok" },

		/* Handles that are closed before they were told. */
		{ "left untold", "wrote found 2 close b:open b:begin1 b:asks1 2 EIO b:begin1 "
		  "b:end1 2 EIO open flush 2 ok" },
		{ "left unflushed, and found later",
		  "wrote close heir ok found 2 heir EIO heir ok" },
		{ "opened between the leaving and the finding: told as each handle, and pays",
		  "wrote close open found 2 flush 2 EIO heir ok" },
		{ "left with writes that another handle flushed",
		  "b:open b:wrote flush 1 ok b:close wrote found 2 heir ok" },
		{ "left, and flushed by the next", "wrote close open flush 1 ok found 2 heir ok" },
		{ "one that leaves with nothing to lose makes no other debt younger",
		  "b:open b:wrote flush 1 ok wrote close open b:close found 2 flush 2 EIO "
		  "heir ok" },
		/* A handle pays for those that left before it opened, not for later ones. */
		{ "each debt has its heir", "b:open b:wrote wrote found 2 b:close b:open close "
		  "b:begin1 b:end1 2 EIO heir EIO heir ok" },
		{ "another server", "wrote found 2 close reset loss? 0 heir ok" },

		/* The next process (client-kept.h). */
		{ "the next process knows what is unflushed",
		  "kept open wrote next loss? 1 flush 1 ok next loss? 0 flush 1 ok" },
		{ "it finds the loss behind a handle", "kept open wrote next found 2 flush 2 EIO "
		  "arrived flush 2 ok next flush 1 ok" },
		{ "and in front of one", "kept open wrote next found 2 open flush 2 EIO arrived "
		  "flush 2 ok next flush 1 ok" },
		{ "it tells once more until the user has the answer",
		  "kept open wrote found 2 next flush 1 EIO flush 1 ok next flush 1 EIO arrived "
		  "next flush 1 ok" },
		/* Operations under way when one was told of a loss: their user sends them again. */
		{ "it tells all that were under way", "kept open wrote begin1 begin2 begin3 "
		  "found 2 end1 2 EIO arrived untold? 1 end2 2 EIO fail3 untold? 1 begin1 "
		  "arrived untold? 0" },
		{ "an error that tells of no loss arrives, too", "kept open wrote begin1 fail1 "
		  "arrived found 2 untold? 1 flush 2 EIO untold? 1 close untold? 0" },
	};

	for_each_case(c, cases)
		run(c->name, c->steps);
}
