#define _GNU_SOURCE
#include "share.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "devices.h"

#define SECOND 1000000000ull
#define BURST_NS 20000000ull
#define MAX_AHEAD_NS (60 * SECOND) /* more is nonsense: the container would stand still */
#define FIRST_SAMPLES 4
#define SAMPLE_EVERY 16
#define PATIENCE_NS 50000000ull
#define NAP_NS 50000ull
#define KERNELS 4096 /* that are told from one another; a power of two */
#define NEIGHBOURS 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kernel {
    const void *what;
    uint64_t context;
    event_t start, end; /* NULL: none yet */
    bool is_running;    /* a measurement */
    uint32_t launches, samples;
    uint32_t unpaid; /* launches before the first sample */
    uint64_t cost_ns;
} kernels[KERNELS];

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void sleep_until_ns(uint64_t time) {
    struct timespec until = {(time_t)(time / SECOND), (long)(time % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

/* With the mutex held, until share_wait. A kernel that is not known takes the place of one that is
 * rarely launched. */
static struct kernel *find(const void *what) {
    uint64_t hash = (uint64_t)(uintptr_t)what * 0x9e3779b97f4a7c15ull >> 32;
    struct kernel *rarest = NULL;
    for (uint64_t i = 0; i < NEIGHBOURS; i++) {
        struct kernel *kernel = &kernels[(hash + i) & (KERNELS - 1)];
        if (kernel->what == what) return kernel;
        if (!rarest || !kernel->what || kernel->launches < rarest->launches) rarest = kernel;
        if (!kernel->what) break;
    }
    /* Its events are used again. */
    *rarest = (struct kernel){
        .what = what, .context = rarest->context, .start = rarest->start, .end = rarest->end};
    return rarest;
}

static void learn(struct kernel *kernel, uint64_t length) {
    if (!kernel->samples++ || length < kernel->cost_ns) kernel->cost_ns = length;
    else kernel->cost_ns += (length - kernel->cost_ns) / 256;
}

static void look_at_measurement(struct kernel *kernel) {
    float milliseconds;
    if (!kernel->is_running || REAL(cuEventQuery)(kernel->end) != OK) return;
    kernel->is_running = false;
    if (REAL(cuEventElapsedTime)(&milliseconds, kernel->start, kernel->end) == OK)
        learn(kernel, (uint64_t)(milliseconds * 1e6f));
}

static bool has_events(struct kernel *kernel) {
    uint64_t context = current_context();
    if (kernel->start && kernel->context == context) return true;
    kernel->context = context;
    kernel->start = kernel->end = NULL;
    return REAL(cuEventCreate)(&kernel->start, 0) == OK &&
           REAL(cuEventCreate)(&kernel->end, 0) == OK;
}

static int record(const struct launch *launch, event_t event) {
    return launch->is_per_thread ? REAL(cuEventRecord_ptsz)(event, launch->stream)
                                 : REAL(cuEventRecord)(event, launch->stream);
}

static void begin_measurement(struct kernel *kernel, struct launch *launch) {
    bool is_due = kernel->samples < FIRST_SAMPLES || kernel->launches % SAMPLE_EVERY == 0;
    if (kernel->is_running || !is_due || !has_events(kernel)) return;
    if (record(launch, kernel->start) != OK) return;
    kernel->is_running = launch->is_measured = true;
    launch->end = kernel->end;
}

/* A kernel's first launches go one by one, so that nothing is queued whose price is not known. Not
 * for ever: it may wait for something that this very thread is to do later. */
static void wait_for_first_samples(struct kernel **kernel, const void *what) {
    uint64_t until = now_ns() + PATIENCE_NS;
    look_at_measurement(*kernel);
    while ((*kernel)->samples < FIRST_SAMPLES && (*kernel)->is_running && now_ns() < until) {
        pthread_mutex_unlock(&mutex);
        sleep_until_ns(now_ns() + NAP_NS);
        pthread_mutex_lock(&mutex);
        *kernel = find(what);
        look_at_measurement(*kernel);
    }
}

/* What this launch is to pay: with the first sample, also for those before it. */
static uint64_t price(struct kernel *kernel) {
    uint64_t count = 1 + kernel->unpaid;
    if (!kernel->samples) {
        kernel->unpaid++;
        return 0;
    }
    kernel->unpaid = 0;
    return count * kernel->cost_ns;
}

static void pay(int card, uint64_t length, unsigned percent) {
    _Atomic uint64_t *paid = &limiter_region()->cards[card].paid_ns;
    uint64_t until = atomic_load(paid), now, from;
    do {
        now = now_ns();
        if (until > now + BURST_NS && until < now + MAX_AHEAD_NS) {
            sleep_until_ns(until - BURST_NS);
            until = atomic_load(paid);
            now = now_ns();
        }
        from = until > now && until < now + MAX_AHEAD_NS ? until : now;
    } while (!atomic_compare_exchange_weak(paid, &until, from + length * 100 / percent));
}

void share_wait(struct launch *launch, int device, const void *what) {
    int card = card_of(device), capturing = 0;
    unsigned percent = limiter_percent(card);
    if (!percent || percent >= 100) return;
    /* Captured work runs when its graph is launched; and it must not be measured. */
    if (REAL(cuStreamIsCapturing)(launch->stream, &capturing) == OK && capturing) return;
    pthread_mutex_lock(&mutex);
    struct kernel *kernel = find(what);
    wait_for_first_samples(&kernel, what);
    kernel->launches++;
    uint64_t length = price(kernel);
    pthread_mutex_unlock(&mutex);
    pay(card, length, percent);
    pthread_mutex_lock(&mutex);
    kernel = find(what);
    begin_measurement(kernel, launch);
    pthread_mutex_unlock(&mutex);
}

void share_measured(struct launch *launch) {
    record(launch, launch->end);
}

void share_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    for (int i = 0; i < KERNELS; i++) kernels[i] = (struct kernel){0};
}
