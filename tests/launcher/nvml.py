"""A fake driver library that lists the GPUs that a test needs."""

import os
import subprocess

import pytest

LIBRARY = r"""
#include <stdlib.h>
#include <string.h>
static const char* kUuids[] = {"GPU-aaaa-0", "GPU-aabb-1", "GPU-cccc-2", "GPU-dddd-3"};
static int number(const char* name) { const char* text = getenv(name); return text ? atoi(text) : 0; }
int nvmlInit_v2(void) { return number("FAKE_ERROR"); }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int error) { return error == 18 ? "Driver/library version mismatch" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = number("FAKE_GPUS"); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (void*)kUuids[index]; return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (int k = 0; k < 4; ++k) if (!strcmp(uuid, kUuids[k])) { *device = (void*)kUuids[k]; return 0; }
  *device = 0;
  return strcmp(uuid, "MIG-1234") ? 6 : 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned size) { strncpy(name, "Test GPU", size); return device ? 0 : 2; }
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) { memory[0] = 1ull << 34; memory[1] = memory[0]; memory[2] = 0; return device ? 0 : 2; }
int nvmlSystemGetDriverVersion(char* version, unsigned size) { strncpy(version, "580.0", size); return 0; }
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) { strncpy(uuid, device, size); return 0; }
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Environment variables that give a process a driver with `count` GPUs."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", folder / "nvml.c"], check=True)

    def with_gpus(count, **more):
        path = f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        return {"LD_LIBRARY_PATH": path, "FAKE_GPUS": str(count), **more}

    return with_gpus
