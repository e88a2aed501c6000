// Columns of sflu and crisscross, their groups, and the solves of all column engines.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int COLUMN_THREADS = 512;  // of a block
constexpr int COLUMN_WARPS = COLUMN_THREADS / WARP_SIZE;
constexpr int COLUMN_BLOCKS = 2;         // that share a multiprocessor's memory
constexpr int MOST_GROUP_COLUMNS = 448;  // columns of a group
constexpr int MOST_PLACES = 1024;        // that a warp keeps where there are no maps

// Data of a block's ticket.
struct ColumnControl {
  int ticket, column;
  unsigned epoch;
  int unused;  // what comes after is aligned to 16 bytes
};

// Words of device memory that blocks take tickets by: tickets taken, blocks that are done, epoch.
constexpr int TICKET_WORDS = 3;

// Words of shared memory for a group's flags: what comes after is aligned to 16 bytes.
GPUSPLU_HOST_DEVICE constexpr int flag_words(int columns) { return (columns + 3) & ~3; }

// Of a long column (core/plan/columns/long_columns.hpp): where its parts begin in the arrays of all.
struct LongColumn {
  int target;                  // its first target
  int level, depths;           // ends of its depths from 1 on, in `level`, as targets
  int huge_end, deep_end;      // of targets that are not shallow: first those with most terms
  int rest, rest_count;        // entries of U that are not shallow, in `rest`
  int shallow, shallow_count;  // those that are, in `shallow`
};
struct LongTerm {
  int place;     // of L(i, j)
  int position;  // of U(j, k) in column k
};

// Shared memory of a batch of a column of the trailing block (core/plan/columns/trailing.hpp) [bytes].
GPUSPLU_HOST_DEVICE constexpr long long batch_bytes(long long entries, long long terms, int scalar_bytes) {
  return 4 + 8 * entries + terms * (scalar_bytes + 4);
}

// Words of shared memory of the symbolic phase of sflu: a bit a row, and a bit for each word of those.
GPUSPLU_HOST_DEVICE constexpr int bitmap_chunks(int n) { return (n + 1023) / 1024; }
GPUSPLU_HOST_DEVICE constexpr int summary_words(int n) { return (bitmap_chunks(n) + 31) & ~31; }
GPUSPLU_HOST_DEVICE constexpr int bitmap_words(int n) { return summary_words(n) + 32 * bitmap_chunks(n); }

// ---- launches of the glu engine; core/plan/columns/glu_schedule.hpp defines modes, tasks, chunks and chains
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
