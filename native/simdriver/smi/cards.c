#include "cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_one(const char *item, device_t *card) {
    char *end;
    unsigned long index = strtoul(item, &end, 10);
    if (*item && !*end) return nvml.nvmlDeviceGetHandleByIndex_v2((unsigned)index, card);
    if (strncmp(item, "GPU-", 4) == 0) return nvml.nvmlDeviceGetHandleByUUID(item, card);
    return nvml.nvmlDeviceGetHandleByPciBusId_v2(item, card);
}

static int find_listed(const char *list, device_t *cards, int *code) {
    char copy[4096];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", list);
    char *rest;
    for (char *item = strtok_r(copy, ", ", &rest); item && count < MAX_SHOWN;
         item = strtok_r(NULL, ", ", &rest)) {
        int result = find_one(item, &cards[count]);
        if (result == NVML_GPU_IS_LOST) {
            printf("Unable to determine the device handle for GPU %s: GPU is lost\n", item);
            *code = NVML_GPU_IS_LOST;
            return -1;
        }
        if (result != NVML_OK) {
            printf("No devices were found\n");
            *code = NVML_NOT_FOUND;
            return -1;
        }
        count++;
    }
    return count;
}

int cards_find(const char *list, device_t *cards, int *code) {
    unsigned total = 0;
    if (list) return find_listed(list, cards, code);
    nvml.nvmlDeviceGetCount_v2(&total);
    if (!total) {
        printf("No devices were found\n");
        *code = NVML_NOT_FOUND;
        return -1;
    }
    int count = 0;
    for (unsigned i = 0; i < total && count < MAX_SHOWN; i++) {
        int result = nvml.nvmlDeviceGetHandleByIndex_v2(i, &cards[count]);
        if (result == NVML_OK) {
            count++;
            continue;
        }
        printf("Unable to determine the device handle for GPU%u: %s\n", i,
               nvml.nvmlErrorString(result));
        *code = result;
    }
    return count ? count : -1;
}

int processes_find(device_t card, struct process_v2 *processes) {
    unsigned count = MAX_PROCESSES;
    int result = nvml.nvmlDeviceGetComputeRunningProcesses_v3(card, &count, processes);
    return result == NVML_OK ? (int)count : 0;
}

void process_name(unsigned pid, char *name, unsigned size) {
    if (nvml.nvmlSystemGetProcessName(pid, name, size) != NVML_OK)
        snprintf(name, size, "[Not Found]");
}

const char *name_of_compute_mode(device_t card) {
    static const char *const NAMES[] = {"Default", "Exclusive_Thread", "Prohibited",
                                        "E. Process"};
    unsigned mode = 0;
    nvml.nvmlDeviceGetComputeMode(card, &mode);
    return NAMES[mode & 3];
}
