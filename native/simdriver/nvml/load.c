/* What changes while programs run: memory, utilisation, power, temperature, clocks. */
#include <string.h>
#include <time.h>

#include "../../process/clock.h"
#include "../engine.h"
#include "../cgroup.h"
#include "../limits.h"
#include "../slots.h"
#include "session.h"

static uint64_t used_now(const struct card *card) {
    struct node *node = session_node();
    slots_reap(node, NO_SLOT);
    uint64_t used = card_used(node->state, card_index(card));
    return used < card->fixed.memory_bytes ? used : card->fixed.memory_bytes;
}

CALL(nvmlDeviceGetMemoryInfo, device_t device, struct memory_v1 *memory) {
    WITH_CARD(card, device);
    if (!memory) return NVML_INVALID_ARGUMENT;
    uint64_t used = used_now(card);
    *memory = (struct memory_v1){card->fixed.memory_bytes, card->fixed.memory_bytes - used, used};
    return NVML_OK;
}

/* A process sees the limit that its own cgroup has, as in cuMemGetInfo. NVIDIA does not
 * promise the same of the older call. */
static void show_limit(const struct card *card, struct memory_v2 *memory) {
    struct node *node = session_node();
    struct limit_values limit;
    char place[PLACE_BYTES];
    if (!node->state->has_limits || !atomic_load(&node->state->limits_seen)) return;
    read_own_place(node->path, place);
    if (!limit_at(node->state, place, card_index(card), &limit)) return;
    if (limit.hard < memory->total) memory->total = limit.hard;
    memory->used = limit.used < memory->total ? limit.used : memory->total;
    uint64_t left = memory->total - memory->used;
    if (left < memory->free) memory->free = left;
}

CALL(nvmlDeviceGetMemoryInfo_v2, device_t device, struct memory_v2 *memory) {
    WITH_CARD(card, device);
    if (!memory) return NVML_INVALID_ARGUMENT;
    if (memory->version != VERSION_OF(struct memory_v2, 2)) return NVML_VERSION_MISMATCH;
    uint64_t used = used_now(card);
    memory->total = card->fixed.memory_bytes;
    memory->reserved = 0;
    memory->free = card->fixed.memory_bytes - used;
    memory->used = used;
    show_limit(card, memory);
    return NVML_OK;
}

CALL(nvmlDeviceGetBAR1MemoryInfo, device_t device, struct memory_v1 *memory) {
    WITH_CARD(card, device);
    if (!memory) return NVML_INVALID_ARGUMENT;
    uint64_t used = 2ull << 20;
    *memory = (struct memory_v1){card->fixed.bar1_bytes, card->fixed.bar1_bytes - used, used};
    return NVML_OK;
}

CALL(nvmlDeviceGetUtilizationRates, device_t device, struct utilization *rates) {
    WITH_CARD(card, device);
    if (!rates) return NVML_INVALID_ARGUMENT;
    rates->gpu = card_percent(card);
    rates->memory = rates->gpu / 2;
    return NVML_OK;
}

static int idle_codec(device_t device, unsigned *percent, unsigned *period_us) {
    WITH_CARD(card, device);
    (void)card;
    if (!percent || !period_us) return NVML_INVALID_ARGUMENT;
    *percent = 0;
    *period_us = 167000;
    return NVML_OK;
}

#define CODEC(function)                                                          \
    CALL(function, device_t device, unsigned *percent, unsigned *period_us) {    \
        return idle_codec(device, percent, period_us);                           \
    }
CODEC(nvmlDeviceGetEncoderUtilization)
CODEC(nvmlDeviceGetDecoderUtilization)
CODEC(nvmlDeviceGetJpgUtilization)
CODEC(nvmlDeviceGetOfaUtilization)

/* A value between that of an idle card and that of a busy one, in proportion to the load. */
static unsigned by_load(const struct card *card, unsigned idle, unsigned busy) {
    return idle + (busy - idle) * card_percent(card) / 100;
}

static unsigned power_mw(const struct card *card) {
    unsigned limit = atomic_load(&card->live.power_limit_mw);
    return by_load(card, card->fixed.power_idle_mw, limit * 9 / 10);
}

static unsigned celsius(const struct card *card) {
    unsigned set = atomic_load(&card->fault.temperature_c);
    if (set) return set;
    return by_load(card, card->fixed.temperature_idle_c, card->fixed.temperature_busy_c);
}

