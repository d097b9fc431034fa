/* -L and -q: the list of cards, and all fields of each card for people to read. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cards.h"
#include "fields.h"
#include "screen.h"

struct line {
    int indent;
    const char *label;
    const char *field; /* NULL: a heading */
};

static const struct line LINES[] = {
    {1, "Product Name", "name"},
    {1, "Display Mode", "display_mode"},
    {1, "Display Active", "display_active"},
    {1, "Persistence Mode", "persistence_mode"},
    {1, "MIG Mode", NULL},
    {2, "Current", "mig.mode.current"},
    {2, "Pending", "mig.mode.pending"},
    {1, "Serial Number", "serial"},
    {1, "GPU UUID", "uuid"},
    {1, "Minor Number", "minor_number"},
    {1, "VBIOS Version", "vbios_version"},
    {1, "PCI", NULL},
    {2, "Bus", "pci.bus"},
    {2, "Device", "pci.device"},
    {2, "Domain", "pci.domain"},
    {2, "Device Id", "pci.device_id"},
    {2, "Bus Id", "pci.bus_id"},
    {2, "Sub System Id", "pci.sub_device_id"},
    {1, "Fan Speed", "fan.speed"},
    {1, "Performance State", "pstate"},
    {1, "FB Memory Usage", NULL},
    {2, "Total", "memory.total"},
    {2, "Reserved", "memory.reserved"},
    {2, "Used", "memory.used"},
    {2, "Free", "memory.free"},
    {1, "Compute Mode", "compute_mode"},
    {1, "Utilization", NULL},
    {2, "Gpu", "utilization.gpu"},
    {2, "Memory", "utilization.memory"},
    {1, "ECC Mode", NULL},
    {2, "Current", "ecc.mode.current"},
    {2, "Pending", "ecc.mode.pending"},
    {1, "ECC Errors", NULL},
    {2, "Volatile Corrected", "ecc.errors.corrected.volatile.total"},
    {2, "Volatile Uncorrected", "ecc.errors.uncorrected.volatile.total"},
    {2, "Aggregate Corrected", "ecc.errors.corrected.aggregate.total"},
    {2, "Aggregate Uncorrected", "ecc.errors.uncorrected.aggregate.total"},
    {1, "Temperature", NULL},
    {2, "GPU Current Temp", "temperature.gpu"},
    {1, "GPU Power Readings", NULL},
    {2, "Power Draw", "power.draw"},
    {2, "Current Power Limit", "power.limit"},
    {2, "Default Power Limit", "power.default_limit"},
    {2, "Min Power Limit", "power.min_limit"},
    {2, "Max Power Limit", "power.max_limit"},
    {1, "Clocks", NULL},
    {2, "Graphics", "clocks.current.graphics"},
    {2, "SM", "clocks.current.sm"},
    {2, "Memory", "clocks.current.memory"},
    {1, "Max Clocks", NULL},
    {2, "Graphics", "clocks.max.graphics"},
    {2, "SM", "clocks.max.sm"},
    {2, "Memory", "clocks.max.memory"},
};

static void print_line(int indent, const char *label, const char *value) {
    if (value) printf("%*s%-*s: %s\n", indent * 4, "", 42 - indent * 4, label, value);
    else printf("%*s%s\n", indent * 4, "", label);
}

static void print_processes(device_t card) {
    struct process_v2 processes[MAX_PROCESSES];
    char text[256];
    int count = processes_find(card, processes);
    print_line(1, "Processes", count ? NULL : "None");
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%u", processes[i].pid);
        print_line(2, "Process ID", text);
        print_line(3, "Type", "C");
        process_name(processes[i].pid, text, sizeof text);
        print_line(3, "Name", text);
        snprintf(text, sizeof text, "%llu MiB", processes[i].used / MIB);
        print_line(3, "Used GPU Memory", text);
    }
}

/* Removes the brackets around a reason: this report prints reasons without them. */
static const char *without_brackets(char *text) {
    size_t length = strlen(text);
    if (text[0] != '[') return text;
    text[length - 1] = 0;
    return text + 1;
}

static void print_head(int count) {
    char text[64];
    int cuda = 0;
    time_t seconds = time(NULL);
    printf("\n==============NVSMI LOG==============\n\n");
    strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
    print_line(0, "Timestamp", text);
    nvml.nvmlSystemGetDriverVersion(text, sizeof text);
    print_line(0, "Driver Version", text);
    nvml.nvmlSystemGetCudaDriverVersion_v2(&cuda);
    snprintf(text, sizeof text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    print_line(0, "CUDA Version", text);
    snprintf(text, sizeof text, "%d", count);
    printf("\n");
    print_line(0, "Attached GPUs", text);
}

int show_report(const char *list) {
    device_t cards[MAX_SHOWN];
    char text[256];
    int code = 0, count = cards_find(list, cards, &code);
    if (count < 0) return code;
    print_head(count);
    for (int card = 0; card < count; card++) {
        field_text(field_by_name("pci.bus_id"), cards[card], 0, text, sizeof text);
        printf("GPU %s\n", text);
        for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
            const struct line *line = &LINES[i];
            if (line->field)
                field_text(field_by_name(line->field), cards[card], 1, text, sizeof text);
            print_line(line->indent, line->label, line->field ? without_brackets(text) : NULL);
        }
        print_processes(cards[card]);
        printf("\n");
    }
    return code;
}

int show_list(const char *list) {
    device_t cards[MAX_SHOWN];
    char name[96], uuid[96];
    int code = 0, count = cards_find(list, cards, &code);
    for (int i = 0; i < count; i++) {
        unsigned index = 0;
        nvml.nvmlDeviceGetIndex(cards[i], &index);
        nvml.nvmlDeviceGetName(cards[i], name, sizeof name);
        nvml.nvmlDeviceGetUUID(cards[i], uuid, sizeof uuid);
        printf("GPU %u: %s (UUID: %s)\n", index, name, uuid);
    }
    return code;
}
