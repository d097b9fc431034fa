/* GPM, performance metrics between two samples, on cards from Hopper on.
 *
 * A sample is what the card had done up to that moment. A metric is the part of the time between
 * two samples of the same card. Simulated kernels compute nothing: tensor cores are taken to work
 * half of the time in which kernels run.
 */
#include "../../process/clock.h"
#include "../handles.h"
#include "session.h"

#define HOPPER 9
#define MOST_METRICS 1024

enum { GRAPHICS_UTIL = 1, SM_UTIL = 2, ANY_TENSOR_UTIL = 5 };

struct gpm_sample {
    const struct card *card; /* NULL: nothing was sampled into it */
    uint64_t time_ns, worked_ns;
};

static struct handles samples = HANDLES_OF(struct gpm_sample);

CALL(nvmlGpmQueryDeviceSupport, device_t device, struct gpm_support *support) {
    WITH_CARD(card, device);
    if (!support) return NVML_INVALID_ARGUMENT;
    if (support->version != 1) return NVML_VERSION_MISMATCH;
    support->is_supported = card->fixed.architecture >= HOPPER;
    return NVML_OK;
}

CALL(nvmlGpmSampleAlloc, struct gpm_sample **sample) {
    if (!sample) return NVML_INVALID_ARGUMENT;
    *sample = handle_new(&samples);
    return *sample ? NVML_OK : NVML_MEMORY;
}

CALL(nvmlGpmSampleFree, struct gpm_sample *sample) {
    return handle_end(&samples, sample) ? NVML_OK : NVML_INVALID_ARGUMENT;
}

CALL(nvmlGpmSampleGet, device_t device, struct gpm_sample *sample) {
    WITH_CARD(card, device);
    if (!handle_is_live(&samples, sample)) return NVML_INVALID_ARGUMENT;
    if (card->fixed.architecture < HOPPER) return NVML_NOT_SUPPORTED;
    *sample = (struct gpm_sample){card, now_ns(), atomic_load(&card->live.worked_ns)};
    return NVML_OK;
}

static double busy_between(const struct gpm_sample *first, const struct gpm_sample *second) {
    double worked = (double)(second->worked_ns - first->worked_ns);
    double percent = 100 * worked / (double)(second->time_ns - first->time_ns) +
                     atomic_load(&first->card->fault.outside_percent);
    return percent < 100 ? percent : 100;
}

static int fill(struct gpm_metric *metric, double busy) {
    metric->value = metric->id == ANY_TENSOR_UTIL ? busy / 2 : busy;
    metric->short_name = metric->long_name = metric->unit = "";
    int is_known = metric->id == GRAPHICS_UTIL || metric->id == SM_UTIL;
    return is_known || metric->id == ANY_TENSOR_UTIL ? NVML_OK : NVML_NOT_SUPPORTED;
}

CALL(nvmlGpmMetricsGet, struct gpm_metrics *asked) {
    if (!asked || asked->count > MOST_METRICS) return NVML_INVALID_ARGUMENT;
    if (asked->version != 1) return NVML_VERSION_MISMATCH;
    const struct gpm_sample *first = asked->first, *second = asked->second;
    if (!handle_is_live(&samples, first) || !handle_is_live(&samples, second) || !first->card ||
        first->card != second->card || second->time_ns <= first->time_ns)
        return NVML_INVALID_ARGUMENT;
    double busy = busy_between(first, second);
    for (unsigned i = 0; i < asked->count; i++)
        asked->metrics[i].result = fill(&asked->metrics[i], busy);
    return NVML_OK;
}