/* The time since boot at the power of an idle card, and more for the time that kernels took. */
static unsigned long long energy_mj(const struct card *card) {
    unsigned idle = card->fixed.power_idle_mw, busy = card->fixed.power_limit_mw * 9 / 10;
    uint64_t worked_ms = atomic_load(&card->live.worked_ns) / 1000000;
    return (now_ns() / 1000000 * idle + worked_ms * (busy - idle)) / 1000;
}

GETTER(nvmlDeviceGetPowerUsage, unsigned, power_mw(card))
GETTER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, energy_mj(card))

/* Cards with stacked memory (HBM) always report P0. They are recognised by their wide memory
 * bus. */
static unsigned performance_state(const struct card *card) {
    return card_percent(card) || card->fixed.memory_bus_bits >= 4096 ? 0 : 8;
}
GETTER(nvmlDeviceGetPerformanceState, unsigned, performance_state(card))
GETTER(nvmlDeviceGetPowerState, unsigned, performance_state(card))

CALL(nvmlDeviceGetTemperature, device_t device, unsigned sensor, unsigned *value) {
    WITH_CARD(card, device);
    if (sensor != 0 || !value) return NVML_INVALID_ARGUMENT;
    *value = celsius(card);
    return NVML_OK;
}

CALL(nvmlDeviceGetTemperatureV, device_t device, struct temperature *value) {
    WITH_CARD(card, device);
    if (!value || value->sensor != 0) return NVML_INVALID_ARGUMENT;
    if (value->version != VERSION_OF(struct temperature, 1)) return NVML_VERSION_MISMATCH;
    value->celsius = (int)celsius(card);
    return NVML_OK;
}

CALL(nvmlDeviceGetTemperatureThreshold, device_t device, unsigned kind, unsigned *value) {
    WITH_CARD(card, device);
    if (!value) return NVML_INVALID_ARGUMENT;
    if (kind == 0) *value = card->fixed.temperature_shutdown_c;
    else if (kind == 1) *value = card->fixed.temperature_slowdown_c;
    else if (kind == 2 || kind == 3) *value = card->fixed.temperature_slowdown_c - 2;
    else return NVML_NOT_SUPPORTED;
    return NVML_OK;
}

CALL(nvmlDeviceGetFanSpeed, device_t device, unsigned *percent) {
    WITH_CARD(card, device);
    if (!card->fixed.has_fan) return NVML_NOT_SUPPORTED;
    if (!percent) return NVML_INVALID_ARGUMENT;
    *percent = by_load(card, 30, 80);
    return NVML_OK;
}

GETTER(nvmlDeviceGetNumFans, unsigned, card->fixed.has_fan)

/* nvmlClockType_t: 0 graphics, 1 SM, 2 memory, 3 video. */
static unsigned highest_mhz(const struct card *card, unsigned clock) {
    if (clock == 2) return card->fixed.clock_memory_mhz;
    return clock == 3 ? card->fixed.clock_video_mhz : card->fixed.clock_graphics_mhz;
}

static unsigned current_mhz(const struct card *card, unsigned clock) {
    return card_percent(card) || clock == 2 ? highest_mhz(card, clock) : card->fixed.clock_idle_mhz;
}

#define CLOCK(function, expression)                                          \
    CALL(function, device_t device, unsigned clock, unsigned *mhz) {         \
        WITH_CARD(card, device);                                             \
        if (!mhz || clock > 3) return NVML_INVALID_ARGUMENT;                      \
        *mhz = (expression);                                                 \
        return NVML_OK;                                                           \
    }
CLOCK(nvmlDeviceGetClockInfo, current_mhz(card, clock))
CLOCK(nvmlDeviceGetMaxClockInfo, highest_mhz(card, clock))
CLOCK(nvmlDeviceGetApplicationsClock, highest_mhz(card, clock))
CLOCK(nvmlDeviceGetDefaultApplicationsClock, highest_mhz(card, clock))
CLOCK(nvmlDeviceGetMaxCustomerBoostClock, highest_mhz(card, clock))

CALL(nvmlDeviceGetClock, device_t device, unsigned clock, unsigned which, unsigned *mhz) {
    return which ? nvmlDeviceGetMaxClockInfo(device, clock, mhz)
                 : nvmlDeviceGetClockInfo(device, clock, mhz);
}

#define IDLE 1ull
#define TOO_HOT 0x40ull /* the hardware slows down */

static unsigned long long slowed_by(const struct card *card) {
    if (celsius(card) >= card->fixed.temperature_slowdown_c) return TOO_HOT;
    return card_percent(card) ? 0 : IDLE;
}
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, slowed_by(card))
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, slowed_by(card))
GETTER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1ff)
GETTER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1ff)
