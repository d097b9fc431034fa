/* The memory in which the processes of a container count what they use: one file, mapped by all of
 * them.
 *
 * Who may write what:
 *   magic, version, size            the process that holds LOCK_SETUP and finds an empty file
 *   cards[].uuid, card_count        a process that holds LOCK_SETUP; an entry never changes again
 *   cards[].word, cards[].paid_ns   any process, by compare-and-swap
 *   slots[i]                        the process that holds LOCK_SLOT + i,
 *                                   except accounts[].seen: any process
 *
 * Any change of the layout needs a new REGION_VERSION, which is also part of the file's name: two
 * versions of the limiter, in one container during an upgrade, must never use the same file.
 * gpupool/hardware/limiter_region.py has the same layout, and tests/native compares the two.
 */
#ifndef ISOLATION_REGION_H
#define ISOLATION_REGION_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_MAGIC "GPUPLIM"
#define REGION_VERSION 1u
#define MAX_CARDS 16
#define MAX_SLOTS 512
#define UUID_SIZE 48
#define NAME_SIZE 96

/* The locks are those of process/byte_lock.h. */
#define LOCK_SETUP (1ll << 40)
#define LOCK_SLOT (2ll << 40)  /* + slot: held as long as the slot's process lives */
#define LOCK_OWNER (3ll << 40) /* + slot: a POSIX lock, which tells the holder's pid */

/* What one process holds of one card; see accounts.h. */
struct account {
    _Atomic uint64_t granules[2];
    _Atomic uint32_t committed;
    _Atomic uint32_t seen;
    _Atomic uint32_t has_context;
    uint32_t reserved;
};

struct slot {
    _Atomic uint32_t pid; /* as the process itself sees it; 0: the slot is free */
    uint32_t reserved;
    _Atomic uint64_t start_time; /* of the process, in clock ticks since boot */
    _Atomic uint64_t namespace;  /* inode of its pid namespace */
    uint64_t padding;
    char name[NAME_SIZE];
    struct account accounts[MAX_CARDS];
};

/* The padding gives each word that changes often a cache line of its own: processes that change one
 * must not slow down those that read the others. */
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
    _Atomic uint32_t slots_seen; /* slots from this number on were never used */
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
    int fd;                /* holds the locks of this process; -1: closed */
    char path[PATH_MAX];
    uint64_t device, inode; /* of the mapped file */
};

/* Opens the file, and creates it if there is none. False: it cannot be used; errno may say why. */
bool region_open(struct mapping *mapping, const char *path);

/* The descriptor for locks. A program may have closed it, or its number may now belong to a file of
 * the program: then the file is opened again, `is_new` is true, and the locks of this process are
 * lost. -1: the file cannot be opened any more. */
int region_descriptor(struct mapping *mapping, bool *is_new);

/* To be called in the child of a fork: closes the descriptor, so that the child does not keep the
 * parent's locks held after the parent's death. */
void region_after_fork(struct mapping *mapping);

/* The number of the card in the region, which never changes; -1 if there are too many cards. */
int region_card(struct mapping *mapping, const char *uuid);

#endif
