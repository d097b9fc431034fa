/* The state of one node's simulated driver: one file, mapped by every process of the node.
 *
 * Python creates the file with its cards and injects faults. gpupool/hardware/simdriver_layout.py
 * has the same layout, and tests/native compares the two. The libraries read the cards and write
 * what programs do. Any change of the layout needs a new SIM_VERSION: a library refuses the file of
 * another version.
 *
 * Who may write what:
 *   magic .. cards[].fixed      the creator of the file, before any process opens it
 *   cards[].fault, events,      the fault injector, while it holds LOCK_INJECT; the counts of a
 *   call_faults                 call fault also any process, atomically
 *   slots[i], used[][i],        the process that holds LOCK_SLOT + i
 *   managed[][i]
 *   limits                      whoever holds LOCK_LIMITS; see limits.h
 *   cards[].live                any process, each field by itself and atomically
 *
 * The locks are those of process/byte_lock.h.
 */
#ifndef SIMDRIVER_LAYOUT_H
#define SIMDRIVER_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAGIC "GPUPSIM"
#define SIM_VERSION 4 /* plain, because messages quote it */
#define MAX_CARDS 16
#define MAX_SLOTS 512
#define MAX_EVENTS 256
#define MAX_LINKS 18
#define MAX_CALL_FAULTS 32
#define MAX_LIMITS 512
#define PLACE_BYTES 320
#define BUCKETS 8
#define BUCKET_NS 250000000ull

#define LOCK_INJECT (1ll << 40)
#define LOCK_CARD (2ll << 40)  /* + card: held while memory is added to the use of a card */
#define LOCK_SLOT (3ll << 40)  /* + slot: held as long as the slot's process lives */
#define LOCK_OWNER (4ll << 40) /* + slot: a POSIX lock, which tells the holder's pid */

#define LOCK_LIMITS (5ll << 40) /* held while a memory limit is changed */

#define LINK_NONE 255
#define LINK_SWITCH 254

/* Properties of a card, which never change while the file is in use. */
struct card_fixed {
    char name[96];
    char uuid[48];
    char serial[24];
    char vbios[24];
    char part_number[32];
    uint64_t memory_bytes;
    uint64_t bar1_bytes;
    uint32_t architecture; /* nvmlDeviceArchitecture_t */
    uint32_t brand;        /* nvmlBrandType_t */
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors, cores;
    uint32_t memory_bus_bits, l2_bytes;
    uint32_t clock_graphics_mhz, clock_memory_mhz, clock_video_mhz; /* the highest */
    uint32_t clock_idle_mhz;
    uint32_t power_limit_mw, power_min_mw, power_max_mw, power_idle_mw;
    uint32_t temperature_idle_c, temperature_busy_c;
    uint32_t temperature_slowdown_c, temperature_shutdown_c;
    uint32_t has_fan, has_ecc, has_mig, mig_instances;
    uint32_t pci_domain, pci_bus, pci_device, pci_device_id, pci_subsystem_id;
    uint32_t pcie_generation, pcie_width;
    uint32_t link_count, link_version; /* NVLink */
    uint32_t numa_node;
    uint32_t minor_number;
    uint32_t context_bytes; /* memory that the first context of a process on the card takes */
    uint8_t link_peer[24];  /* a card's index, LINK_SWITCH or LINK_NONE; MAX_LINKS are used */
};

/* Faults and outside load of a card, written by the fault injector. */
struct card_fault {
    _Atomic uint32_t is_lost;       /* the card has fallen off the bus: every call about it fails */
    _Atomic uint32_t is_poisoned;   /* uncorrectable memory error: contexts fail until recovery */
    _Atomic uint32_t last_xid;
    _Atomic uint32_t temperature_c; /* 0: it follows the load */
    _Atomic uint64_t ecc_corrected_volatile, ecc_uncorrected_volatile;
    _Atomic uint64_t ecc_corrected_aggregate, ecc_uncorrected_aggregate;
    _Atomic uint64_t retired_pages;
    _Atomic uint64_t outside_bytes; /* memory in use by programs that are not simulated */
    _Atomic uint32_t outside_percent;
    uint32_t reserved;
};

/* Modes that programs have set, and the work that they have queued. */
struct card_live {
    _Atomic uint32_t persistence_mode;
    _Atomic uint32_t compute_mode;
    _Atomic uint32_t power_limit_mw;
    _Atomic uint32_t ecc_mode;
    _Atomic uint64_t engine_free_ns;    /* the time at which the last queued kernel ends */
    _Atomic uint64_t worked_ns;         /* the time that all kernels took, since the node started */
    _Atomic uint64_t busy[BUCKETS];     /* see engine.h */
};

struct card {
    struct card_fixed fixed;
    struct card_fault fault;
    struct card_live live;
};

