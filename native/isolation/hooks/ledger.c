#include "ledger.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../core/accounts.h"

#define SHARDS 64

/* Hash tables with open addressing. Removing an entry moves the rest of its run up, so that there
 * are no tombstones. Many tables with a spin lock each: threads that allocate at the same time
 * rarely meet. After a fork the child drops the tables without freeing them: another thread of the
 * parent may have been replacing one at that moment. */
static struct shard {
    _Atomic bool is_taken;
    size_t capacity, count;
    struct entry *table;
    char padding[32];
} shards[SHARDS];

static uint64_t hash(uint64_t key) {
    return (key >> 9 ^ key) * 0x9e3779b97f4a7c15ull;
}

/* Locks the table of the key. */
static struct shard *lock_shard(uint64_t key) {
    struct shard *shard = &shards[hash(key) >> 58];
    for (int tries = 0; atomic_exchange_explicit(&shard->is_taken, true, memory_order_acquire);)
        if (++tries % 64 == 0) sched_yield();
    return shard;
}

static void unlock_shard(struct shard *shard) {
    atomic_store_explicit(&shard->is_taken, false, memory_order_release);
}

static size_t home(const struct shard *shard, uint64_t key) {
    return (size_t)(hash(key) >> 20) & (shard->capacity - 1);
}

static struct entry *place_of(const struct shard *shard, uint64_t key) {
    for (size_t i = home(shard, key);; i = (i + 1) & (shard->capacity - 1))
        if (shard->table[i].key == key || !shard->table[i].key) return &shard->table[i];
}

static struct entry *find(const struct shard *shard, uint64_t key) {
    if (!shard->capacity) return NULL;
    struct entry *entry = place_of(shard, key);
    return entry->key ? entry : NULL;
}

static bool grow(struct shard *shard) {
    struct shard larger = {.capacity = shard->capacity ? shard->capacity * 2 : 32};
    larger.table = calloc(larger.capacity, sizeof *larger.table);
    if (!larger.table) return false;
    for (size_t i = 0; i < shard->capacity; i++)
        if (shard->table[i].key) *place_of(&larger, shard->table[i].key) = shard->table[i];
    free(shard->table);
    shard->table = larger.table;
    shard->capacity = larger.capacity;
    return true;
}

static void remove_entry(struct shard *shard, struct entry *entry) {
    size_t mask = shard->capacity - 1, hole = (size_t)(entry - shard->table);
    shard->count--;
    for (size_t i = (hole + 1) & mask; shard->table[i].key; i = (i + 1) & mask) {
        size_t distance = (i - home(shard, shard->table[i].key)) & mask;
        if (distance < ((i - hole) & mask)) continue;
        shard->table[hole] = shard->table[i];
        hole = i;
    }
    shard->table[hole].key = 0;
}

bool ledger_put(const struct entry *entry, struct entry *replaced) {
    struct shard *shard = lock_shard(entry->key);
    bool is_room = shard->count * 2 < shard->capacity || grow(shard);
    replaced->key = 0;
    if (is_room) {
        struct entry *place = place_of(shard, entry->key);
        if (!place->key) shard->count++;
        *replaced = *place;
        *place = *entry;
    }
    unlock_shard(shard);
    return is_room;
}

/* `references`: how many to remove; UINT32_MAX for all. */
static bool release(uint64_t key, uint32_t references, struct entry *taken) {
    struct shard *shard = lock_shard(key);
    struct entry *entry = find(shard, key);
    bool is_last = false;
    if (entry && entry->references > references) {
        entry->references -= references;
    } else if (entry) {
        *taken = *entry;
        remove_entry(shard, entry);
        is_last = true;
    }
    unlock_shard(shard);
    return is_last;
}

bool ledger_take(uint64_t key, struct entry *taken) {
    return release(key, UINT32_MAX, taken);
}

bool ledger_release(uint64_t key, struct entry *taken) {
    return release(key, 1, taken);
}

bool ledger_retain(uint64_t key) {
    struct shard *shard = lock_shard(key);
    struct entry *entry = find(shard, key);
    if (entry) entry->references++;
    unlock_shard(shard);
    return entry != NULL;
}

static struct shard *lock_number(int number) {
    while (atomic_exchange(&shards[number].is_taken, true)) sched_yield();
    return &shards[number];
}

/* Adds the charges to `bytes`, by card; those of no card to nothing. */
static void take_of(uint64_t context, uint64_t target, uint64_t bytes[MAX_CARDS]) {
    for (int number = 0; number < SHARDS; number++) {
        struct shard *shard = lock_number(number);
        for (size_t i = 0; i < shard->capacity; i++) {
            struct entry *entry = &shard->table[i];
            /* A loop: removing an entry may move another one into its place. */
            while (entry->key && entry->context == context && entry->target == target) {
                if (entry->card >= 0) bytes[entry->card] += counted_bytes(entry->bytes);
                remove_entry(shard, entry);
            }
        }
        unlock_shard(shard);
    }
}

void ledger_take_of(uint64_t context, uint64_t bytes[MAX_CARDS]) {
    take_of(context, 0, bytes);
}

uint64_t ledger_drop(uint64_t context, uint64_t target) {
    uint64_t bytes[MAX_CARDS] = {0}, sum = 0;
    take_of(context, target, bytes);
    for (int i = 0; i < MAX_CARDS; i++) sum += bytes[i];
    return sum;
}

void ledger_detach(uint64_t target) {
    for (int number = 0; number < SHARDS; number++) {
        struct shard *shard = lock_number(number);
        for (size_t i = 0; i < shard->capacity; i++)
            if (shard->table[i].key && shard->table[i].target == target)
                shard->table[i].target = 0;
        unlock_shard(shard);
    }
}

void ledger_forget_all(void) {
    for (int number = 0; number < SHARDS; number++)
        shards[number] = (struct shard){.is_taken = false};
}
