/* Locks on single bytes of an open file.
 *
 * The bytes lie far behind the end of the file: a lock needs no data, only a number that all
 * processes agree on.
 *
 * byte_lock_*: open-file-description locks. The lock belongs to the open file description, not to
 * the process, and the kernel drops it when the last descriptor of that description is closed, at
 * the latest when the process dies, also by kill -9. So a lock that is held proves that its holder
 * lives. It needs no root and works between containers, whose pids mean nothing to one another.
 * Robust mutexes are no replacement: the kernel identifies their owner by thread id, and two pid
 * namespaces use the same ids, so the death of one thread could release the mutex of another.
 *
 * Consequences that every caller has to respect:
 *   - A description does not conflict with itself. byte_lock_is_held answers "no" for a lock that
 *     the asking descriptor holds, and byte_lock_try on it succeeds.
 *   - fork duplicates the descriptor but not the description: the child would keep its parent's
 *     locks alive. A child must close its copy and open the file again.
 *   - mmap keeps the description of its descriptor open. Never map the descriptor that holds locks:
 *     the mapping survives fork, and with it the locks.
 *
 * owner_lock_*: a POSIX lock, which belongs to the process. Nobody waits for it. Its only use is
 * that F_GETLK returns the pid of the holder, translated into the pid namespace of the asker.
 */
#ifndef PROCESS_BYTE_LOCK_H
#define PROCESS_BYTE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

bool byte_lock_try(int fd, long long byte);
bool byte_lock_wait(int fd, long long byte);
void byte_lock_drop(int fd, long long byte);

/* Whether another open file description holds the lock. Answers "yes" if the kernel cannot say. */
bool byte_lock_is_held(int fd, long long byte);

void owner_lock_take(int fd, long long byte);

/* The pid of the holder as this process sees it; 0 if there is no holder, or it is in a pid
 * namespace that this process cannot see. */
uint32_t owner_lock_pid(int fd, long long byte);

/* Opens a file for locks, for reading and writing, with a descriptor number of 900 or more: some
 * programs expect the low numbers for themselves. Where the limit of open files is lower, the
 * number is any. `flags` are added to those of open. -1: it cannot be opened. */
int open_at_high_number(const char *path, int flags);

#endif
