// Launches of the glu engine. Modes, tasks, chunks and chains are defined in core/plan/columns/glu_schedule.hpp.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int GLU_THREADS = 256;  // of a block, but of pipelines
constexpr int GLU_BLOCKS = 4;     // a multiprocessor
constexpr int LEAST_PIPELINE_THREADS = 64;
constexpr int MOST_PIPELINE_THREADS = 1024;
constexpr int GLU_TICKET_BYTES = 8;    // of shared memory
constexpr int GLU_FINISH_THREADS = 8;  // of a column that is divided by its pivot

enum class GluMode { cluster, batch, pipeline };

// The update of column k by column j.
struct GluTask {
  long long upper;  // place of U(j, k)
  long long pivot;  // place of (j, j); L(:, j) follows
  long long map;    // with maps: where those of this update begin; else where column k ends
  int count;        // entries of L(:, j)
  int offset;       // of U(j, k) from the begin of column k
};

// Tasks of one level that a block does together.
struct GluChunk {
  int begin, end;               // tasks
  int lanes_log2;               // threads of a task
  int level;                    // counter that counts this chunk
  int wait_level, wait_chunks;  // batch: begins when so many chunks of that level are done; -1: at once
  int padding[2];
};

// One multiply-add of a pipeline.
struct GluUpdate {
  unsigned short lower, upper;  // slots of L(i, j) and U(j, k)
  int target;                   // slot of (i, k), or its place where it belongs to a later launch
};

// A column of a pipeline.
struct GluStep {
  int pivot;               // its slot
  int begin, middle, end;  // updates, those from `middle` on of entries of later launches
};

// Work of a block of a pipeline.
struct GluChain {
  int begin, end;                // steps
  int places_begin, places_end;  // of the entries in its slots
};

// Neighbouring levels in one mode, or a phase of pipelines.
struct GluRun {
  int mode;                    // GluMode
  int level_begin, level_end;  // -1: subtrees
  int begin, end;              // chunks, or chains
  int widest;                  // most chunks of a level; threads of a block of a pipeline
  int slots;                   // most of a chain
};

}  // namespace gs::gpu
