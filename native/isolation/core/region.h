/* The memory that the processes of a container count in: one file, mapped by all of them.
 *
 * Who may write what:
 *   magic, version, size            whoever holds LOCK_SETUP and finds an empty file
 *   cards[].uuid, card_count        whoever holds LOCK_SETUP; an entry never changes again
 *   cards[].word, cards[].paid_ns   any process, by compare and swap
 *   slots[i]                        the process that holds LOCK_SLOT + i; but accounts[].seen: any
 *
 * Any change of the layout is a new REGION_VERSION, which is also part of the file's name: two
 * versions never meet in one file. gpupool/hardware/limiter_region.py has the same layout;
 * tests/native compares the two.
 */
#ifndef ISOLATION_REGION_H
#define ISOLATION_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_MAGIC "GPUPLIM"
#define REGION_VERSION 1u
#define MAX_CARDS 16
#define MAX_SLOTS 512
#define UUID_SIZE 48

#define LOCK_SETUP (1ll << 40)
#define LOCK_SLOT (2ll << 40)  /* + slot: held for as long as its process lives */
#define LOCK_OWNER (3ll << 40) /* + slot: a POSIX lock, asked only for its holder's pid */

/* What one process holds of one card; see accounts.h. */
struct account {
    _Atomic uint64_t units[2];
    _Atomic uint32_t committed;
    _Atomic uint32_t seen;
    _Atomic uint32_t has_context;
    uint32_t reserved;
};

struct slot {
    _Atomic uint32_t pid; /* as the process itself sees it; 0: free */
    uint32_t reserved;
    _Atomic uint64_t start_time; /* of the process, in clock ticks since boot */
    _Atomic uint64_t namespace;  /* inode of its pid namespace */
    uint64_t padding;
    char name[96];
    struct account accounts[MAX_CARDS];
};

/* In lines of their own: what changes often is not to slow down what does not. */
struct region_card {
    char uuid[UUID_SIZE];
    char padding[16];
    _Atomic uint64_t word;    /* see accounts.h */
    char word_padding[56];
    _Atomic uint64_t paid_ns; /* see share.h */
    char paid_padding[56];
};

struct region {
    char magic[8];
    uint32_t version;
    uint32_t size;
    _Atomic uint32_t card_count;
    _Atomic uint32_t slots_seen; /* slots from here on were never used */
    char padding[40];
    struct region_card cards[MAX_CARDS];
    struct slot slots[MAX_SLOTS];
};

_Static_assert(sizeof(struct account) == 32, "layout: account");
_Static_assert(sizeof(struct slot) == 640, "layout: slot");
_Static_assert(sizeof(struct region_card) == 192, "layout: region_card");
_Static_assert(offsetof(struct region, cards) == 64, "layout: cards");
_Static_assert(offsetof(struct region, slots) == 3136, "layout: slots");
_Static_assert(sizeof(struct region) == 330816, "layout: region");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared counters need lock-free atomics");

struct mapping {
    struct region *region; /* NULL: not open */
    int fd;
    char path[4096];
    uint64_t device, inode;
};

/* Opens the file, and makes it if there is none. False: it cannot be used; errno may say why. */
bool region_open(struct mapping *mapping, const char *path);

/* The descriptor, opened again if the program has closed it or put something else in its place:
 * then the locks are gone as well, and `is_new` says so. -1: it cannot be opened any more. */
int region_descriptor(struct mapping *mapping, bool *is_new);

/* In the child of a fork: locks of the parent are not the child's. */
void region_after_fork(struct mapping *mapping);

/* The card's number in the region, which it keeps; -1 if there are too many. */
int region_card(struct mapping *mapping, const char *uuid);

/* Open-file-description locks on one byte, which the kernel drops with the process. */
bool lock_try(int fd, long long byte);
void lock_wait(int fd, long long byte);
void lock_drop(int fd, long long byte);
bool lock_is_held(int fd, long long byte); /* by another description */

#endif
