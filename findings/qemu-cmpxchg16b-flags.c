/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the arithmetic flags before and after CMPXCHG16B, which may change ZF alone (Intel SDM,
 * CMPXCHG8B/CMPXCHG16B, "Flags Affected").
 */
#include <stdint.h>
#include <stdio.h>

#define CF 0x001
#define SF 0x080

static _Alignas(16) uint64_t word[2];

int main(void)
{
	uint64_t low = 1, high = 2, before, after;

	/* 0 - 1 sets CF and SF.  The jump ends what an emulator translates in one piece. */
	__asm__ volatile("xorl %%r8d, %%r8d\n\t"
			 "subq $1, %%r8\n\t"
			 "pushfq\n\t"
			 "popq %[before]\n\t"
			 "xorl %%r8d, %%r8d\n\t"
			 "jmp 1f\n"
			 "1:\tsubq $1, %%r8\n\t"
			 "lock cmpxchg16b %[word]\n\t"
			 "pushfq\n\t"
			 "popq %[after]"
			 : [word] "+m"(word), "+a"(low), "+d"(high), [before] "=&r"(before),
			   [after] "=&r"(after)
			 : "b"(3ul), "c"(4ul)
			 : "r8", "cc", "memory");
	printf("CF SF before: %d %d, after: %d %d\n", !!(before & CF), !!(before & SF),
	       !!(after & CF), !!(after & SF));
	return 0;
}
