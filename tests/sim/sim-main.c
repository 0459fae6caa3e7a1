/* SPDX-License-Identifier: BSD-3-Clause */
/* main() of a test program that needs nothing before its tests. */
#include "sim-test.h"

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv);
}