/* One process that has used CUDA. */
struct slot {
    _Atomic uint32_t pid;        /* as the process itself sees it; 0: free */
    _Atomic uint32_t contexts;   /* one bit for each card on which it has a context */
    _Atomic uint64_t start_time; /* of the process, in clock ticks since boot */
    _Atomic uint64_t namespace;  /* inode of its pid namespace */
    char name[64];
    char place[PLACE_BYTES]; /* its cgroup when it called cuInit; see cgroup.h */
    _Atomic uint64_t busy[MAX_CARDS][BUCKETS];
};

/* The memory limits of one cgroup; see limits.h. */
struct limit {
    char place[PLACE_BYTES];
    uint64_t cgroup;         /* the inode of its directory; 0: a container without a cgroup */
    _Atomic uint32_t is_set; /* written last; 0: the entry is free */
    uint32_t reserved;
    _Atomic uint64_t soft[MAX_CARDS], hard[MAX_CARDS]; /* bytes; 0 and NO_LIMIT: not set */
};
#define NO_LIMIT UINT64_MAX

/* Valid if `sequence` is the number that the reader expects: the events are a ring, and an entry is
 * overwritten while a slow reader reads it. */
struct card_event {
    _Atomic uint64_t sequence;
    uint64_t data; /* the XID */
    uint32_t card;
    uint32_t type; /* nvmlEventType* */
    uint64_t time_ns;
};

#define EVERY_CARD (-1)
#define CALL_HANGS (-1) /* as a result: the call does not return until the fault is taken away */
#define ALWAYS UINT32_MAX

/* A call that fails on request; see gate.h. */
struct call_fault {
    char call[56];          /* the exported name, or its beginning and a '*' */
    _Atomic uint32_t id;    /* written last; 0: the entry is free. Calls that hang sleep on it. */
    int32_t card;           /* an index into cards, or EVERY_CARD */
    int32_t result;         /* what the call returns, or CALL_HANGS */
    _Atomic uint32_t after; /* so many calls still succeed */
    _Atomic uint32_t times; /* so many calls then fail, or ALWAYS */
    uint32_t reserved;
};

struct sim_state {
    char magic[8];
    uint32_t version;
    uint32_t size;
    uint32_t card_count;
    uint32_t cuda_version; /* 12040 */
    char driver_version[32];
    char node[64];
    uint64_t kernel_ns; /* the length of a kernel whose name does not say it */
    _Atomic uint64_t last_event;
    _Atomic uint32_t event_futex; /* the low half of last_event, on which waiters sleep */
    _Atomic uint32_t slots_seen;  /* slots from this number on were never used */
    struct card cards[MAX_CARDS];
    struct card_event events[MAX_EVENTS];
    struct slot slots[MAX_SLOTS];
    _Atomic uint64_t used[MAX_CARDS][MAX_SLOTS]; /* bytes */
    _Atomic uint32_t call_fault_count;           /* 0: no call needs to look */
    uint32_t last_call_fault;                    /* the id that was given last */
    struct call_fault call_faults[MAX_CALL_FAULTS];
    uint32_t has_limits;          /* the driver holds cgroups to memory limits */
    _Atomic uint32_t limits_seen; /* limits from this number on were never used */
    struct limit limits[MAX_LIMITS];
    _Atomic uint64_t managed[MAX_CARDS][MAX_SLOTS]; /* the part of `used` that no limit counts */
};

_Static_assert(sizeof(struct card_fixed) == 408, "layout: card_fixed");
_Static_assert(sizeof(struct card_fault) == 72, "layout: card_fault");
_Static_assert(sizeof(struct card_live) == 96, "layout: card_live");
_Static_assert(sizeof(struct card) == 576, "layout: card");
_Static_assert(sizeof(struct slot) == 1432, "layout: slot");
_Static_assert(sizeof(struct card_event) == 32, "layout: card_event");
_Static_assert(offsetof(struct sim_state, kernel_ns) == 120, "layout: kernel_ns");
_Static_assert(offsetof(struct sim_state, cards) == 144, "layout: cards");
_Static_assert(offsetof(struct sim_state, events) == 9360, "layout: events");
_Static_assert(offsetof(struct sim_state, slots) == 17552, "layout: slots");
_Static_assert(offsetof(struct sim_state, used) == 750736, "layout: used");
_Static_assert(sizeof(struct call_fault) == 80, "layout: call_fault");
_Static_assert(offsetof(struct sim_state, call_faults) == 816280, "layout: call_faults");
_Static_assert(sizeof(struct limit) == 592, "layout: limit");
_Static_assert(offsetof(struct sim_state, limits) == 818848, "layout: limits");
_Static_assert(sizeof(struct sim_state) == 1187488, "layout: sim_state");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared counters need lock-free atomics");

#endif
