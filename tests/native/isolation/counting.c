/* Uses the limiter's counting from many processes, and kills them. Each command prints figures that
 * test_counting.py checks. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accounts.h"
#include "slots.h"

static struct mapping opened(const char *path) {
    struct mapping mapping = {.fd = -1};
    if (!region_open(&mapping, path) || region_card(&mapping, "GPU-0") != 0) exit(3);
    return mapping;
}

/* Every process opens the region itself: locks belong to open file descriptions. */
static int joined(const char *path, struct mapping *mapping) {
    *mapping = opened(path);
    int slot = slot_claim(mapping);
    if (slot == NO_SLOT) exit(4);
    return slot;
}

struct meeting {
    pthread_barrier_t barrier;
    _Atomic int taken;
};

static void one_of_many(const char *path, struct meeting *meeting, int rounds, uint64_t size,
                        uint64_t limit) {
    struct mapping mapping;
    int slot = joined(path, &mapping);
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&meeting->barrier);
        bool has = account_change(mapping.region, slot, 0, (int64_t)size, limit);
        if (has) atomic_fetch_add(&meeting->taken, 1);
        pthread_barrier_wait(&meeting->barrier);
        if (has) account_change(mapping.region, slot, 0, -(int64_t)size, limit);
        pthread_barrier_wait(&meeting->barrier);
    }
    _exit(0);
}

/* In each round all processes allocate at once. Counts the rounds in which too many or too few
 * succeeded. */
static int race(const char *path, int processes, int rounds, uint64_t size, uint64_t limit) {
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, (unsigned)processes + 1);
    for (int i = 0; i < processes; i++)
        if (!fork()) one_of_many(path, meeting, rounds, size, limit);
    struct mapping mapping = opened(path);
    int over = 0, under = 0, fit = (int)(limit / size), wanted = processes < fit ? processes : fit;
    for (int round = 0; round < rounds; round++) {
        atomic_store(&meeting->taken, 0);
        pthread_barrier_wait(&meeting->barrier);
        pthread_barrier_wait(&meeting->barrier);
        over += atomic_load(&meeting->taken) > wanted;
        under += atomic_load(&meeting->taken) < wanted;
        pthread_barrier_wait(&meeting->barrier);
    }
    while (wait(NULL) > 0 || errno == EINTR) {
    }
    printf("%d %d %llu\n", over, under, (unsigned long long)card_granules(mapping.region, 0));
    return 0;
}

static void hammer(const char *path) {
    struct mapping mapping;
    int slot = joined(path, &mapping);
    unsigned seed = (unsigned)getpid();
    for (uint64_t held = 0;; held = 0) {
        for (int i = 0; i < 8; i++) {
            uint64_t size = (uint64_t)rand_r(&seed) % 1000 + 1;
            if (account_change(mapping.region, slot, 0, (int64_t)size, 20000)) held += size;
        }
        if (held) account_change(mapping.region, slot, 0, -(int64_t)held, 20000);
    }
}

static int alive_slots(struct mapping *mapping) {
    int count = 0;
    for (int slot = 0; slot < MAX_SLOTS; slot++)
        count += atomic_load(&mapping->region->slots[slot].pid) != 0;
    return count;
}

static void print_count(struct mapping *mapping) {
    unsigned long long granules = card_granules(mapping->region, 0);
    printf("%llu %d\n", granules, alive_slots(mapping));
}

/* Kills processes at random moments while others work, and at last all of them. Prints what is
 * still counted. */
static int kill_many(const char *path, int processes, int deaths) {
    struct mapping mapping = opened(path);
    pid_t pids[64];
    for (int i = 0; i < processes; i++)
        if (!(pids[i] = fork())) hammer(path);
    for (int death = 0; death < deaths; death++) {
        int chosen = rand() % processes;
        usleep((unsigned)rand() % 2000);
        kill(pids[chosen], SIGKILL);
        waitpid(pids[chosen], NULL, 0);
        slots_reap(&mapping, NO_SLOT);
        if (!(pids[chosen] = fork())) hammer(path);
    }
    for (int i = 0; i < processes; i++) kill(pids[i], SIGKILL);
    while (wait(NULL) > 0) {
    }
    slots_reap(&mapping, NO_SLOT);
    print_count(&mapping);
    return 0;
}

/* Kills a process that takes 5 and gives back 2 after so many of its instructions. */
static bool killed_after(const char *path, int steps) {
    int status;
    pid_t pid = fork();
    if (!pid) {
        struct mapping mapping;
        int slot = joined(path, &mapping);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        account_change(mapping.region, slot, 0, 5, 1000);
        account_change(mapping.region, slot, 0, -2, 1000);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    for (int step = 0; step < steps && WIFSTOPPED(status); step++) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL)) exit(5);
        waitpid(pid, &status, 0);
    }
    bool is_over = !WIFSTOPPED(status);
    if (!is_over) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    return is_over;
}

/* Kills a process at every single instruction, with and without a change by another process before
 * the dead one is found. Prints the number of instructions, and after how many the count was
 * wrong. */
static int every_instruction(const char *path) {
    int steps = 0, wrong = 0;
    struct mapping mapping;
    int own = joined(path, &mapping);
    account_change(mapping.region, own, 0, 100, 1000);
    for (bool is_over = false; !is_over; steps++) {
        for (int others = 0; others < 2; others++) {
            is_over = killed_after(path, steps);
            for (int i = 0; i < others * 3; i++) {
                account_change(mapping.region, own, 0, 7, 1000);
                account_change(mapping.region, own, 0, -7, 1000);
            }
            slots_reap(&mapping, own);
            wrong += card_granules(mapping.region, 0) != 100;
        }
    }
    printf("%d %d\n", steps, wrong);
    return 0;
}

/* Takes 9, prints its slot, and waits, in one of the ways that make a process hard to recognise. */
static int hold(const char *path, const char *how) {
    struct mapping mapping;
    int slot = joined(path, &mapping);
    account_change(mapping.region, slot, 0, 9, 1000);
    if (strcmp(how, "closes") == 0) for (int fd = 3; fd < 1024; fd++) close(fd);
    printf("%d\n", slot);
    fflush(stdout);
    if (strcmp(how, "execs") == 0) execlp("sleep", "sleep", "60", (char *)NULL);
    pause();
    return 0;
}

static int look(const char *path) {
    struct mapping mapping = opened(path);
    slots_reap(&mapping, NO_SLOT);
    print_count(&mapping);
    return 0;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    const char *command = words[1], *path = words[2];
    if (strcmp(command, "race") == 0)
        return race(path, atoi(words[3]), atoi(words[4]), strtoull(words[5], NULL, 10),
                    strtoull(words[6], NULL, 10));
    if (strcmp(command, "kill-many") == 0) return kill_many(path, atoi(words[3]), atoi(words[4]));
    if (strcmp(command, "every-instruction") == 0) return every_instruction(path);
    if (strcmp(command, "hold") == 0) return hold(path, words[3]);
    return look(path);
}
