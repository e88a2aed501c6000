// Order and launches in which the glu engine processes a column plan: right-looking.
//
// Task: the update of column k by column j, for an entry U(j, k) for which L(:, j) has entries.
//
// Modes (Lee, Achar and Nakhla, IEEE TVLSI 26 (2018), section III-B, algorithms 3 and 4):
//   cluster   a launch for every level, a block for every chunk of it. For wide levels.
//   batch     one launch for a run of levels. Blocks take chunks in order, and a chunk waits until the level before is
//             done. For levels of a few columns.
//   pipeline  one launch, in which one block, for every chain of columns, goes from column to column without leaving
//             its multiprocessor: the entries of its columns are in shared memory. The places that an update reads and
//             writes are stored flat, and known one column ahead.
// The paper gives batch mode levels of two columns, pipeline mode levels of one. Here a model chooses, and there are
// many concurrent pipelines: the elimination tree of the pattern of L + U (symmetrized) is cut by the time that
// subtrees take. Phase by phase, a launch each, the subtrees up to some time, without what earlier phases did, are
// chains of one block each. Entry (i, k) belongs to the chain of column min(i, k), to which no other chain adds in this
// launch; updates of entries of later launches are added atomically. Columns above the last phase are processed level
// by level, neighbouring levels by one pipeline where that is faster.
//
// Chunks: neighbouring tasks of a level that a block of GLU_THREADS does at a time, 2^lanes_log2 threads a task, by the
// length of L(:, j). He, Tan, Wang and Shi (TVLSI 24 (2016), section III-B) cut a level to a fixed number of columns
// instead. Deterministic.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/columns/plan.hpp"
#include "shared/columns.hpp"
#include "shared/costs.hpp"

namespace gs::gpu {

struct GluSchedule {
  RawVector<GluTask> tasks;
  std::vector<GluChunk> chunks;
  std::vector<std::int32_t> level_chunk;  // n_levels + 1: first chunk of a level
  RawVector<GluUpdate> updates;
  RawVector<std::int32_t> places;
  std::vector<GluStep> steps;
  std::vector<GluChain> chains;
  std::vector<GluRun> runs;      // in order
  double predicted_seconds = 0;  // of a refactorization
};

struct GluParameters {
  int forced = -1;        // a GluMode for everything (pipeline: for all that fits), or -1: the model chooses
  off capacity = 12000;   // scalars in the shared memory of a block
  ScheduleCosts costs{};  // [us]
};

GluSchedule make_glu_schedule(const ColumnPlan& plan, const GluParameters& parameters);

}  // namespace gs::gpu
