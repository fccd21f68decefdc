/* A stand-in for libnvidia-ml.so.1: answers as a file says that is read again at every call, so that a test can make
 * GPUs that lack fields, fail, or vanish while somebody watches. Built and put on the search path by the tests.
 *
 * $NVML_STAND_IN names the file; its lines are "key value": "count 2", "init 0", and per GPU and function the status
 * that is returned, "0.power 3" (3: not supported, 15: the GPU is lost, 999: unknown). Absent lines mean success.
 * "cuda 2" and "cuda0 1": as the CUDA driver it shows two, the first of which is NVML's second; absent: it cannot start.
 * "nvlinks 4": so many links of each GPU lead to the next one; "switch 1": they lead to a switch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int setting(const char *key, int fallback) {
  const char *path = getenv("NVML_STAND_IN");
  FILE *file = path ? fopen(path, "r") : NULL;
  char name[64];
  int value, found = fallback;
  if (!file) return fallback;
  while (fscanf(file, "%63s %d", name, &value) == 2)
    if (!strcmp(name, key)) found = value;
  fclose(file);
  return found;
}

static int status(void *device, const char *function) {
  char key[64];
  snprintf(key, sizeof key, "%d.%s", (int)(size_t)device - 1, function);
  return setting(key, 0);
}

EXPORT int nvmlInit_v2(void) { return setting("init", 0); }
EXPORT int nvmlShutdown(void) { return 0; }
EXPORT int nvmlDeviceGetCount_v2(unsigned *count) { return *count = (unsigned)setting("count", 1), 0; }
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)(size_t)(index + 1);
  return status(*device, "handle");
}
EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned size) {
  snprintf(name, size, "Stand-in %d", (int)(size_t)device - 1);
  return status(device, "name");
}
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, char *pci) {
  snprintf(pci + 36, 32, "00000000:%02X:00.0", (unsigned)(size_t)device);
  return status(device, "pci");
}
EXPORT int cuInit(unsigned flags) {
  (void)flags;
  const int count = setting("cuda", -1);
  return count < 0 ? 999 : count > 0 ? 0 : 100;
}
EXPORT int cuDeviceGetCount(int *count) { return *count = setting("cuda", 0), 0; }
EXPORT int cuDeviceGetPCIBusId(char *id, int size, int device) {
  char key[16];
  snprintf(key, sizeof key, "cuda%d", device);
  snprintf(id, (size_t)size, "0000:%02X:00.0", (unsigned)setting(key, device) + 1);
  return 0;
}
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) { return *mw = 250500, status(device, "power"); }
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw) {
  return *mw = 700000, status(device, "powerLimit");
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj) {
  return *mj = 1234567, status(device, "energy");
}
EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2]) {
  rates[0] = 97, rates[1] = 40;
  return status(device, "utilization");
}
EXPORT int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3]) {
  memory[0] = 80ull << 30, memory[1] = 48ull << 30, memory[2] = 32ull << 30;
  return status(device, "memory");
}
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  (void)sensor;
  return *celsius = 64, status(device, "temperature");
}
EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
  return *mhz = type == 1 ? 1980 : 2619, status(device, type == 1 ? "smClock" : "memoryClock");
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  return *reasons = (unsigned long long)setting("throttleReasons", 0), status(device, "throttle");
}
EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *errors) {
  (void)counter;
  return *errors = type == 0 ? 2 : 0, status(device, "ecc");
}
EXPORT int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *kilobytes) {
  return *kilobytes = counter == 0 ? 1500 : 2500, status(device, "pcie");
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size) {
  snprintf(version, size, "570.86.15");
  return setting("driver", 0);
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) { return *version = 12080, setting("cudaDriver", 0); }
EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
  return *major = 9, *minor = 0, status(device, "capability");
}
EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value) {
  return *value = 4, status(device, "pcieGeneration");
}
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value) {
  return *value = 5, status(device, "pcieMaxGeneration");
}
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value) {
  return *value = 8, status(device, "pcieWidth");
}
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *value) {
  return *value = 16, status(device, "pcieMaxWidth");
}
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active) {
  *active = (int)link < setting("nvlinks", 0);
  return link < 18 ? status(device, "nvlink") : 2;
}
EXPORT int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *version) {
  return (void)link, *version = 4, status(device, "nvlinkVersion");
}
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type) {
  return (void)link, *type = setting("switch", 0) ? 2 : 0, status(device, "nvlinkType");
}
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, char *pci) {
  int count = setting("count", 1), self = (int)(size_t)device - 1;
  (void)link;
  snprintf(pci + 36, 32, "00000000:%02X:00.0", (self + 1) % count + 1);
  return status(device, "nvlinkRemote");
}
EXPORT int nvmlDeviceGetFieldValues(void *device, int count, char *values) {
  int i, result, type = 1;
  for (i = 0; i < count; ++i, values += 40) {
    unsigned field, value = 26562;
    memcpy(&field, values, 4);
    if (field == 90) {
      result = status(device, "nvlinkSpeed");
    } else { /* unsupported where no setting names a value */
      value = (unsigned)setting(field == 186 ? "powerNow" : field == 197 ? "pcieSent" : "pcieReceived", 0);
      result = value == 0 ? 3 : 0;
    }
    memcpy(values + 24, &type, 4);
    memcpy(values + 28, &result, 4);
    memcpy(values + 32, &value, 4);
  }
  return 0;
}
EXPORT int nvmlDeviceGetTopologyCommonAncestor(void *first, void *second, int *level) {
  return (void)second, *level = setting("level", 50), status(first, "ancestor");
}
