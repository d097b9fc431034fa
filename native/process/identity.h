/* Which process is meant, when its number may have been given to another one since. */
#ifndef PROCESS_IDENTITY_H
#define PROCESS_IDENTITY_H

#include <stdint.h>

/* Of this process; numbers of processes mean the same only within one. 0 where it cannot be told. */
uint64_t own_namespace(void);

/* In clock ticks since boot; 0 for a process that is not there or has ended. */
uint64_t process_start_time(uint32_t pid);

#endif
