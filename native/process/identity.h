/* Identifies a process by more than its pid: the kernel gives a pid to another process after the
 * first one ended, and processes of different pid namespaces have equal pids. */
#ifndef PROCESS_IDENTITY_H
#define PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The inode of this process' pid namespace; 0 if it cannot be read. */
uint64_t own_namespace(void);

/* When the process started, in clock ticks since boot; 0 if there is no such process, or it is a
 * zombie: a zombie has released its memory and its files. */
uint64_t process_start_time(uint32_t pid);

/* Whether the process that once registered with these figures still runs in this pid namespace and
 * has the file mapped that this process has mapped at `address`.
 *
 * For processes whose lock is gone (byte_lock.h): a daemon that closes all its descriptors loses
 * the lock and lives on with its mapping. The mapping is asked for because exec keeps pid and start
 * time, but not the mapping. In doubt, when /proc/<pid>/maps may not be read, the answer is yes:
 * memory that is counted too long is better than memory that is given away twice. */
bool is_running_with_map(uint32_t pid, uint64_t start_time, uint64_t namespace,
                         const void *address);

/* The path of this process' program. Of a path that is too long the end is kept: it holds the name
 * of the program. */
void read_own_program(char *path, size_t size);

#endif
