// The graph functions of the CUDA driver, which log their arguments, for machines without a driver. With
// -DCUDA_HEADER='"cuda.h"' the layouts of the structs are checked instead.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

using Result = int;
using Handle = void*;

struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], shared_bytes;
  void** arguments;
  void** extra;
  Handle kernel, context;
};
struct Operand {
  size_t x_bytes, y, z, lod;
  int memory_type;
  const void* host;
  unsigned long long address;
  Handle array;
  void* reserved;
  size_t pitch, height;
};
struct CopyNode {
  Operand source, to;
  size_t width_bytes, height, depth;
};
struct ClearNode {
  unsigned long long to;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
};
struct Edge {
  unsigned char from_port, to_port, type, reserved[5];
};

#ifdef CUDA_HEADER
#include CUDA_HEADER
static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS));
static_assert(offsetof(KernelNode, shared_bytes) == offsetof(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes));
static_assert(offsetof(KernelNode, arguments) == offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
static_assert(offsetof(KernelNode, context) == offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
static_assert(sizeof(CopyNode) == sizeof(CUDA_MEMCPY3D));
static_assert(offsetof(Operand, memory_type) == offsetof(CUDA_MEMCPY3D, srcMemoryType));
static_assert(offsetof(Operand, address) == offsetof(CUDA_MEMCPY3D, srcDevice));
static_assert(offsetof(Operand, pitch) == offsetof(CUDA_MEMCPY3D, srcPitch));
static_assert(offsetof(CopyNode, to) == offsetof(CUDA_MEMCPY3D, dstXInBytes));
static_assert(offsetof(CopyNode, to) + offsetof(Operand, address) == offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(offsetof(CopyNode, width_bytes) == offsetof(CUDA_MEMCPY3D, WidthInBytes));
static_assert(sizeof(ClearNode) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(offsetof(ClearNode, element_bytes) == offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize));
static_assert(offsetof(ClearNode, width) == offsetof(CUDA_MEMSET_NODE_PARAMS, width));
static_assert(sizeof(Edge) == sizeof(CUgraphEdgeData) && offsetof(Edge, type) == offsetof(CUgraphEdgeData, type));
static_assert(CU_MEMORYTYPE_UNIFIED == 4 && CU_STREAM_CAPTURE_MODE_RELAXED == 2);
static_assert(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC == 1 && CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC == 1);
#else

static std::string noted, failing;
static size_t nodes = 0;
static int mode = 0;
constexpr Result INVALID_VALUE = 1;
static char graph_object, executable_object;

template <class... Values> static void note(const char* format, Values... values) {
  char line[400];
  snprintf(line, sizeof line, format, values...);
  noted += line;
}

static Result add(const char* name, Handle* node, Handle graph, const Handle* before, size_t count) {
  if (failing == name || graph != &graph_object) return INVALID_VALUE;
  for (size_t k = 0; k < count; k++) {
    if ((size_t)before[k] < 1 || (size_t)before[k] > nodes) return INVALID_VALUE;
    for (size_t m = 0; m < k; m++)
      if (before[k] == before[m]) return INVALID_VALUE;
  }
  *node = (Handle)++nodes;
  for (size_t k = 0; k < count; k++) note("edge %zu %zu 0 0 0\n", (size_t)before[k], nodes);
  return 0;
}

extern "C" {
void restart(const char* function) { noted.clear(), failing = function, nodes = 0, mode = 0; }
const char* what_was_noted() { return noted.c_str(); }

Result cuGetErrorName(Result error, const char** text) {
  *text = error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : nullptr;
  return error == INVALID_VALUE ? 0 : INVALID_VALUE;
}
Result cuGetErrorString(Result error, const char** text) {
  *text = error == INVALID_VALUE ? "invalid argument" : nullptr;
  return error == INVALID_VALUE ? 0 : INVALID_VALUE;
}
Result cuThreadExchangeStreamCaptureMode(int* value) {
  const int before = mode;
  mode = *value, *value = before;
  note("mode %d\n", mode);
  return 0;
}
Result cuCtxPushCurrent_v2(Handle context) {
  note("push %zu\n", (size_t)context);
  return failing == "cuCtxPushCurrent_v2" ? INVALID_VALUE : 0;
}
Result cuCtxPopCurrent_v2(Handle* context) {
  *context = nullptr;
  note("pop\n");
  return 0;
}
Result cuGraphCreate(Handle* graph, unsigned flags) {
  *graph = &graph_object;
  return flags ? INVALID_VALUE : 0;
}
Result cuGraphDestroy(Handle graph) {
  note("destroy graph\n");
  return graph == &graph_object ? 0 : INVALID_VALUE;
}
Handle executable() { return &executable_object; }
Result cuGraphExecDestroy(Handle graph) {
  note("destroy executable\n");
  return graph == &executable_object ? 0 : INVALID_VALUE;
}
Result cuGraphAddKernelNode_v2(Handle* node, Handle graph, const Handle* before, size_t count, const KernelNode* p) {
  if (p->extra || p->kernel || p->context) return INVALID_VALUE;
  if (Result error = add("cuGraphAddKernelNode_v2", node, graph, before, count)) return error;
  unsigned long long first;
  memcpy(&first, p->arguments[0], sizeof first);  // of the kernel's one argument
  note("kernel %zu %u %u %u %u %u %u %u %llu\n", (size_t)p->function, p->grid[0], p->grid[1], p->grid[2], p->block[0],
       p->block[1], p->block[2], p->shared_bytes, first);
  return 0;
}
Result cuGraphAddMemcpyNode(Handle* node, Handle graph, const Handle* before, size_t count, const CopyNode* p,
                            Handle context) {
  const Operand &s = p->source, &t = p->to;
  for (const Operand* end : {&s, &t})
    if (end->memory_type != 4 || end->x_bytes || end->y || end->z || end->lod || end->host || end->array ||
        end->reserved)
      return INVALID_VALUE;
  if (p->depth != 1) return INVALID_VALUE;
  if (Result error = add("cuGraphAddMemcpyNode", node, graph, before, count)) return error;
  note("copy %llu %zu %llu %zu %zu %zu %zu\n", t.address, t.pitch, s.address, s.pitch, p->width_bytes, p->height,
       (size_t)context);
  return 0;
}
Result cuGraphAddMemsetNode(Handle* node, Handle graph, const Handle* before, size_t count, const ClearNode* p,
                            Handle context) {
  if (p->value || p->element_bytes != 1 || p->height != 1) return INVALID_VALUE;
  if (Result error = add("cuGraphAddMemsetNode", node, graph, before, count)) return error;
  note("clear %llu %zu %zu\n", p->to, p->width, (size_t)context);
  return 0;
}
Result cuGraphAddDependencies_v2(Handle graph, const Handle* from, const Handle* to, const Edge* edges, size_t count) {
  if (failing == "cuGraphAddDependencies_v2" || graph != &graph_object) return INVALID_VALUE;
  for (size_t k = 0; k < count; k++)
    note("edge %zu %zu %d %d %d\n", (size_t)from[k], (size_t)to[k], edges[k].from_port, edges[k].to_port,
         edges[k].type);
  return 0;
}
}
#endif
