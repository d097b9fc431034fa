#include "share.h"

#include <pthread.h>

#include "../../process/clock.h"
#include "devices.h"

#define BURST_NS 20000000ull
/* A larger value of paid_ns cannot be right (the clock began at 0 again at a boot) and is ignored:
 * the container would wait for ever. */
#define MAX_AHEAD_NS (60 * SECOND_NS)
#define FIRST_SAMPLES 4
#define SAMPLE_EVERY 16
#define FIRST_SAMPLES_WAIT_NS 50000000ull
#define POLL_NS 50000ull
#define KERNELS 4096 /* a power of two */
#define NEIGHBOURS 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kernel {
    const void *what;
    uint64_t context;
    event_t start, end; /* NULL: none yet */
    bool is_measuring;  /* `end` was recorded, and not read yet */
    uint32_t launches, samples;
    uint32_t unpaid; /* launches before the first sample, whose cost was not known */
    uint64_t cost_ns;
} kernels[KERNELS];

/* The kernel's entry. A new kernel replaces the one in its neighbourhood that was launched least.
 * So an entry is only valid while the mutex is held, and is looked up again after each unlock. The
 * functions from here to price are called with the mutex held. */
static struct kernel *find_or_replace(const void *what) {
    uint64_t hash = (uint64_t)(uintptr_t)what * 0x9e3779b97f4a7c15ull >> 32;
    struct kernel *rarest = NULL;
    for (uint64_t i = 0; i < NEIGHBOURS; i++) {
        struct kernel *kernel = &kernels[(hash + i) & (KERNELS - 1)];
        if (kernel->what == what) return kernel;
        if (!rarest || !kernel->what || kernel->launches < rarest->launches) rarest = kernel;
        if (!kernel->what) break;
    }
    /* The events of the replaced entry are used again. */
    *rarest = (struct kernel){
        .what = what, .context = rarest->context, .start = rarest->start, .end = rarest->end};
    return rarest;
}

static void learn(struct kernel *kernel, uint64_t length) {
    if (!kernel->samples++ || length < kernel->cost_ns) kernel->cost_ns = length;
    else kernel->cost_ns += (length - kernel->cost_ns) / 256;
}

static void read_measurement(struct kernel *kernel) {
    float milliseconds;
    if (!kernel->is_measuring) return;
    int mode = capture_relax();
    int result = REAL(cuEventQuery)(kernel->end);
    if (result == OK) result = REAL(cuEventElapsedTime)(&milliseconds, kernel->start, kernel->end);
    capture_restore(mode);
    if (result == OK) learn(kernel, (uint64_t)(milliseconds * 1e6f));
    if (result != NOT_READY) kernel->is_measuring = false;
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
    if (kernel->is_measuring || !is_due || !has_events(kernel)) return;
    if (record(launch, kernel->start) != OK) {
        kernel->start = kernel->end = NULL; /* they do not exist any more */
        return;
    }
    kernel->is_measuring = launch->is_measured = true;
    launch->end = kernel->end;
}

/* The first launches of a kernel go one by one, so that no work of unknown cost is queued. The wait
 * is limited: the kernel may wait for something that this thread does later. */
static void wait_for_first_samples(struct kernel **kernel, const void *what) {
    uint64_t until = now_ns() + FIRST_SAMPLES_WAIT_NS;
    read_measurement(*kernel);
    while ((*kernel)->samples < FIRST_SAMPLES && (*kernel)->is_measuring && now_ns() < until) {
        pthread_mutex_unlock(&mutex);
        sleep_until_ns(now_ns() + POLL_NS);
        pthread_mutex_lock(&mutex);
        *kernel = find_or_replace(what);
        read_measurement(*kernel);
    }
}

/* The cost of this launch; with the first sample also that of the unpaid launches before. */
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

/* The default stream of this thread is another one than that of the program, and only the function
 * with _ptsz means it. About the program's default stream the driver returns an error while a
 * stream for which that one waits is being captured. */
static bool is_capturing(const struct launch *launch) {
    int status = 0, result = launch->is_per_thread
                                 ? REAL(cuStreamIsCapturing_ptsz)(launch->stream, &status)
                                 : REAL(cuStreamIsCapturing)(launch->stream, &status);
    return result == OK && status;
}

void share_wait(struct launch *launch, int device, const void *what) {
    int card = card_of(device);
    unsigned percent = limiter_percent(card);
    if (!percent || percent >= 100) return;
    /* Captured work does not run now but when its graph is launched, and recording an event would
     * become part of the graph. */
    if (is_capturing(launch)) return;
    pthread_mutex_lock(&mutex);
    struct kernel *kernel = find_or_replace(what);
    wait_for_first_samples(&kernel, what);
    kernel->launches++;
    uint64_t length = price(kernel);
    pthread_mutex_unlock(&mutex);
    pay(card, length, percent);
    pthread_mutex_lock(&mutex);
    kernel = find_or_replace(what);
    begin_measurement(kernel, launch);
    pthread_mutex_unlock(&mutex);
}

void share_measured(struct launch *launch) {
    record(launch, launch->end);
}

void share_forget(uint64_t context) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < KERNELS; i++) {
        if (kernels[i].context != context) continue;
        kernels[i].start = kernels[i].end = NULL;
        kernels[i].is_measuring = false;
    }
    pthread_mutex_unlock(&mutex);
}

void share_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    for (int i = 0; i < KERNELS; i++) kernels[i] = (struct kernel){0};
}
