/* Stands in for NVIDIA's driver: memory is the host's, kernels are names that a callback computes.

   Python's bindings load it as they load libcuda.so.1, so what deplo passes to them is what they accept. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int (*launch_t)(uint64_t code, const char *kernel, unsigned blocks, unsigned threads, unsigned shared, void **parameters);

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, NOT_FOUND = 500 };

static int devices, major, minor, version, shared_limit, failed, depth, images[2];
static int64_t in_use, uploaded;
static launch_t on_launch;

void stand_in(int count, int has_major, int has_minor, int cuda, int shared, launch_t launch) {
    devices = count, major = has_major, minor = has_minor, version = cuda, shared_limit = shared, on_launch = launch;
    failed = 0, uploaded = 0, images[0] = images[1] = 0;
}

/* Bytes that are allocated and that came from the host, contexts pushed, how often code and PTX were loaded. */
void stand_in_state(int64_t *found) {
    found[0] = in_use, found[1] = uploaded, found[2] = depth, found[3] = images[0], found[4] = images[1];
}

int cuInit(unsigned flags) { return devices ? SUCCESS : NO_DEVICE; }
int cuDriverGetVersion(int *found) { *found = version; return SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < devices ? SUCCESS : INVALID_DEVICE; }

int cuDeviceGetAttribute(int *found, int which, int device) {
    *found = which == 75 ? major : which == 76 ? minor : which == 97 ? shared_limit : -1;
    return *found < 0 ? INVALID_VALUE : SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(intptr_t)(device + 1); return SUCCESS; }
int cuCtxPushCurrent(void *context) { ++depth; return context ? SUCCESS : INVALID_CONTEXT; }
int cuCtxPopCurrent(void **context) { *context = 0; return --depth < 0 ? INVALID_CONTEXT : SUCCESS; }
int cuCtxGetCurrent(void **context) { *context = 0; return SUCCESS; }
int cuCtxSynchronize(void) { return depth ? failed : INVALID_CONTEXT; }
int cuStreamSynchronize(void *stream) { return depth ? failed : INVALID_CONTEXT; }

int cuMemPoolCreate(void **pool, const int *properties) {
    *pool = (void *)1;  /* pinned memory without a handle, on a device */
    return properties[0] == 1 && properties[2] == 1 && properties[3] < devices ? SUCCESS : INVALID_VALUE;
}

int cuMemPoolSetAttribute(void *pool, int which, const uint64_t *value) {
    return which == 4 && *value == UINT64_MAX ? SUCCESS : INVALID_VALUE;
}

int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
    if (!depth || stream != (void *)1) return INVALID_CONTEXT;
    int64_t *made = aligned_alloc(256, (bytes + 256 + 255) / 256 * 256);
    if (!made) return NO_MEMORY;
    memset(made, 0xa5, bytes + 256);
    made[0] = bytes, in_use += bytes, *address = (uint64_t)made + 256;
    return SUCCESS;
}

int cuMemFreeAsync(uint64_t address, void *stream) {
    int64_t *made = (int64_t *)(address - 256);
    in_use -= made[0];
    free(made);
    return depth ? SUCCESS : INVALID_CONTEXT;
}

static int copied(void *target, const void *source, size_t bytes) {
    if (depth && !failed) memcpy(target, source, bytes);
    return depth ? failed : INVALID_CONTEXT;
}

int cuMemcpyHtoD(uint64_t target, const void *source, size_t bytes) {
    uploaded += bytes;
    return copied((void *)target, source, bytes);
}

int cuMemcpyDtoH(void *target, uint64_t source, size_t bytes) { return copied(target, (void *)source, bytes); }
int cuMemcpyDtoDAsync(uint64_t target, uint64_t source, size_t bytes, void *stream) {
    return copied((void *)target, (void *)source, bytes);
}

/* Machine code is an ELF file, which ends behind one of its tables; PTX ends with a zero. */
static size_t table_end(const unsigned char *image, size_t place, size_t width_at) {
    uint64_t table;
    uint16_t width, count;
    memcpy(&table, image + place, 8), memcpy(&width, image + width_at, 2), memcpy(&count, image + width_at + 2, 2);
    return table + (size_t)width * count;
}

static uint64_t digest(const unsigned char *image, int is_code) {
    uint64_t found = 14695981039346656037u;
    size_t bytes = strlen((const char *)image);
    if (is_code) {
        size_t segments = table_end(image, 32, 54), sections = table_end(image, 40, 58);
        bytes = segments > sections ? segments : sections;
    }
    for (size_t i = 0; i < bytes; ++i) found = (found ^ image[i]) * 1099511628211u;
    return found;
}

int cuModuleLoadData(void **module, const char *image) {
    int is_code = !memcmp(image, "\177ELF", 4), is_text = !is_code && strstr(image, ".version");
    if (!is_code && !is_text) return INVALID_IMAGE;
    ++images[is_text];
    *module = (void *)digest((const unsigned char *)image, is_code);
    return SUCCESS;
}

struct function { uint64_t code; char name[256]; };

int cuModuleGetFunction(struct function **function, void *module, const char *name) {
    *function = calloc(1, sizeof **function);
    (*function)->code = (uint64_t)module;
    strncpy((*function)->name, name, 255);
    return SUCCESS;
}

int cuFuncSetAttribute(void *function, int which, int value) {
    return which == 8 && value <= shared_limit ? SUCCESS : INVALID_VALUE;
}

int cuLaunchKernel(struct function *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    if (!depth || stream != (void *)1 || y != 1 || z != 1 || ty != 1 || tz != 1) return INVALID_VALUE;
    if (!failed) failed = on_launch(function->code, function->name, x, threads, shared, parameters);
    return SUCCESS;
}

int cuTensorMapEncodeTiled(uint64_t *map, int type, unsigned rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill) {
    map[0] = (uint64_t)address, map[1] = rank;  /* of its 128 bytes, which a kernel gets by value */
    memcpy(map + 2, dims, rank * sizeof *dims);
    return SUCCESS;
}

#define NAMED(function) {#function, (void *)function}

static const struct { const char *name; void *function; } known[] = {
    NAMED(cuInit),
    NAMED(cuDriverGetVersion),
    NAMED(cuDeviceGet),
    NAMED(cuDeviceGetAttribute),
    NAMED(cuDevicePrimaryCtxRetain),
    NAMED(cuCtxPushCurrent),
    NAMED(cuCtxPopCurrent),
    NAMED(cuCtxGetCurrent),
    NAMED(cuCtxSynchronize),
    NAMED(cuStreamSynchronize),
    NAMED(cuMemPoolCreate),
    NAMED(cuMemPoolSetAttribute),
    NAMED(cuMemAllocFromPoolAsync),
    NAMED(cuMemFreeAsync),
    NAMED(cuMemcpyHtoD),
    NAMED(cuMemcpyDtoH),
    NAMED(cuMemcpyDtoDAsync),
    NAMED(cuModuleLoadData),
    NAMED(cuModuleGetFunction),
    NAMED(cuFuncSetAttribute),
    NAMED(cuLaunchKernel),
    NAMED(cuTensorMapEncodeTiled),
};

int cuGetProcAddress_v2(const char *name, void **function, int cuda, uint64_t flags, int *status) {
    *function = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (!strcmp(known[i].name, name)) *function = known[i].function;
    if (status) *status = !*function;
    return SUCCESS;
}
