/* libnvidia-ml.so.1, opened at run time by its name, as other clients open it. So this nvidia-smi
 * shows what the limiter or a real driver returns, too. */
#ifndef SIMDRIVER_SMI_LIBRARY_H
#define SIMDRIVER_SMI_LIBRARY_H

#include <stdbool.h>

#include "../../interface/nvml.h"

#define DEVICE_NUMBER(name) X(name, (device_t, unsigned *))
#define DEVICE_TEXT(name) X(name, (device_t, char *, unsigned))

#define FUNCTIONS                                                               \
    X(nvmlInit_v2, (void))                                                      \
    X(nvmlSystemGetDriverVersion, (char *, unsigned))                           \
    X(nvmlSystemGetCudaDriverVersion_v2, (int *))                               \
    X(nvmlSystemGetProcessName, (unsigned, char *, unsigned))                   \
    X(nvmlDeviceGetCount_v2, (unsigned *))                                      \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned, device_t *))                    \
    X(nvmlDeviceGetHandleByUUID, (const char *, device_t *))                    \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, device_t *))             \
    X(nvmlDeviceGetPciInfo_v3, (device_t, struct pci_v3 *))                     \
    X(nvmlDeviceGetMemoryInfo_v2, (device_t, struct memory_v2 *))               \
    X(nvmlDeviceGetBAR1MemoryInfo, (device_t, struct memory_v1 *))              \
    X(nvmlDeviceGetUtilizationRates, (device_t, struct utilization *))          \
    X(nvmlDeviceGetTemperature, (device_t, unsigned, unsigned *))               \
    X(nvmlDeviceGetClockInfo, (device_t, unsigned, unsigned *))                 \
    X(nvmlDeviceGetMaxClockInfo, (device_t, unsigned, unsigned *))              \
    X(nvmlDeviceGetEccMode, (device_t, unsigned *, unsigned *))                 \
    X(nvmlDeviceGetMigMode, (device_t, unsigned *, unsigned *))                 \
    X(nvmlDeviceGetTotalEccErrors,                                              \
      (device_t, unsigned, unsigned, unsigned long long *))                     \
    X(nvmlDeviceGetPowerManagementLimitConstraints,                             \
      (device_t, unsigned *, unsigned *))                                       \
    X(nvmlDeviceGetCudaComputeCapability, (device_t, int *, int *))             \
    X(nvmlDeviceGetComputeRunningProcesses_v3,                                  \
      (device_t, unsigned *, struct process_v2 *))                              \
    DEVICE_TEXT(nvmlDeviceGetName)                                              \
    DEVICE_TEXT(nvmlDeviceGetUUID)                                              \
    DEVICE_TEXT(nvmlDeviceGetSerial)                                            \
    DEVICE_TEXT(nvmlDeviceGetVbiosVersion)                                      \
    DEVICE_NUMBER(nvmlDeviceGetIndex)                                           \
    DEVICE_NUMBER(nvmlDeviceGetPersistenceMode)                                 \
    DEVICE_NUMBER(nvmlDeviceGetDisplayMode)                                     \
    DEVICE_NUMBER(nvmlDeviceGetDisplayActive)                                   \
    DEVICE_NUMBER(nvmlDeviceGetFanSpeed)                                        \
    DEVICE_NUMBER(nvmlDeviceGetPerformanceState)                                \
    DEVICE_NUMBER(nvmlDeviceGetPowerUsage)                                      \
    DEVICE_NUMBER(nvmlDeviceGetEnforcedPowerLimit)                              \
    DEVICE_NUMBER(nvmlDeviceGetPowerManagementLimit)                            \
    DEVICE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit)                     \
    DEVICE_NUMBER(nvmlDeviceGetComputeMode)                                     \
    DEVICE_NUMBER(nvmlDeviceGetMinorNumber)                                     \
    DEVICE_NUMBER(nvmlDeviceGetArchitecture)                                    \
    DEVICE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration)                          \
    DEVICE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration)                           \
    DEVICE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth)                               \
    DEVICE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth)

struct library {
#define X(name, parameters) int (*name) parameters;
    FUNCTIONS
#undef X
    const char *(*nvmlErrorString)(int);
};

/* No member is NULL: a function that the library does not have returns "not supported". */
extern struct library nvml;

/* NVML_OK, NVML_LIBRARY_NOT_FOUND, or the error of nvmlInit. */
int library_open(void);

#endif
