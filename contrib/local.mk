# SPDX-License-Identifier: BSD-3-Clause
# What is installed beside the programs: their completion in bash.

# bash-completion looks for a file by the name of the command.
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = %D%/completion/rtrsctl
COMPLETED_LIKE_RTRSCTL = rtrs-server rtrs-bench
