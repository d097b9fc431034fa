/* The table that nvidia-smi prints without arguments. */
#include "screen.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cards.h"

#define LINE "-----------------------------------------"
#define WIDE LINE LINE "-------"
#define RULER "+" LINE "+------------------------+----------------------+\n"

static void print_header(void) {
    char now[64], driver[32] = "N/A", cuda[16] = "N/A";
    int version = 0;
    time_t seconds = time(NULL);
    strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
    nvml.nvmlSystemGetDriverVersion(driver, sizeof driver);
    if (nvml.nvmlSystemGetCudaDriverVersion_v2(&version) == NVML_OK)
        snprintf(cuda, sizeof cuda, "%d.%d", version / 1000, version % 1000 / 10);
    printf("%s       \n+" WIDE "+\n", now);
    printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", driver, driver, cuda);
    printf("|" LINE "+------------------------+----------------------+\n"
           "| GPU  Name                 Persistence-M | Bus-Id          Disp.A "
           "| Volatile Uncorr. ECC |\n"
           "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage "
           "| GPU-Util  Compute M. |\n"
           "|                                         |                        "
           "|               MIG M. |\n"
           "|=========================================+========================"
           "+======================|\n");
}

static void print_first_row(device_t card) {
    char name[96] = "", errors[24] = "N/A";
    unsigned index = 0, persistence = 0, display = 0;
    unsigned long long count;
    struct pci_v3 pci = {0};
    nvml.nvmlDeviceGetIndex(card, &index);
    nvml.nvmlDeviceGetName(card, name, sizeof name);
    nvml.nvmlDeviceGetPersistenceMode(card, &persistence);
    nvml.nvmlDeviceGetDisplayActive(card, &display);
    nvml.nvmlDeviceGetPciInfo_v3(card, &pci);
    if (nvml.nvmlDeviceGetTotalEccErrors(card, 1, 0, &count) == NVML_OK)
        snprintf(errors, sizeof errors, "%llu", count);
    printf("| %3u  %-25.25s %7s  | %18s %3s | %20s |\n", index, name, persistence ? "On" : "Off",
           pci.bus_id, display ? "On" : "Off", errors);
}

static void print_second_row(device_t card) {
    char fan[8] = "N/A";
    unsigned percent, celsius = 0, state = 0, power = 0, limit = 0;
    struct memory_v2 memory = {.version = VERSION_OF(struct memory_v2, 2)};
    struct utilization rates = {0, 0};
    if (nvml.nvmlDeviceGetFanSpeed(card, &percent) == NVML_OK)
        snprintf(fan, sizeof fan, "%u%%", percent);
    nvml.nvmlDeviceGetTemperature(card, 0, &celsius);
    nvml.nvmlDeviceGetPerformanceState(card, &state);
    nvml.nvmlDeviceGetPowerUsage(card, &power);
    nvml.nvmlDeviceGetEnforcedPowerLimit(card, &limit);
    nvml.nvmlDeviceGetMemoryInfo_v2(card, &memory);
    nvml.nvmlDeviceGetUtilizationRates(card, &rates);
    char level[8];
    snprintf(level, sizeof level, "P%u", state & 15);
    printf("| %3s%5uC%6s%15uW / %4uW |%8lluMiB / %6lluMiB |%7u%% %12s |\n", fan, celsius, level,
           (power + 500) / 1000, (limit + 500) / 1000, memory.used / MIB, memory.total / MIB,
           rates.gpu, name_of_compute_mode(card));
}

static void print_card(device_t card) {
    unsigned now = 0, pending = 0;
    const char *mig = "N/A";
    if (nvml.nvmlDeviceGetMigMode(card, &now, &pending) == NVML_OK)
        mig = now ? "Enabled" : "Disabled";
    print_first_row(card);
    print_second_row(card);
    printf("|                                         |                        | %20s |\n" RULER,
           mig);
}

/* Cuts the beginning of a long path: its end is the name of the program. */
static void shorten(char *name, size_t size) {
    size_t length = strlen(name);
    if (length <= size) return;
    memmove(name + 3, name + length - size + 3, size - 2);
    memcpy(name, "...", 3);
}

static void print_processes(const device_t *cards, int count) {
    struct process_v2 processes[MAX_PROCESSES];
    char name[256];
    int shown = 0;
    for (int i = 0; i < count; i++) {
        unsigned index = 0;
        nvml.nvmlDeviceGetIndex(cards[i], &index);
        int found = processes_find(cards[i], processes);
        for (int j = 0; j < found; j++, shown++) {
            process_name(processes[j].pid, name, sizeof name);
            shorten(name, 38);
            printf("|%5u   N/A  N/A%10u      C   %-38s%11lluMiB |\n", index, processes[j].pid, name,
                   processes[j].used / MIB);
        }
    }
    if (!shown) printf("|  No running processes found%61s|\n", "");
}

int show_screen(const char *list) {
    device_t cards[MAX_SHOWN];
    int code = 0, count = cards_find(list, cards, &code);
    if (count < 0) return code;
    print_header();
    for (int i = 0; i < count; i++) print_card(cards[i]);
    printf("%89s\n+" WIDE "+\n", "");
    printf("| Processes:%78s|\n", "");
    printf("|  GPU   GI   CI        PID   Type   Process name                              "
           "GPU Memory |\n"
           "|        ID   ID                                                               "
           "Usage      |\n"
           "|=============================================================================="
           "===========|\n");
    print_processes(cards, count);
    printf("+" WIDE "+\n");
    return code;
}
